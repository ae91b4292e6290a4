"""Read sources that are not tables: rows in the query itself, and `spark.range`."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import literal
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.reading.expressions import ExpressionReader
from wallaby.relations.expression import Column
from wallaby.relations.relation import Range, Rows
from wallaby.relations.types import BOOLEAN

#: A range is cut into splits, which are listed in the plan.
_RANGE_MAX: Final = 1 << 33


def read_local(node: Node, reader: ExpressionReader) -> Rows | None:
    """Read a `LocalRelation`."""
    found = [reader.column(attribute) for attribute in node.nodes("output")]
    columns = tuple(column for column in found if column is not None)
    written = node.field("data")
    if written is None:
        reader.refuse("LocalRelation", "it has too many rows to send with the query", "write them to Parquet")
        return None
    if not isinstance(written, list) or len(columns) < len(found):
        return None
    rows = [_row(values, columns) for values in written]
    known = tuple(row for row in rows if row is not None)
    if len(known) < len(rows):
        reader.refuse("LocalRelation", "it has values that cannot be read")
        return None
    return Rows(known, columns) if columns else _without_columns(len(known), reader)


def read_one_row(_node: Node, reader: ExpressionReader) -> Rows:
    """Read a `OneRowRelation`: one row without columns."""
    return _without_columns(1, reader)


def read_range(node: Node, reader: ExpressionReader) -> Range | None:
    """Read a `Range`."""
    start, end, step = (_number(node, name) for name in ("start", "end", "step"))
    (attribute,) = node.nodes("output")
    column = reader.column(attribute)
    count = max(0, -((start - end) // step))
    if count > _RANGE_MAX:
        reader.refuse("Range", f"it has more than {_RANGE_MAX} numbers")
        return None
    return None if column is None else Range(start, step, count, column)


def _number(node: Node, name: str) -> int:
    found = node.field(name)
    if not isinstance(found, int):
        raise UnreadablePlanError(f"{node.name}.{name} is not a number.")
    return found


def _row(values: object, columns: tuple[Column, ...]) -> tuple[object, ...] | None:
    if not isinstance(values, list) or len(values) != len(columns):
        return None
    made = [literal(value, column.type) for value, column in zip(values, columns, strict=True)]
    known = tuple(value.value for value in made if value is not None)
    return known if len(known) == len(values) else None


def _without_columns(count: int, reader: ExpressionReader) -> Rows:
    """A placeholder column for rows that are only counted."""
    column = Column(reader.fresh_id(), "row", BOOLEAN, nullable=False)
    return Rows(((True,),) * count, (column,))
