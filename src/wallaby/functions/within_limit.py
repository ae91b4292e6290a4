"""Raise an error instead of making a result that is too large for a single row.

How many rows are computed at once follows from the sizes of their results. But a single row may make more than a
TaskManager can hold. So a call that grows checks its arguments first, where the SQL for them is at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from wallaby.functions.scalar_sql import SCALARS
from wallaby.functions.size import LARGEST_SQL, is_small, value_size
from wallaby.functions.words import bound
from wallaby.relations.expression import Call, Column, Literal
from wallaby.relations.types import DataType
from wallaby.sql.words import case, error

_TOO_LARGE: Final = error(
    "WALLABY_MEMORY_LIMIT",
    "A single row produces text or an array that is larger than a step of the query may hold.",
)

#: What is checked binds values itself, with another letter.
_LETTER: Final = "g"


def checked(call: Call, sql: Sequence[str], size: Callable[..., str], write: Callable[..., str]) -> str:
    """Write a call, given how its result's size and the call itself are written.

    Both get the SQL of the arguments. The size may be NULL. It is not checked if constants limit it.
    """
    declared = SCALARS[call.function].size
    own = None if declared is None else declared.times(call)
    if own is not None and is_small(*own):
        return write(*sql)
    simple = [isinstance(argument, Column | Literal) for argument in call.arguments]
    rest = [text for text, is_simple in zip(sql, simple, strict=True) if not is_simple]

    def body(*names: str) -> str:
        left = iter(names)
        given = [text if is_simple else next(left) for text, is_simple in zip(sql, simple, strict=True)]
        return case([(f"{size(*given)} > {LARGEST_SQL}", _TOO_LARGE)], write(*given))

    return bound(rest, body, _LETTER) if rest else body()


def checked_step(sofar: str, type_: DataType, step: str) -> str:
    """Write the next step of an aggregation of an array, if what it has collected so far is not too large."""
    size = value_size(sofar, type_)
    return case([(f"{size} > {LARGEST_SQL}", _TOO_LARGE)], step)
