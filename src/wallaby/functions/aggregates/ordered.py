"""Aggregates that depend on an order of the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import COMPARABLE, FLOATING, ORDERED
from wallaby.catalyst.node import Node
from wallaby.functions.aggregate_sql import AggregateSql, Writer, constant, distinct_word, shown
from wallaby.functions.entry import Entry, Refusal, guarded, read_aggregation, unsupported
from wallaby.functions.family import Family
from wallaby.relations.expression import Aggregation, Column, Expression, Literal
from wallaby.relations.types import BOOLEAN, STRING, DataType, Kind
from wallaby.sql.types import is_comparable
from wallaby.sql.words import cast, field_sql, ordered, struct_sql, with_signs, without_signs

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions"
_LITERAL: Final = f"{_EXPRESSIONS}.Literal"
#: Our name for First and Last of an expression that is constant in each group.
_OF_KEYS: Final = "FirstOfKeys"
_ROWS: Final = "it depends on the order of rows"
_TIES: Final = "among ties, any row may come first"


def exact_keys(keys: Iterable[Column]) -> frozenset[int]:
    """The ids of grouping keys that are identical in all rows of a group; a floating-point key may have both zeros."""
    return frozenset(key.id for key in keys if key.type.kind in ORDERED - FLOATING)


def first_of_keys(node: Node, keys: frozenset[int]) -> Node:
    """Replace `first(x)` and `last(x)` by `max(x)` where grouping keys determine x."""
    if node.name != "AggregateExpression":
        return replace(node, children=tuple(first_of_keys(child, keys) for child in node.children))
    function, *rest = node.children
    if function.name not in ("First", "Last") or function.type in ("float", "double"):
        return node
    value = function.children[0]
    if not _columns_of(value) <= keys:
        return node
    return replace(node, children=(replace(function, class_name=_OF_KEYS, children=(value,)), *rest))


def _columns_of(node: Node) -> frozenset[int | None]:
    own = {node.id} if node.name == "AttributeReference" else set()
    return frozenset(own).union(*map(_columns_of, node.children))


def _several_by(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    *_, count = arguments
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        return Refusal("the number of values is not a constant", "write the number itself")
    function = "min_by_k" if node.flag("reverse") else entry.function
    return Aggregation(function, arguments, kind, node.nullable)


def _read_mode(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if isinstance(arguments[0], Literal):
        return Refusal("it is a constant", "write the constant itself")
    reverse = node.field("reverseOpt")
    if not isinstance(reverse, bool):
        return Refusal("among equally frequent values it returns any", "use mode() WITHIN GROUP (ORDER BY …)")
    return Aggregation(entry.function, (*arguments, Literal(reverse, BOOLEAN)), kind, node.nullable)


def _order_as_arguments(node: Node) -> Node:
    """Add the sort key, its direction and the position of NULL after text and separator."""
    text, separator, *orders = node.children
    if len(orders) != 1 or orders[0].name != "SortOrder":
        return replace(node, children=(text, separator))
    said = (orders[0].word("direction") == "Ascending", orders[0].word("nullOrdering") == "NullsFirst")
    flags = (Node(class_name=_LITERAL, type="boolean", nullable=False, value=flag) for flag in said)
    return replace(node, children=(text, separator, orders[0].children[0], *flags))


def _listagg(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    text, separator, *order = arguments
    if not order:
        return Refusal("without an order it depends on the order of rows", "add WITHIN GROUP (ORDER BY …)")
    if text.type.kind is not Kind.STRING or not isinstance(separator, Literal):
        return Refusal(f"it is not supported on {text.type}")
    between = Literal(separator.value or "", STRING)
    return Aggregation(entry.function, (text, between, *order), kind, node.nullable)


def _extreme(name: str) -> Writer:
    """The value in the row where another is least or largest; it may be NULL, the other may not."""

    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        key = ordered(arguments[1], aggregation.arguments[1].type)
        if aggregation.type.is_nested:
            kept = with_signs(arguments[0], aggregation.type)
            return without_signs(f"{name}({kept}, {key}){over}", aggregation.type)
        return cast(f"{name}({arguments[0]}, {key}){over}", aggregation.type)

    return write


def _extremes(name: str) -> Writer:
    """The values in the rows with the n least or largest values of another, in its order."""

    def write(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
        key = ordered(arguments[1], aggregation.arguments[1].type)
        # In a struct, because a NULL value would not count.
        kept = struct_sql([with_signs(arguments[0], aggregation.arguments[0].type)])
        found = f"{name}({kept}, {key}, {constant(aggregation, 2)}){over}"
        value = without_signs(field_sql("chosen", 0), aggregation.arguments[0].type)
        return f"list_transform({found}, lambda chosen: {value})"

    return write


def _write_mode(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Among equally frequent values, the least (in Spark's "reverse" order) or the largest."""
    direction = "ASC" if constant(aggregation, 1) is True else "DESC"
    return cast(f"mode({arguments[0]} ORDER BY {arguments[0]} {direction}){over}", aggregation.type)


def _joined(aggregation: Aggregation, arguments: Sequence[str], over: str) -> str:
    """Join text; the arguments are text, constant separator, sort key, ascending, and NULL first."""
    value, separator, key = arguments[:3]
    direction = "ASC" if constant(aggregation, 3) is True else "DESC"
    nulls = "FIRST" if constant(aggregation, 4) is True else "LAST"
    order = f"ORDER BY {key} {direction} NULLS {nulls}"
    if aggregation.distinct and key != value:
        # The text is a cast of the key, so there are as many pairs as texts.
        pairs = f"list(DISTINCT {struct_sql([key, value])}) FILTER (WHERE {value} IS NOT NULL){over}"
        texts = f"list_transform(list_sort({pairs}, '{direction}'), lambda e: {field_sql('e', 1)})"
        return f"array_to_string({texts}, {separator})"
    return f"string_agg({distinct_word(aggregation)}{value}, {separator} {order}){over}"


def _key_reason(aggregation: Aggregation) -> str | None:
    """Refuse a key whose type has no order."""
    key = aggregation.arguments[1].type
    return None if is_comparable(key) else f"{shown(aggregation)} by {key} is not supported"


def _listagg_reason(aggregation: Aggregation) -> str | None:
    key = aggregation.arguments[2].type
    if aggregation.distinct and key.is_floating:
        return f"{shown(aggregation)} by {key} is not supported"
    return None


FAMILY: Final = Family(
    "Aggregates",
    (
        unsupported("First", _ROWS, "use min or max"),
        unsupported("Last", _ROWS, "use min or max"),
        guarded(
            _OF_KEYS,
            "max",
            ORDERED - FLOATING,
            guard="Wallaby's name for first, last and any_value of what grouping keys determine",
            build=read_aggregation,
            examples=(
                "select key, first(key) f, any_value(key + 1) a, last(key, true) l from {table} group by key",
                "select string_a k, last(upper(string_a)) l, first(1) filter (where key > 2) f from {table} group by k",
                "select date_a d, small_b b, any_value(date_add(date_a, small_b)) a from {table} group by d, b",
                "select double_a k, last(cast(double_a as string)) l from {table} group by k",
            ),
            shown_as="First",
        ),
        guarded(
            "MinBy",
            "min_by",
            COMPARABLE,
            guard=_TIES,
            build=read_aggregation,
            sql=AggregateSql(_extreme("arg_min_null"), arity=2, takes_distinct=False, reason=_key_reason),
            examples=("min_by({any}, id)", "min_by({int}, struct({double}, {string}, id))"),
        ),
        guarded(
            "MaxBy",
            "max_by",
            COMPARABLE,
            guard=_TIES,
            build=read_aggregation,
            sql=AggregateSql(_extreme("arg_max_null"), arity=2, takes_distinct=False, reason=_key_reason),
            examples=("max_by({any}, id)", "max_by(struct({int}, {string}), struct({date}, id))"),
        ),
        guarded(
            "MaxMinByK",
            "max_by_k",
            COMPARABLE,
            guard=_TIES,
            build=_several_by,
            sql=AggregateSql(_extremes("arg_max"), arity=3, takes_distinct=False, reason=_key_reason),
            examples=("max_by({any}, id, 2)", "min_by({int}, struct({double}, id), 3)"),
        ),
        guarded(
            "Mode",
            "mode",
            ORDERED,
            guard="with an order, which decides between values",
            build=_read_mode,
            sql=AggregateSql(_write_mode, arity=2, takes_distinct=False),
            examples=("mode() within group (order by {any})", "mode() within group (order by {any} desc)"),
        ),
        guarded(
            "ListAgg",
            "listagg",
            guard=f"of text, with an order by one key; {_TIES}",
            build=_listagg,
            rewrite=_order_as_arguments,
            sql=AggregateSql(_joined, arity=5, reason=_listagg_reason),
            examples=(
                "listagg({string}, ',') within group (order by id)",
                "string_agg(distinct {string}) within group (order by {string} desc)",
            ),
        ),
    ),
    also_aggregates={
        "min_by_k": AggregateSql(_extremes("arg_min"), arity=3, takes_distinct=False, reason=_key_reason)
    },
)
