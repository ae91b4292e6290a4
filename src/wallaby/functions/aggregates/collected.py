"""Collect the values of a group as an array, where the order of its elements does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import COMPARABLE, FLOATING, ORDERED
from wallaby.catalyst.node import Node
from wallaby.functions.aggregate_sql import AggregateSql
from wallaby.functions.entry import Entry, Refusal, guarded, unsupported
from wallaby.functions.family import Family
from wallaby.relations.expression import Aggregation, Expression
from wallaby.relations.types import DataType
from wallaby.sql.words import cast

#: Functions for which the order of an array does not matter.
_ORDERLESS: Final = frozenset(
    {"SortArray", "ArraySort", "Size", "ArrayMin", "ArrayMax", "ArrayContains", "ArraysOverlap"}
)
#: Functions that treat each element separately, if their lambda does not use its position.
_OF_ELEMENTS: Final = frozenset({"ArrayTransform", "ArrayFilter"})
#: Our names for aggregates under such a function.
_COLLECTED: Final = {"CollectList": "CollectListUnordered", "CollectSet": "CollectSetUnordered"}
_UNORDERED: Final = "Wallaby's name for it inside a function that ignores order, such as sort_array"


def in_any_order(entry: Entry) -> Entry:
    """Extend an entry that ignores the order of an array so that it accepts a collected one."""
    return replace(entry, rewrite=_with_unordered) if entry.catalyst in _ORDERLESS else entry


def _with_unordered(node: Node) -> Node:
    return replace(node, children=tuple(map(_unordered, node.children)))


def _unordered(node: Node) -> Node:
    """Read an array whose order does not matter: collected elements may come in any order."""
    if _keeps_elements(node):
        return replace(node, children=(_unordered(node.children[0]), *node.children[1:]))
    function = node.children[0] if node.name == "AggregateExpression" else node
    if function is node or function.name not in _COLLECTED:
        return node
    own = replace(function, class_name=_COLLECTED[function.name])
    return replace(node, children=(own, *node.children[1:]))


def _keeps_elements(node: Node) -> bool:
    """Does a function give the same elements whatever the order of its array?"""
    if node.name == "ArrayDistinct":
        # It keeps the first of the two zeros.
        return "float" not in node.type and "double" not in node.type
    return node.name in _OF_ELEMENTS and len(node.children[1].children) == 2


def _collect(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not node.flag("ignoreNulls"):
        return Refusal("collecting NULLs is not supported")
    if entry.function == "collect_set" and arguments[0].type.kind in FLOATING:
        return Refusal("Spark compares floating-point numbers differently here")
    return Aggregation(entry.function, arguments, kind, node.nullable)


def _collected(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    distinct = "DISTINCT " if aggregation.function == "collect_set" or aggregation.distinct else ""
    values = f"list({distinct}{arguments[0]}) FILTER (WHERE {arguments[0]} IS NOT NULL){over}"
    return f"coalesce({values}, {cast('[]', aggregation.type)})"


FAMILY: Final = Family(
    "Aggregates",
    (
        unsupported("CollectList", "the order of its elements depends on that of the rows", "use sort_array"),
        unsupported("CollectSet", "the order of its elements depends on that of the rows", "use sort_array"),
        guarded(
            "CollectListUnordered",
            "collect_list",
            COMPARABLE,
            guard=_UNORDERED,
            build=_collect,
            sql=AggregateSql(_collected),
            examples=(
                "sort_array(collect_list({any}))",
                "size(collect_list({int}))",
                "array_sort(array_distinct(collect_list({string})))",
                "sort_array(collect_list(struct({int} as a, {string} as b)), false)",
                "sort_array(transform(filter(collect_list({int}), x -> x > 0), x -> -x))",
            ),
            shown_as="CollectList",
        ),
        guarded(
            "CollectSetUnordered",
            "collect_set",
            ORDERED,
            guard=_UNORDERED,
            build=_collect,
            sql=AggregateSql(_collected),
            examples=("sort_array(collect_set({whole}), false)", "array_max(collect_set({date}))"),
            shown_as="CollectSet",
        ),
    ),
)
