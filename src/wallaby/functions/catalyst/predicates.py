"""Comparisons, logic and tests for NULL.

Equality and order of floating-point numbers are Spark's in all kernels: NaN equals itself and is the largest, and
the two zeros are equal.
"""

from __future__ import annotations

import math
from typing import Final

from wallaby.catalyst.data_types import BOOLEANS, COMPARABLE, FLOATING, ORDERED, literal
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import INTEGER, DataType

_BRANCHES: Final = "the second side is not evaluated (so raises no error) where the first decides"


def _in(entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType) -> Expression | Refusal:
    """With something else than constants it is one equality after the other, which guard each other's errors."""
    value, *items = arguments
    if not items:
        return Refusal("the list of IN is empty")
    if all(isinstance(item, Literal) for item in items):
        return Call(entry.function, arguments, kind, node.nullable)
    equal = tuple(Call("eq", (value, item), kind, value.nullable or item.nullable) for item in items)
    return equal[0] if len(equal) == 1 else Call("or", equal, kind, node.nullable)


def _in_set(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """A long list. Of NaN it is known that it is not in one without it, even if there is a NULL."""
    (value,) = arguments
    values = node.value if isinstance(node.value, list) else []
    items = [literal(item, value.type) for item in values]
    found = [item for item in items if item is not None]
    if not found or len(found) != len(items):
        return Refusal("the list of IN holds values that cannot be read")
    # A set has no order; a plan must have one.
    found.sort(key=lambda item: (item.value is not None, str(item)))
    contained = Call(entry.function, (value, *found), kind, node.nullable)
    if found[0].value is not None or value.type.kind not in FLOATING or any(map(_is_nan, found)):
        return contained
    no_number = Call("is_nan", (value,), kind, nullable=False)
    return Call("if", (no_number, Literal(False, kind), contained), kind, node.nullable)


def _is_nan(item: Literal) -> bool:
    return isinstance(item.value, float) and math.isnan(item.value)


def _not(entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType) -> Expression | Refusal:
    """Catalyst has no inequality, only the negation of an equality."""
    (argument,) = arguments
    if isinstance(argument, Call) and argument.function == "eq":
        return Call("ne", argument.arguments, kind, node.nullable)
    return Call(entry.function, arguments, kind, node.nullable)


def _enough(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """What `dropna` with a threshold asks."""
    least = node.field("n")
    if not isinstance(least, int) or not arguments:
        return Refusal("it asks for no number of values")
    return Call(entry.function, (Literal(least, INTEGER), *arguments), kind, node.nullable)


ENTRIES: Final = (
    exact("EqualTo", "eq", COMPARABLE),
    exact("EqualNullSafe", "eq_null_safe", COMPARABLE),
    exact("LessThan", "lt", COMPARABLE),
    exact("LessThanOrEqual", "le", COMPARABLE),
    exact("GreaterThan", "gt", COMPARABLE),
    exact("GreaterThanOrEqual", "ge", COMPARABLE),
    guarded("And", "and", BOOLEANS, guard=_BRANCHES),
    guarded("Or", "or", BOOLEANS, guard=_BRANCHES),
    exact("Not", "not", BOOLEANS, build=_not),
    exact("IsNull", "is_null"),
    exact("IsNotNull", "is_not_null"),
    exact("In", "in", COMPARABLE, build=_in),
    exact("InSet", "in", ORDERED, build=_in_set),
    guarded("IsNaN", "is_nan", FLOATING, guard="NULL is not NaN"),
    guarded("AtLeastNNonNulls", "at_least_non_null", guard="NaN counts as NULL", build=_enough),
)
