"""Words that the SQL of nested values is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from wallaby.relations.expression import Call
from wallaby.relations.types import DataType
from wallaby.sql.words import case, cast, text

#: What costs nothing to write twice: columns, variables, constants without a cast.
_SIMPLE = re.compile(r'(?:\w+\.)?"[^"]*"|\w+')


def let(value: str, name: str, body: str) -> str:
    """A body in which a name stands for a value that is computed once."""
    return f"list_extract(list_transform([{value}], lambda {name}: {body}), 1)"


def bound(values: Sequence[str], body: Callable[..., str]) -> str:
    """A body that may name its values several times, and computes each once.

    No value mentions a name that is bound around it: values are written by whoever knows columns and lambdas of the
    query, which have quoted names.
    """
    names = [value if _SIMPLE.fullmatch(value) else f"v{place}" for place, value in enumerate(values)]
    written = body(*names)
    for name, value in reversed(list(zip(names, values, strict=True))):
        if name != value:
            written = let(value, name, written)
    return written


def has_null(array: str, element: DataType) -> str:
    """Is there a NULL among the elements? NULL is no array, and has none."""
    return f"coalesce(list_position({array}, {cast('NULL', element)}) IS NOT NULL, FALSE)"


def failing(faults: Sequence[tuple[str, str, str]], otherwise: str) -> str:
    """A value, or the error of the first row that has one: condition, Spark's name for it, and what to say.

    One error for all of them: DuckDB looks for each in all rows before it looks for the next.
    """
    where = " OR ".join(f"({condition})" for condition, _, _ in faults)
    said = case([(condition, text(f"[{name}] {message}")) for condition, name, message in faults])
    return case([(where, f"error({said})")], otherwise)


def always(call: Call) -> bool:  # noqa: ARG001 - the signature of a question about a call
    """It is always so."""
    return True
