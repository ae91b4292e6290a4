"""SQL statements: written from typed trees, checked before anything runs, and run on DuckDB.

`expression.supports` and `relation.relation_reason` decide before anything runs: whatever they accept gives Spark's
values, or ends with Spark's error.
"""
