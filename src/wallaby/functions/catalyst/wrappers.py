"""What computes nothing of its own: tags for Catalyst, subqueries, and other people's code."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import FLOATING
from wallaby.functions.catalyst.entry import exact, guarded, transparent, unsupported

_SUBQUERY: Final = "subqueries that remain expressions are not supported yet"
_FOREIGN: Final = "it runs user code"

ENTRIES: Final = (
    exact("KnownNotNull", "", build=transparent),
    exact("KnownNullable", "", build=transparent),
    exact("KnownNotContainsNull", "", build=transparent),
    exact("KnownFloatingPointNormalized", "", build=transparent),
    guarded("NormalizeNaNAndZero", "normalize", FLOATING, guard="-0.0 counts as 0.0"),
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
)
