"""Calls of Java methods, which represent functions without a Catalyst class in optimized plans.

They are read as if such a class existed, named after the Java class and the method: `Base64#encode`. The entry is in
the family of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import DataType

_SPARK: Final = "org.apache.spark.sql."


def _static(node: Node) -> Node:
    """Name a static call after the class and the method."""
    return replace(node, class_name=_method(node, str(node.field("staticObject"))))


def _on_object(node: Node) -> Node:
    """Name a call on an object, which is the first child: a constant of a Java class, or a value."""
    target = node.children[0]
    value = target.value
    if target.name != "Literal" or not isinstance(value, dict) or "opaque" not in value:
        return replace(node, class_name=_method(node, "Value"))
    return replace(node, class_name=_method(node, str(value["opaque"])), children=node.children[1:])


def _method(node: Node, class_name: str) -> str:
    return f"{_SPARK}{class_name.rpartition('.')[2].rstrip('$')}#{node.field('functionName')}"


def configured(
    *wanted: object,
) -> Callable[[Entry, Node, tuple[Expression, ...], DataType], Expression | Refusal]:
    """Use the first argument; the others must be these constants, where a set lists alternatives."""

    def build(
        entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
    ) -> Expression | Refusal:
        given = [a.value if isinstance(a, Literal) else None for a in arguments[1:]]
        same = len(given) == len(wanted) and all(
            (isinstance(want, tuple) and isinstance(have, str) and have.lower() in want) or have == want
            for have, want in zip(given, wanted, strict=True)
        )
        if not same:
            return Refusal("it is not supported with these arguments")
        return Call(entry.function, arguments[:1], kind, node.nullable)

    return build


FAMILY: Final = Family(
    "Methods of Java's",
    (
        guarded(
            "StaticInvoke",
            "",
            guard="if the method is in this table",
            rewrite=_static,
            examples=("base64({binary})",),
        ),
        guarded(
            "Invoke",
            "",
            guard="if the method is in this table",
            rewrite=_on_object,
            examples=("to_json({struct})",),
        ),
    ),
)
