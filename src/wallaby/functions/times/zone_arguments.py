"""Time zones and units as arguments: the zones of an expression, and the valid arguments of a call.

The rules of the zone are a call's last argument, as text, even if a timestamp without a zone does not need them. Units
are constants in capital letters, as the readers of expressions write them.
"""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.node import Node
from wallaby.functions.scalar_sql import Reason, of_kinds
from wallaby.functions.times.clock import zone_reason
from wallaby.relations.expression import Call, Literal
from wallaby.relations.types import Kind

_TEXT: Final = (Kind.STRING,)


def session_zone(node: Node) -> tuple[str, ...]:
    """The session's zone, which Catalyst puts into every expression that needs one."""
    zone = node.field("timeZoneId")
    return (str(zone),)


def named_zones(node: Node) -> tuple[str, ...]:
    """The zones that constant texts among the arguments name."""
    texts = (child.value for child in node.children if child.name == "Literal" and child.type == "string")
    return tuple(str(text["string"]) for text in texts if isinstance(text, dict) and "string" in text)


def zoned(*places: tuple[Kind, ...]) -> Reason:
    """Refuse arguments that are not of these kinds, followed by a zone."""
    kinds = of_kinds(*places, _TEXT)

    def reason(call: Call) -> str | None:
        return kinds(call) or zone_reason(call)

    return reason


def unit_of(call: Call, place: int) -> str:
    """The unit that an argument names."""
    unit = call.arguments[place]
    assert isinstance(unit, Literal)
    return str(unit.value)


def unit_reason(place: int, units: frozenset[str], *places: tuple[Kind, ...]) -> Reason:
    """Refuse a call without a known unit at a position, arguments of these kinds, and a zone."""
    kinds = zoned(*places)

    def reason(call: Call) -> str | None:
        unit = call.arguments[place]
        known = isinstance(unit, Literal) and unit.value in units
        return kinds(call) if known else f"{call.function} of this unit is not supported"

    return reason
