"""A Python function over Arrow arrays as DuckDB gets to know it.

Such a function costs about a microsecond a value, and DuckDB does not compute with it ahead: it is for what DuckDB
itself does not do exactly as Spark. An error that the data deserve is raised as `Fault`, under Spark's name for it.
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


class Fault(Exception):  # noqa: N818 - the data's fault, not the program's
    """A value for which Spark raises the error of a condition."""

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(f"[{condition}] {message}")


@dataclass(frozen=True, slots=True)
class ArrowFunction:
    """A function of arrays, all of one length, that gives an array. NULLs are its own business."""

    name: str
    takes: tuple[DataType, ...]
    gives: DataType
    compute: Callable[..., pa.Array]

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Give it to a connection."""
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
    """A function of one row's values; NULL if any of them is."""
    made = arrow_type(gives)

    def over_one(values: pa.ChunkedArray) -> pa.Array:
        return pa.array([None if value is None else compute(value) for value in values.to_pylist()], made)

    def over_many(*columns: pa.ChunkedArray) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([None if None in row else compute(*row) for row in rows], made)

    # DuckDB counts the parameters.
    parameters = [Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(len(takes))]
    over_many.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return ArrowFunction(name, takes, gives, over_one if len(takes) == 1 else over_many)
