"""Do answers and memory hold under small budgets? Whole workloads, query by query, beside Spark's answers.

Each budget has an engine with one TaskManager, whose proportional set size is sampled while a query runs. An answer
is right if it is Spark's. A query may also end with an error that names the budget. Anything else is a defect, and so
is a peak beyond the budget and its allowance.
"""
