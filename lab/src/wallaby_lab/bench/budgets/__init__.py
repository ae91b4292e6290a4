"""Check answers and memory under small budgets: whole workloads, query by query, compared with Spark's answers.

Each budget has an engine with one TaskManager, whose proportional set size is sampled while a query runs. An answer
must be Spark's. A query may also end with an error that names the budget. Anything else is a bug, and so is a peak
beyond the budget and its allowance.
"""
