"""The queries that expressions are put into: one row each, aggregates of all rows and of groups, windows.

Aggregates over wild rows see two rows at a time: sums of the largest numbers depend on the order of more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_BETWEEN: Final = ", "


@dataclass(frozen=True, slots=True)
class Shape:
    """A query with places for `{columns}` and its `{table}`, and the tables that it is meant for."""

    query: str
    tables: tuple[str, ...]
    #: Around each expression.
    around: str = "{}"
    #: Single rows or groups of it, for expressions that fail somewhere: of several errors, either may come first.
    parts: tuple[Shape, ...] = ()

    def sql(self, expressions: Sequence[str], table: str) -> str:
        """The query with some expressions over a table."""
        columns = _BETWEEN.join(self._columns(expressions))
        return self.query.format(columns=columns, table=table)

    def place(self, expressions: Sequence[str], table: str, position: int) -> int | None:
        """Which expression a position in such a query lies in; none, if it lies elsewhere."""
        begin = len(self.query.partition("{columns}")[0].format(table=table))
        for number, column in enumerate(self._columns(expressions)):
            if begin <= position < begin + len(column):
                return number
            begin += len(column) + len(_BETWEEN)
        return None

    def _columns(self, expressions: Sequence[str]) -> list[str]:
        return [
            f"{self.around.format(expression)} as c{number}" for number, expression in enumerate(expressions)
        ]


#: Some of the wild rows.
_NUMBERS: Final = ("0", "62", "124", "186")
BLOCKS: Final = tuple(
    Shape("select id, {columns} from {table} where id = " + number, ("wild",)) for number in _NUMBERS
)
_PAIRS: Final = tuple(
    Shape(
        f"select id >> 1 as pair, {{columns}} from {{table}} where id in ({number}, {number} + 1) group by id >> 1",
        ("wild",),
    )
    for number in _NUMBERS
)
ROWS: Final = (Shape("select id, {columns} from {table}", ("tame", "wild", "one", "none"), parts=BLOCKS),)
AGGREGATES: Final = (
    Shape("select {columns} from {table}", ("tame", "one", "none")),
    Shape("select key, {columns} from {table} group by key", ("tame", "one", "none")),
    Shape("select id >> 1 as pair, {columns} from {table} group by id >> 1", ("wild",), parts=_PAIRS),
    Shape("select key, {columns} from {table} group by key", ("tame",), "{} filter (where small_c > 2)"),
    Shape("select id, {columns} from {table}", ("tame",), "{} over (partition by key)"),
    Shape(
        "select id, {columns} from {table}",
        ("tame",),
        "{} over (partition by key order by id rows between 3 preceding and 1 following)",
    ),
)
#: Tables so small that one mode tells as much as another: they are compared in the first one only.
SMALL: Final = frozenset({"one", "none"})
