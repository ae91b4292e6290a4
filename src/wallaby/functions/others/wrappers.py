"""Expressions that compute nothing themselves: tags for Catalyst, subqueries, and user code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import FLOATING, TEXT
from wallaby.functions.entry import exact, guarded, transparent, unsupported
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, template
from wallaby.functions.size import WITHIN
from wallaby.relations.expression import Call
from wallaby.sql.words import normalized

_SUBQUERY: Final = "subqueries that remain expressions are not supported yet"
_FOREIGN: Final = "it runs user code"


def _normalize(call: Call, sql: Sequence[str]) -> str:
    return normalized(sql[0], call.type)


def _floating(call: Call) -> str | None:
    type_ = call.arguments[0].type
    return None if type_.is_floating else f"{call.function} of {type_} is not supported"


FAMILY: Final = Family(
    "Others",
    (
        exact(
            "KnownNotNull",
            "",
            build=transparent,
            without_example="a tag that Catalyst puts around user-defined functions' arguments",
        ),
        exact(
            "KnownNullable",
            "",
            build=transparent,
            without_example="a tag that Catalyst puts around columns of outer joins under construction",
        ),
        exact(
            "KnownNotContainsNull",
            "",
            build=transparent,
            examples=("select array_compact(array_int_a) c from {table}",),
        ),
        exact(
            "KnownFloatingPointNormalized",
            "",
            build=transparent,
            examples=("select id, count(*) over (partition by double_a) c from {table}",),
        ),
        guarded(
            "NormalizeNaNAndZero",
            "normalize",
            FLOATING,
            guard="-0.0 counts as 0.0",
            sql=ScalarSql(1, _normalize, reason=_floating),
            examples=(
                "select id, count(*) over (partition by float_a) c from {table}",
                "select l.id, r.id as other from {table} l join {table} r on l.double_a = r.double_b",
            ),
        ),
        exact(
            "Empty2Null",
            "empty_to_null",
            TEXT,
            sql=ScalarSql(1, template("nullif({0}, '')"), size=WITHIN),
            without_example="Spark puts it around text columns by which a write is partitioned",
        ),
        unsupported("Exists", _SUBQUERY, "write it as a join"),
        unsupported("InSubquery", _SUBQUERY, "write it as a join"),
        unsupported("ListQuery", _SUBQUERY, "write it as a join"),
        unsupported("PythonUDF", _FOREIGN, "use built-in functions"),
        unsupported("ScalaUDF", _FOREIGN, "use built-in functions"),
        unsupported("Rand", "its result differs every time"),
        unsupported("Randn", "its result differs every time"),
        unsupported("Uuid", "its result differs every time"),
        unsupported("MonotonicallyIncreasingID", "its result depends on Spark's partitions"),
        unsupported("SparkPartitionID", "its result depends on Spark's partitions"),
        unsupported("InputFileName", "its result depends on Spark's readers"),
    ),
)
