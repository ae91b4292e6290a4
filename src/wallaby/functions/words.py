"""Building blocks for the SQL of nested values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from wallaby.relations.expression import Call
from wallaby.relations.types import DataType
from wallaby.sql.words import case, cast, text

#: SQL that costs nothing to repeat: columns, variables, constants without a cast.
_SIMPLE = re.compile(r'(?:\w+\.)?"[^"]*"|\w+')


def let(value: str, name: str, body: str) -> str:
    """SQL in which a name represents a value that is computed once."""
    return f"list_extract(list_transform([{value}], lambda {name}: {body}), 1)"


def bound(values: Sequence[str], body: Callable[..., str], letter: str = "v") -> str:
    """SQL that may use its values several times, and computes each once.

    No value uses a name that is bound around it: values use only the query's columns and lambdas, which have quoted
    names. A body that binds values which use these names needs names with another letter.
    """
    names = [value if _SIMPLE.fullmatch(value) else f"{letter}{place}" for place, value in enumerate(values)]
    written = body(*names)
    for name, value in reversed(list(zip(names, values, strict=True))):
        if name != value:
            written = let(value, name, written)
    return written


def has_null(array: str, element: DataType) -> str:
    """Is there a NULL among the elements? A NULL array has no elements."""
    return f"coalesce(list_position({array}, {cast('NULL', element)}) IS NOT NULL, FALSE)"


def failing(faults: Sequence[tuple[str, str, str]], otherwise: str) -> str:
    """A value, or the error of the first row that has one: a condition, Spark's name for the error, and a message.

    All errors are in one expression, because DuckDB checks each expression for all rows before the next.
    """
    where = " OR ".join(f"({condition})" for condition, _, _ in faults)
    said = case([(condition, text(f"[{name}] {message}")) for condition, name, message in faults])
    return case([(where, f"error({said})")], otherwise)


def always(call: Call) -> bool:  # noqa: ARG001 - the signature of a question about a call
    """Always True."""
    return True
