"""Arrays, structs and maps: made, taken apart, searched and changed."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import ARRAYS, STRUCTS
from wallaby.catalyst.entry import Entry, Refusal, exact
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.plan.expression import Call, Expression, Literal
from wallaby.plan.types import INTEGER, DataType


def _number(node: Node, name: str) -> Literal:
    found = node.field(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise UnreadablePlanError(f"{node.name}.{name} is no number.")
    return Literal(found, INTEGER)


def _field(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """A field by its place, which Catalyst knows."""
    place = _number(node, "ordinal")
    return Call(entry.function, (arguments[0], place), kind, node.nullable)


def _struct(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Names and values in turn; the names are in the type."""
    return Call(entry.function, arguments[1::2], kind, node.nullable)


ENTRIES: Final = (
    exact("GetStructField", "field", STRUCTS, build=_field),
    exact("GetArrayStructFields", "fields", ARRAYS, build=_field),
    exact("CreateArray", "array"),
    exact("CreateNamedStruct", "struct", build=_struct),
)
