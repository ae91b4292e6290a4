"""The queries that expressions are put into: one row each, aggregates of all rows and of groups, windows.

Aggregates over wild rows see two rows at a time: sums of the largest numbers depend on the order of more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Shape:
    """A query with places for `{columns}` and its `{table}`, and the tables that it is meant for."""

    query: str
    tables: tuple[str, ...]
    #: Around each expression.
    around: str = "{}"

    def sql(self, expressions: Sequence[str], table: str) -> str:
        """The query with some expressions over a table."""
        columns = ", ".join(
            f"{self.around.format(expression)} as c{number}" for number, expression in enumerate(expressions)
        )
        return self.query.format(columns=columns, table=table)


_ROWS: Final = Shape("select id, {columns} from {table}", ("tame", "wild", "one", "none"))
ROWS: Final = (_ROWS,)
AGGREGATES: Final = (
    Shape("select {columns} from {table}", ("tame", "one", "none")),
    Shape("select key, {columns} from {table} group by key", ("tame", "one", "none")),
    Shape("select id >> 1 as pair, {columns} from {table} group by id >> 1", ("wild",)),
    Shape("select key, {columns} from {table} group by key", ("tame",), "{} filter (where small_c > 2)"),
    Shape("select id, {columns} from {table}", ("tame",), "{} over (partition by key)"),
    Shape(
        "select id, {columns} from {table}",
        ("tame",),
        "{} over (partition by key order by id rows between 3 preceding and 1 following)",
    ),
)
#: Single rows of the wild table, for expressions that fail somewhere in it: of several errors in a table, either may
#: come first.
BLOCKS: Final = tuple(
    Shape("select id, {columns} from {table} where id = " + row, ("wild",))
    for row in ("0", "31", "62", "93", "124", "155", "186", "217")
)
