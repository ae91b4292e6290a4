"""Wrappers that Catalyst puts around aggregate functions, and functions that only its rules create."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import FLOATING, ORDERED
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded, read_aggregation, unsupported
from wallaby.functions.family import Family
from wallaby.relations.expression import Aggregation, Call, Expression, Literal
from wallaby.relations.types import LONG, STRING, DataType

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions"
_LITERAL: Final = f"{_EXPRESSIONS}.Literal"
_SAME: Final = f"{_EXPRESSIONS}.EqualNullSafe"
_ARRAY: Final = f"{_EXPRESSIONS}.CreateArray"
_IF: Final = f"{_EXPRESSIONS}.If"
_IS_NULL: Final = f"{_EXPRESSIONS}.IsNull"
_MAX: Final = f"{_EXPRESSIONS}.aggregate.Max"
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
#: The additional digits of a sum of decimals.
_MORE_DIGITS: Final = 10
_SKETCH: Final = "HyperLogLogPlusPlus"
#: Our name for a use of First that does not depend on the order of rows.
_ONLY: Final = "OnlyOfAGroupSet"


def _applied(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    function, *rest = arguments
    if not isinstance(function, Aggregation) or node.word("mode") != "Complete":
        return Refusal("it is only a part of an aggregation")
    distinct = node.flag("isDistinct")
    if distinct and not function.arguments:
        return Refusal("COUNT(DISTINCT) of a constant is not supported")
    if distinct:
        function = replace(function, arguments=tuple(map(normalized, function.arguments)))
    made = replace(function, distinct=distinct, filter=rest[0] if rest else None)
    if node.children[0].name != _SKETCH:
        return made
    tables = Literal(node.children[0].value, STRING)
    return Call("sketch_estimate", (made, tables), LONG, nullable=False)


def _odd_pivot(
    _entry: Entry, node: Node, _arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    return Refusal(
        f"a pivot by a column of type {node.children[0].type} is not supported yet", "cast the column"
    )


def normalized(argument: Expression) -> Expression:
    """Normalize zeros: among distinct values, Spark treats both zeros as one."""
    if argument.type.kind not in FLOATING or isinstance(argument, Literal):
        return argument
    return Call("normalize", (argument,), argument.type, argument.nullable)


def _taken_apart(node: Node) -> Node:
    """Split an aggregation that gives an array into an array of aggregations that give its elements."""
    match node.children[0].name:
        case "PivotFirst":
            return _without_pivot(node)
        case "Percentile":
            return _one_percentage_each(node)
        case _:
            return node


def _one_percentage_each(node: Node) -> Node:
    """Turn `percentile(x, [a, b])` into `[percentile(x, a), percentile(x, b)]`; without values the whole is NULL."""
    function, *rest = node.children
    value, parts, *frequency = function.children
    constants = parts.value.get("array") if isinstance(parts.value, dict) else None
    if parts.name != "Literal" or parts.type != "array<double>" or not constants:
        return node

    def of(constant: object) -> Node:
        part = Node(class_name=_LITERAL, type="double", nullable=False, value=constant)
        alone = replace(function, type="double", children=(value, part, *frequency))
        return replace(node, type="double", nullable=True, children=(alone, *rest))

    whole = Node(class_name=_ARRAY, type=node.type, nullable=False, children=tuple(map(of, constants)))
    missing = Node(class_name=_IS_NULL, type="boolean", nullable=False, children=(of(constants[0]),))
    nothing = Node(class_name=_LITERAL, type=node.type, nullable=True, value=None)
    return Node(class_name=_IF, type=node.type, nullable=True, children=(missing, nothing, whole))


def _without_pivot(node: Node) -> Node:
    """Turn `pivot_first(p, x, [a, b])`, the values of x where p is a and b, into `[max(x) filter (p <=> a), …]`.

    Catalyst has already grouped by the pivot column, so at most one row of a group has each of its values.
    """
    function = node.children[0]
    pivot, value = function.children
    if not isinstance(function.value, list) or pivot.type in ("float", "double"):
        return node

    def beside(constant: object) -> Node:
        wanted = Node(class_name=_LITERAL, type=pivot.type, nullable=constant is None, value=constant)
        here = Node(class_name=_SAME, type="boolean", nullable=False, children=(pivot, wanted))
        only = Node(class_name=_MAX, type=value.type, children=(value,))
        return replace(node, type=value.type, nullable=True, children=(only, here))

    return Node(
        class_name=_ARRAY, type=node.type, nullable=False, children=tuple(map(beside, function.value))
    )


def only_of_group_sets(node: Node) -> Node:
    """Replace `first(x, true) filter (gid = n)`, where the filter leaves at most one row, by `max(x)`.

    This is how Catalyst evaluates several DISTINCT, over groups with at most one such row each.
    """
    if node.name != "AggregateExpression":
        return replace(node, children=tuple(map(only_of_group_sets, node.children)))
    function, *rest = node.children
    if function.name != "First" or not function.flag("ignoreNulls") or len(rest) != 1:
        return node
    named = [part.label for part in rest[0].children if part.name == "AttributeReference"]
    if rest[0].name != "EqualTo" or named != ["gid"]:
        return node
    only = replace(function, class_name=_ONLY, children=function.children[:1])
    return replace(node, children=(only, *rest))


def _without_wrapper(node: Node) -> Node:
    """Turn `MakeDecimal(sum(UnscaledValue(x)))`, Catalyst's sum of short decimals, into `sum(x)` of the wrapper's type.

    The wrapper's type has ten digits more than the argument, so neither form can overflow below 10^10 rows.
    """
    (whole,) = node.children
    if whole.name == "WindowExpression":
        inner = _without_wrapper(replace(node, children=whole.children[:1]))
        if inner.name != "AggregateExpression":
            return node
        return replace(whole, type=node.type, nullable=node.nullable, children=(inner, *whole.children[1:]))
    if whole.name != "AggregateExpression" or whole.children[0].name != "Sum":
        return node
    function = whole.children[0]
    (argument,) = function.children
    if argument.name == "UnscaledValue":
        (summed,) = argument.children
    elif argument.name == "Literal" and (scaled := _DECIMAL.fullmatch(node.type)):
        summed = _scaled(argument, int(scaled[1]) - _MORE_DIGITS, int(scaled[2]))
    else:
        return node
    inner = replace(function, type=node.type, nullable=node.nullable, children=(summed,))
    return replace(whole, type=node.type, nullable=node.nullable, children=(inner, *whole.children[1:]))


def _scaled(constant: Node, precision: int, scale: int) -> Node:
    """The decimal with a constant as its unscaled value."""
    value = constant.value
    number = {"decimal": f"{value}e-{scale}"} if isinstance(value, int) else None
    return replace(constant, type=f"decimal({precision},{scale})", value=number)


FAMILY: Final = Family(
    "Aggregates",
    (
        exact(
            "AggregateExpression",
            "",
            build=_applied,
            rewrite=_taken_apart,
            examples=("sum({int}) filter (where {small} > 2)",),
        ),
        guarded(
            "PivotFirst",
            "max",
            guard="not by a floating-point column",
            build=_odd_pivot,
            examples=(
                (
                    "select * from (select key, small_a, int_a x from {table}) "
                    "pivot (max(x) for small_a in (1, 2, null, 99))"
                ),
                (
                    "select * from (select key, boolean_a p, int_a x from {table}) "
                    "pivot (count(x), min(x) for p in (true, false))"
                ),
            ),
        ),
        guarded(
            _ONLY,
            "max",
            ORDERED,
            guard="Wallaby's name for Catalyst's form of several DISTINCT",
            build=read_aggregation,
            examples=(
                "select key, count(distinct int_a) c, sum(distinct small_b) s, max(date_c) m from {table} group by key",
            ),
            shown_as="First",
        ),
        unsupported("MakeDecimal", "it wraps something other than a sum", rewrite=_without_wrapper),
    ),
)
