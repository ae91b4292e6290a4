"""Python functions over Arrow arrays that DuckDB can call.

Such a function costs about a microsecond per value, and DuckDB does not evaluate it while planning. It is for
computations in which DuckDB itself differs from Spark. A data error is raised as `ValueFault`, with Spark's condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from wallaby.relations.types import DataType
from wallaby.sql.types import arrow_type, duckdb_type


class ValueFault(Exception):  # noqa: N818 - the data's fault, not the program's
    """A value for which Spark raises an error with a condition."""

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(f"[{condition}] {message}")


@dataclass(frozen=True, slots=True)
class ArrowFunction:
    """A function of arrays of one length that gives an array. It handles NULLs itself."""

    name: str
    takes: tuple[DataType, ...]
    gives: DataType
    compute: Callable[..., pa.Array]

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Register the function with a connection."""
        connection.create_function(
            self.name,
            self.compute,
            [duckdb.sqltype(duckdb_type(type_)) for type_ in self.takes],
            duckdb.sqltype(duckdb_type(self.gives)),
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )


def per_value(
    name: str, takes: tuple[DataType, ...], gives: DataType, compute: Callable[..., Any]
) -> ArrowFunction:
    """Make an Arrow function from a function of one row's values; NULL if any of them is NULL."""
    made = arrow_type(gives)

    def over_one(values: pa.ChunkedArray) -> pa.Array:
        return pa.array([None if value is None else compute(value) for value in values.to_pylist()], made)

    def over_many(*columns: pa.ChunkedArray) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([None if None in row else compute(*row) for row in rows], made)

    # DuckDB inspects the number of parameters.
    parameters = [Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(len(takes))]
    over_many.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return ArrowFunction(name, takes, gives, over_one if len(takes) == 1 else over_many)
