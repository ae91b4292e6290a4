"""SQL statements: written from typed trees, checked before anything runs, and run on DuckDB.

`expression.supports` and `relation.relation_reason` answer before anything runs: what they let through gives exactly
Spark's values, or ends with Spark's error.
"""
