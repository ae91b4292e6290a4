"""Aggregate functions, and the decimal wrappers that Catalyst puts around them.

Sums and averages of floating-point numbers depend on the order of the rows, in Spark too: they agree to a relative
1e-9, everything else is equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import COMPARABLE, FLOATING, NUMERIC, ORDERED
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded, mode_of, unsupported
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Aggregation, Call, Expression, Literal
from wallaby.plan.types import DataType

_NO_KERNEL: Final = "there is no kernel for it yet"
#: Our name for a use of First that does not depend on the order of rows.
_ONLY: Final = "OnlyOfAGroupSet"


def _aggregation(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    return Aggregation(entry.function, arguments, kind, node.nullable, mode=mode)


def _count(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Constants that are not NULL count every row, like `*`."""
    counted = tuple(a for a in arguments if not isinstance(a, Literal) or a.nullable)
    if len(counted) > 1:
        return Refusal(
            "COUNT of several columns has no kernel yet", "count one column, or count in a subquery"
        )
    return _aggregation(entry, node, counted, kind)


def _applied(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    function, *rest = arguments
    if not isinstance(function, Aggregation) or node.word("mode") != "Complete":
        return Refusal("it is not a whole aggregation")
    distinct = node.flag("isDistinct")
    if distinct and not function.arguments:
        return Refusal("COUNT(DISTINCT) of a constant has no kernel")
    if distinct:
        function = replace(function, arguments=tuple(map(_normalized, function.arguments)))
    return replace(function, distinct=distinct, filter=rest[0] if rest else None)


def _normalized(argument: Expression) -> Expression:
    """Among distinct values, Spark takes both zeros for one."""
    if argument.type.kind not in FLOATING:
        return argument
    return Call("normalize", (argument,), argument.type, argument.nullable)


def only_of_group_sets(node: Node) -> Node:
    """An expression in which `first(x, true) filter (gid = n)` is the one value that the filter lets through.

    Catalyst evaluates several DISTINCT so, over groups with at most one such row each; there it is `max(x)`.
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
    """`MakeDecimal(sum(UnscaledValue(x)))`, as Catalyst sums short decimals, is `sum(x)` of the wrapper's type.

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
    if function.children[0].name != "UnscaledValue":
        return node
    inner = replace(function, type=node.type, nullable=node.nullable, children=function.children[0].children)
    return replace(whole, type=node.type, nullable=node.nullable, children=(inner, *whole.children[1:]))


ENTRIES: Final = (
    exact("Count", "count", build=_count),
    guarded(
        "Sum",
        "sum",
        NUMERIC,
        guard="an overflow of Catalyst's type is an error (ANSI) or NULL, or wraps around (LEGACY)",
        build=_aggregation,
    ),
    guarded(
        "Average",
        "avg",
        NUMERIC,
        guard="decimals by an exact sum and one division, rounded half up to Catalyst's type; others as doubles",
        build=_aggregation,
    ),
    exact("Min", "min", COMPARABLE, build=_aggregation),
    exact("Max", "max", COMPARABLE, build=_aggregation),
    exact("AggregateExpression", "", build=_applied),
    guarded(
        _ONLY,
        "max",
        ORDERED,
        guard="our name for what Catalyst makes of several DISTINCT",
        build=_aggregation,
    ),
    replace(
        unsupported("MakeDecimal", "it stands around something else than a sum"), rewrite=_without_wrapper
    ),
    unsupported("First", "it depends on the order of rows", "use min or max"),
    unsupported("Last", "it depends on the order of rows", "use min or max"),
    unsupported("CollectList", _NO_KERNEL),
    unsupported("CollectSet", _NO_KERNEL),
    unsupported("StddevSamp", _NO_KERNEL),
    unsupported("VarianceSamp", _NO_KERNEL),
    unsupported("HyperLogLogPlusPlus", _NO_KERNEL, "use count(distinct …)"),
)
