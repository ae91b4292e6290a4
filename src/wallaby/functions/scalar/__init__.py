"""The scalar functions: for each name its SQL, when it stays on Spark, and whether a value can make it fail.

A file per family. The functions that DuckDB lacks are in `wallaby.functions.exact`.
"""

from __future__ import annotations

from wallaby.functions.scalar import (
    arithmetic,
    bits,
    cast_text,
    casts,
    comparisons,
    conditions,
    date_text,
    dates,
    doubts,
    hashes,
    intervals,
    json_text,
    lambdas,
    mathematics,
    nested,
    patterns,
    text,
    times,
)
from wallaby.functions.scalar.function import KNOWN as FUNCTIONS
from wallaby.functions.scalar.function import Function, fallible

__all__ = ["FUNCTIONS", "Function", "fallible"]

_FAMILIES = (
    arithmetic,
    bits,
    cast_text,
    casts,
    comparisons,
    conditions,
    date_text,
    dates,
    doubts,
    hashes,
    intervals,
    json_text,
    lambdas,
    mathematics,
    nested,
    patterns,
    text,
    times,
)
for _family in _FAMILIES:
    FUNCTIONS.update(_family.FUNCTIONS)
