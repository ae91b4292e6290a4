"""Arrays, structs and maps: made, taken apart, searched and changed; and functions of functions over them."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from wallaby.catalyst.data_types import ARRAYS, COMPARABLE, DATES, INTEGRAL, MAPS, READABLE, STRUCTS, TEXT
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.functions.catalyst.entry import Build, Entry, Refusal, State, exact, guarded, plain, unsupported
from wallaby.functions.catalyst.strings import split_part
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, STRING, DataType, Kind

#: Functions that Catalyst has for text and for arrays under one name, and what they are called here for arrays.
OF_ARRAYS: Final = MappingProxyType({"Concat": "ConcatOfArrays", "Reverse": "ReverseOfArray"})
_OUTSIDE: Final = "a position outside of the array is an error (ANSI) or NULL"
_KEYS: Final = "a NULL or duplicate key is an error"
_CAN_FAIL: Final = "not with a condition that can fail: Spark stops at the first element that decides"
_ONE_KEY: Final = ("spark.sql.mapKeyDedupPolicy", "EXCEPTION")
_DAY_MICROS: Final = 86_400_000_000
_DAY_TIMES: Final = frozenset(
    {"interval day", "interval day to hour", "interval day to minute", "interval day to second"}
)
#: Characters that mean nothing but themselves in a regular expression of Java's.
_PLAIN: Final = re.compile(r"[^\\\[\]{}()*+?.^$|\x00]+")
_ESCAPED: Final = re.compile(r"\\([^A-Za-z0-9\s])|\[([^\\\[\]^&-])\]")
#: What `array_sort` compares by, if nothing is said: its parameters are $0 and $1.
_DEFAULT_ORDER: Final = (
    "If(And(IsNull($0),IsNull($1)),0,If(IsNull($0),1,If(IsNull($1),-1,"
    "If(LessThan($0,$1),-1,If(GreaterThan($0,$1),1,0)))))"
)
#: What Catalyst makes of that where no element is NULL.
_DEFAULT_WITHOUT_NULLS: Final = "If(LessThan($0,$1),-1,If(GreaterThan($0,$1),1,0))"


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


def _item(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    mode = EvalMode.ANSI if node.flag("failOnError") else EvalMode.TRY
    return Call(entry.function, arguments, kind, node.nullable, mode)


def _element_at(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if arguments[0].type.kind is Kind.MAP:
        return Call("map_value", arguments, kind, node.nullable)
    if node.field("defaultValueOutOfBound") is not None:
        return Refusal("it has a value for positions outside of the array")
    return _item(entry, node, arguments, kind)


def _size(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    made = Call(entry.function, arguments, kind, arguments[0].nullable)
    if not node.flag("legacySizeOfNull"):
        return made
    return Call("coalesce", (made, Literal(-1, INTEGER)), kind, nullable=False)


def _sort_array(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    match arguments[1]:
        case Literal(value=bool(ascending)):
            return Call("sort_up" if ascending else "sort_down", arguments[:1], kind, node.nullable)
        case _:
            return Refusal("the direction is not a constant")


def _array_sort(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    function = node.children[1]
    places = {part.id: f"${place}" for place, part in enumerate(function.children[1:])}
    shape = _shape(function.children[0], places)
    nulls = any(part.nullable for part in function.children[1:])
    if shape != _DEFAULT_ORDER and (nulls or shape != _DEFAULT_WITHOUT_NULLS):
        return Refusal("it has a comparator of its own", "use sort_array")
    return Call(entry.function, arguments[:1], kind, node.nullable)


def _shape(node: Node, places: dict[int | None, str]) -> str:
    if node.id in places:
        return places[node.id]
    if node.name == "Literal":
        return str(node.value)
    return f"{node.name}({','.join(_shape(child, places) for child in node.children)})"


def _split(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    text, pattern, limit = arguments
    if not isinstance(limit, Literal) or not isinstance(limit.value, int) or limit.value > 0:
        return Refusal("the number of parts is limited")
    separator = split_text(pattern.value) if isinstance(pattern, Literal) else None
    if separator is None:
        return Refusal("what it splits by is a regular expression, not just a text")
    return Call(entry.function, (text, Literal(separator, pattern.type)), kind, node.nullable)


def _map_of_text(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    text, *patterns = arguments
    between = [split_text(pattern.value) if isinstance(pattern, Literal) else None for pattern in patterns]
    if None in between:
        return Refusal("what stands between pairs, keys and values is a regular expression, not just a text")
    return Call(entry.function, (text, *(Literal(one, STRING) for one in between)), kind, node.nullable)


def split_text(pattern: object) -> str | None:
    """The only text that a regular expression finds; None if it is not of the simplest kind."""
    if not isinstance(pattern, str) or not pattern:
        return None
    found, at = "", 0
    while at < len(pattern):
        plain_part, escaped = _PLAIN.match(pattern, at), _ESCAPED.match(pattern, at)
        if plain_part is not None:
            found, at = found + plain_part[0], plain_part.end()
        elif escaped is not None:
            found, at = found + (escaped[1] or escaped[2]), escaped.end()
        else:
            return None
    return found


def _in_days(node: Node) -> Node:
    """A sequence of dates by a constant interval of whole days, as one by a number of days."""
    if len(node.children) != 3 or node.children[0].type != "date":
        return node
    start, stop, step = node.children
    micros = step.value
    whole = isinstance(micros, int) and not isinstance(micros, bool) and micros % _DAY_MICROS == 0
    if step.name != "Literal" or step.type not in _DAY_TIMES or not whole:
        return node
    assert isinstance(micros, int), "a day-time interval is a number of microseconds"
    return replace(node, children=(start, stop, replace(step, type="int", value=micros // _DAY_MICROS)))


def _insert(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if node.flag("legacyNegativeIndex"):
        return Refusal("with spark.sql.legacy.negativeIndexInArrayInsert positions count otherwise")
    return plain(entry, node, arguments, kind)


def _exists(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not node.flag("followThreeValuedLogic"):
        return Refusal("it is not supported with two-valued logic")
    return plain(entry, node, arguments, kind)


def _over(
    catalyst: str, function: str, *takes: frozenset[Kind], guard: str = "", build: Build | None = None
) -> Entry:
    """A function of functions: what it takes besides may be anything."""
    state = State.EXACT_WITH_GUARD if guard else State.EXACT
    return Entry(catalyst, function, state, (*takes, READABLE), note=guard, build=build)


def _with_keys(catalyst: str, function: str, *takes: frozenset[Kind]) -> Entry:
    """A map is made: what becomes of equal keys is a setting."""
    return Entry(catalyst, function, State.EXACT_WITH_GUARD, takes, note=_KEYS, requires=_ONE_KEY)


ENTRIES: Final = (
    exact("GetStructField", "field", STRUCTS, build=_field),
    exact("GetArrayStructFields", "fields", ARRAYS, build=_field),
    guarded("GetArrayItem", "item", ARRAYS, INTEGRAL, guard=_OUTSIDE, build=_item),
    replace(
        guarded("ElementAt", "element_at", ARRAYS | MAPS, COMPARABLE, guard=_OUTSIDE, build=_element_at),
        rewrite=split_part,
    ),
    exact("GetMapValue", "map_value", MAPS, COMPARABLE),
    exact("CreateArray", "array"),
    exact("CreateNamedStruct", "struct", build=_struct),
    _with_keys("CreateMap", "map"),
    exact("Size", "size", ARRAYS | MAPS, build=_size),
    exact("ArrayContains", "array_contains", ARRAYS, COMPARABLE),
    exact("ArrayPosition", "array_position", ARRAYS, COMPARABLE),
    exact("ArraysOverlap", "arrays_overlap", ARRAYS),
    exact("ArrayDistinct", "array_distinct", ARRAYS),
    exact("ArrayUnion", "array_union", ARRAYS),
    exact("ArrayIntersect", "array_intersect", ARRAYS),
    exact("ArrayExcept", "array_except", ARRAYS),
    exact("ArrayRemove", "array_remove", ARRAYS, COMPARABLE),
    exact("ArrayJoin", "array_join", ARRAYS, TEXT),
    exact("ArrayMin", "array_min", ARRAYS),
    exact("ArrayMax", "array_max", ARRAYS),
    exact("SortArray", "sort_up", ARRAYS, READABLE, build=_sort_array),
    _over("ArraySort", "sort_nulls_last", ARRAYS, guard="without a comparator", build=_array_sort),
    exact("Slice", "slice", ARRAYS, INTEGRAL),
    exact("ConcatOfArrays", "array_concat", ARRAYS),
    exact("ReverseOfArray", "array_reverse", ARRAYS),
    exact("Flatten", "flatten", ARRAYS),
    exact("ArrayRepeat", "array_repeat", READABLE, INTEGRAL),
    Entry(
        "Sequence",
        "sequence",
        State.EXACT_WITH_GUARD,
        (INTEGRAL | DATES,),
        note="dates by a constant number of days; a step in the wrong direction is an error",
        rewrite=_in_days,
    ),
    guarded(
        "StringSplit",
        "split",
        TEXT,
        TEXT,
        INTEGRAL,
        guard="by a constant text, without a limit",
        build=_split,
    ),
    exact("ArraysZip", "arrays_zip", ARRAYS),
    exact("ArrayInsert", "array_insert", ARRAYS, INTEGRAL, READABLE, build=_insert),
    exact("MapKeys", "map_keys", MAPS),
    exact("MapValues", "map_values", MAPS),
    exact("MapEntries", "map_entries", MAPS),
    _with_keys("MapFromArrays", "map_from_arrays", ARRAYS),
    _with_keys("MapFromEntries", "map_from_entries", ARRAYS),
    _with_keys("MapConcat", "map_concat", MAPS),
    _over("ArrayTransform", "transform", ARRAYS),
    _over("ArrayFilter", "filter", ARRAYS),
    _over("ArrayExists", "exists", ARRAYS, guard=_CAN_FAIL, build=_exists),
    _over("ArrayForAll", "forall", ARRAYS, guard=_CAN_FAIL),
    _over("ArrayAggregate", "aggregate", ARRAYS),
    _over("ZipWith", "zip_with", ARRAYS, ARRAYS),
    _over("TransformValues", "transform_values", MAPS),
    Entry(
        "TransformKeys",
        "transform_keys",
        State.EXACT_WITH_GUARD,
        (MAPS, READABLE),
        note=_KEYS,
        requires=_ONE_KEY,
    ),
    _over("MapFilter", "map_filter", MAPS),
    unsupported("MapZipWith", "it is not supported yet"),
    unsupported("MapSort", "how Spark groups maps with NULL values depends on more than the values"),
    replace(
        guarded(
            "StringToMap",
            "map_from_text",
            TEXT,
            guard=f"between constant texts, not patterns; {_KEYS}",
            build=_map_of_text,
        ),
        requires=_ONE_KEY,
    ),
    unsupported("Shuffle", "its result differs every time"),
)
