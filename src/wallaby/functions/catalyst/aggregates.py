"""Aggregate functions, and the decimal wrappers that Catalyst puts around them.

Sums and averages of floating-point numbers depend on the order of the rows, in Spark too: they agree to a relative
1e-9, everything else is equal.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import COMPARABLE, FLOATING, INTEGRAL, INTERVALS, NUMERIC, ORDERED
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded, mode_of, unsupported
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, LONG, STRING, DataType, Kind, array

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions"
_LITERAL: Final = f"{_EXPRESSIONS}.Literal"
_SAME: Final = f"{_EXPRESSIONS}.EqualNullSafe"
_ARRAY: Final = f"{_EXPRESSIONS}.CreateArray"
_IF: Final = f"{_EXPRESSIONS}.If"
_IS_NULL: Final = f"{_EXPRESSIONS}.IsNull"
_MAX: Final = f"{_EXPRESSIONS}.aggregate.Max"
#: Functions for which the order of an array does not matter.
_ORDERLESS: Final = frozenset(
    {"SortArray", "ArraySort", "Size", "ArrayMin", "ArrayMax", "ArrayContains", "ArraysOverlap"}
)
#: Functions that do something with each element alone, if their lambda does not ask for its place.
_OF_ELEMENTS: Final = frozenset({"ArrayTransform", "ArrayFilter"})
#: Our names for aggregates under such a function.
_COLLECTED: Final = {"CollectList": "CollectListUnordered", "CollectSet": "CollectSetUnordered"}
_UNORDERED: Final = "Wallaby's name for it inside a function that ignores order, such as sort_array"
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
#: By so many digits a sum of decimals is longer than what it sums.
_MORE_DIGITS: Final = 10
_FLOATS: Final = "as doubles, to a relative 1e-9"
_SPREAD: Final = f"{_FLOATS}; to fewer digits where a mean is ten million times the spread"
_TIES: Final = "among ties, any row may come first"
_SKETCH: Final = "HyperLogLogPlusPlus"
_SKETCH_SEED: Final = 42
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
    return _aggregation(entry, node, counted, kind)


def _statistic(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not node.flag("nullOnDivideByZero"):
        return Refusal(
            "with spark.sql.legacy.statisticalAggregate it is not a number where others have NULL",
            "set spark.sql.legacy.statisticalAggregate=false",
        )
    return _aggregation(entry, node, arguments, kind)


def _percentile(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, part, *frequency = arguments
    if not isinstance(part, Literal) or part.type.kind is not Kind.DOUBLE or part.value is None:
        return Refusal("its percentages are no constants", "write the numbers themselves")
    if not all(isinstance(f, Literal) and f.value == 1 for f in frequency):
        return Refusal("frequencies have no kernel yet", "repeat the rows")
    if value.type.kind not in NUMERIC or kind.kind is not Kind.DOUBLE:
        return Refusal(f"it is not supported on {value.type}")
    if frequency == [] and node.flag("legacyCalculation"):
        return Refusal("with spark.sql.legacy.percentileDiscCalculation it is another value")
    reverse = Literal(node.flag("reverse"), BOOLEAN)
    return Aggregation(entry.function, (value, part, reverse), kind, node.nullable)


def _several_by(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    *_, count = arguments
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        return Refusal("how many is not a constant", "write the number itself")
    function = "min_by_k" if node.flag("reverse") else entry.function
    return Aggregation(function, arguments, kind, node.nullable)


def _mode(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if isinstance(arguments[0], Literal):
        return Refusal("it is a constant", "write the constant itself")
    reverse = node.field("reverseOpt")
    if not isinstance(reverse, bool):
        return Refusal(
            "of values that are there as often it takes any", "use mode() WITHIN GROUP (ORDER BY …)"
        )
    return Aggregation(entry.function, (*arguments, Literal(reverse, BOOLEAN)), kind, node.nullable)


def _order_as_arguments(node: Node) -> Node:
    """Text and separator are followed by the key of the order, and by what it says of direction and NULL."""
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
    made = replace(function, distinct=distinct, filter=rest[0] if rest else None)
    if node.children[0].name != _SKETCH:
        return made
    tables = Literal(node.children[0].value, STRING)
    return Call("sketch_estimate", (made, tables), LONG, nullable=False)


def _sketch(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    """The set of places and ranks of the values' hashes, of which the whole aggregation makes an estimate."""
    if not isinstance(node.value, str):
        return Refusal("there are no tables for this precision")
    value = _normalized(arguments[0])
    bits = Literal(int(node.value.partition(";")[0]), INTEGER)
    hashed = Call("xxhash64", (Literal(_SKETCH_SEED, LONG), value), LONG, nullable=False)
    place = Call("sketch_place", (hashed, bits), INTEGER, value.nullable)
    if value.nullable:
        absent = Call(functions.IS_NOT_NULL, (value,), BOOLEAN, nullable=False)
        place = Call("case", (absent, place), INTEGER, nullable=True)
    return Aggregation(entry.function, (place,), array(INTEGER), nullable=False)


def _odd_pivot(
    _entry: Entry, node: Node, _arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    return Refusal(
        f"a pivot by a column of type {node.children[0].type} is not supported yet", "cast the column"
    )


def _normalized(argument: Expression) -> Expression:
    """Among distinct values, Spark takes both zeros for one."""
    if argument.type.kind not in FLOATING or isinstance(argument, Literal):
        return argument
    return Call("normalize", (argument,), argument.type, argument.nullable)


def _taken_apart(node: Node) -> Node:
    """An aggregation that gives an array as the array of several that give its elements."""
    match node.children[0].name:
        case "PivotFirst":
            return _without_pivot(node)
        case "Percentile":
            return _one_percentage_each(node)
        case _:
            return node


def _one_percentage_each(node: Node) -> Node:
    """`percentile(x, [a, b])` as `[percentile(x, a), percentile(x, b)]`; of no values it is NULL as a whole."""
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
    """`pivot_first(p, x, [a, b])`, the array of the values beside a and b, as `[max(x) filter (p <=> a), …]`.

    Catalyst has grouped by the pivot column before, so at most one row of a group has each of its values.
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


def in_any_order(entry: Entry) -> Entry:
    """An entry which, if it takes no notice of the order of an array, may stand around a collected one."""
    return replace(entry, rewrite=_with_unordered) if entry.catalyst in _ORDERLESS else entry


def _with_unordered(node: Node) -> Node:
    return replace(node, children=tuple(map(_unordered, node.children)))


def _unordered(node: Node) -> Node:
    """An array of which only the elements matter: collected ones may come in any order."""
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
        # Of both zeros it keeps the first.
        return "float" not in node.type and "double" not in node.type
    return node.name in _OF_ELEMENTS and len(node.children[1].children) == 2


def _collect(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not node.flag("ignoreNulls"):
        return Refusal("NULLs are not collected here")
    if entry.function == "collect_set" and arguments[0].type.kind in FLOATING:
        return Refusal("which floating-point numbers are the same is another question for Spark here")
    return Aggregation(entry.function, arguments, kind, node.nullable)


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
    """The decimal whose unscaled value a constant is."""
    value = constant.value
    number = {"decimal": f"{value}e-{scale}"} if isinstance(value, int) else None
    return replace(constant, type=f"decimal({precision},{scale})", value=number)


ENTRIES: Final = (
    exact("Count", "count", build=_count),
    guarded(
        "Sum",
        "sum",
        NUMERIC | INTERVALS,
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
    replace(exact("AggregateExpression", "", build=_applied), rewrite=_taken_apart),
    guarded("PivotFirst", "max", guard="not by a floating-point column", build=_odd_pivot),
    guarded(
        _ONLY,
        "max",
        ORDERED,
        guard="Wallaby's name for Catalyst's form of several DISTINCT",
        build=_aggregation,
    ),
    replace(unsupported("MakeDecimal", "it wraps something other than a sum"), rewrite=_without_wrapper),
    unsupported("First", "it depends on the order of rows", "use min or max"),
    unsupported("Last", "it depends on the order of rows", "use min or max"),
    unsupported("CollectList", "the order of its elements depends on that of the rows", "use sort_array"),
    unsupported("CollectSet", "the order of its elements depends on that of the rows", "use sort_array"),
    guarded("CollectListUnordered", "collect_list", COMPARABLE, guard=_UNORDERED, build=_collect),
    guarded("CollectSetUnordered", "collect_set", ORDERED, guard=_UNORDERED, build=_collect),
    *(
        guarded(name, function, build=_statistic, guard=_SPREAD)
        for name, function in (
            ("StddevSamp", "stddev_samp"),
            ("StddevPop", "stddev_pop"),
            ("VarianceSamp", "var_samp"),
            ("VariancePop", "var_pop"),
            ("CovSample", "covar_samp"),
            ("CovPopulation", "covar_pop"),
            ("Corr", "corr"),
            ("Skewness", "skewness"),
            ("Kurtosis", "kurtosis"),
        )
    ),
    *(
        guarded(name, function, build=_aggregation, guard=_FLOATS)
        for name, function in (
            ("RegrReplacement", "regr_sxx"),
            ("RegrSXY", "regr_sxy"),
            ("RegrSlope", "regr_slope"),
            ("RegrIntercept", "regr_intercept"),
            ("RegrR2", "regr_r2"),
        )
    ),
    exact("BitAndAgg", "bit_and", INTEGRAL, build=_aggregation),
    exact("BitOrAgg", "bit_or", INTEGRAL, build=_aggregation),
    exact("BitXorAgg", "bit_xor", INTEGRAL, build=_aggregation),
    guarded("Percentile", "percentile", guard="the percentages are constants", build=_percentile),
    guarded("PercentileDisc", "percentile_disc", guard="one percentage, a constant", build=_percentile),
    guarded("MinBy", "min_by", COMPARABLE, guard=_TIES, build=_aggregation),
    guarded("MaxBy", "max_by", COMPARABLE, guard=_TIES, build=_aggregation),
    guarded("MaxMinByK", "max_by_k", COMPARABLE, guard=_TIES, build=_several_by),
    guarded("Mode", "mode", ORDERED, guard="with an order, which decides between values", build=_mode),
    replace(
        guarded("ListAgg", "listagg", guard=f"of text, with an order by one key; {_TIES}", build=_listagg),
        rewrite=_order_as_arguments,
    ),
    unsupported("ApproximatePercentile", "it depends on how rows are partitioned", "use percentile"),
    unsupported("HistogramNumeric", "it depends on how rows are partitioned"),
    guarded(
        _SKETCH,
        "collect_set",
        ORDERED,
        guard="Spark's own sketch, by its hashes and its tables, for deviations from 0.0022 to 0.27",
        build=_sketch,
    ),
)
