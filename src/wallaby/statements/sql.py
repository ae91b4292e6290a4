"""From typed trees to DuckDB's SQL. This is the door; the rooms behind it are the `sql_*` modules.

`supports` and `relation_reason` answer before anything runs: what they let through gives exactly Spark's values,
or ends with Spark's error.
"""

from __future__ import annotations

from wallaby.statements.expression import expression_sql, supports
from wallaby.statements.relation import input_name, inputs_of, relation_reason, relation_sql, result_columns

__all__ = [
    "expression_sql",
    "input_name",
    "inputs_of",
    "relation_reason",
    "relation_sql",
    "result_columns",
    "supports",
]
