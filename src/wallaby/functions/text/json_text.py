"""JSON: read members of JSON texts, and write values as JSON.

Spark omits fields that are NULL, but writes elements that are NULL. The SQL of `to_json` follows the structure of the
type. NULL has no text of its own; the enclosing value decides how it is written.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final, NoReturn

from wallaby.catalyst.data_types import INTEGRAL, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import per_value
from wallaby.functions.casts.value_text import PLAIN_SCALE_MAX, value_text
from wallaby.functions.doubt import DOUBT, doubt
from wallaby.functions.entry import Entry, Refusal, guarded, unsupported
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, not_supported, of_kinds, template
from wallaby.functions.size import VALUE_BYTES, at_most, by_call, constant_size
from wallaby.functions.words import always, let
from wallaby.relations import functions
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType, Kind
from wallaby.relations.types import parts_of as types_in
from wallaby.sql.words import case, cast, field_sql, text

#: A JSON object in an example; its braces are not a placeholder.
_OBJECT: Final = (
    "concat('\\u007b\"a\": ', {int}, ', \"b\": [true, \"', {small}, '\"], \"c\": ', {boolean}, '\\u007d')"
)
_JSON_PATH: Final = re.compile(r"\$(?:\.[A-Za-z0-9_]+|\[[0-9]{1,6}\])+")
_IN_JSON: Final = INTEGRAL | TEXT | {Kind.DOUBLE, Kind.BOOLEAN, Kind.DATE}
#: The name of the member for malformed text.
_CORRUPT: Final = "_corrupt_record"


def _get_json_object(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    path = arguments[1]
    if not isinstance(path, Literal) or not _JSON_PATH.fullmatch(str(path.value)):
        return Refusal("the path is not a constant made of names and positions", "use a path like $.a.b[0]")
    return Call(entry.function, arguments, kind, node.nullable)


def _from_json(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read `from_json` as a struct whose members are each extracted separately."""
    options = node.field("options")
    plain = isinstance(options, dict) and str(options.get("opaque", "")).endswith("EmptyMap$")
    known = kind.kind is Kind.STRUCT and all(child.kind in _IN_JSON for child in kind.children)
    if not plain or not known or _CORRUPT in kind.names:
        return Refusal("it is not supported with these options, or for this type")
    (text,) = arguments
    members = tuple(
        Call(entry.function, (text, Literal(name, STRING)), child, nullable=True)
        for name, child in zip(kind.names, kind.children, strict=True)
    )
    there = Call(functions.IS_NOT_NULL, (text,), BOOLEAN, nullable=False)
    return Call("case", (there, Call("struct", members, kind, nullable=False)), kind, nullable=True)


def _read_to_json(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    return Call(entry.function, (*arguments, Literal(node.java, INTEGER)), kind, node.nullable)


_JSON_ESCAPES: Final = str.maketrans(
    {
        **{chr(code): f"\\u{code:04X}" for code in range(0x20)},
        "\b": "\\b",
        "\t": "\\t",
        "\n": "\\n",
        "\f": "\\f",
        "\r": "\\r",
        '"': '\\"',
        "\\": "\\\\",
    }
)


def json_text(text: str) -> str:
    """A text as a JSON string, with Jackson's escapes."""
    return f'"{text.translate(_JSON_ESCAPES)}"'


_PLAIN_DIGITS: Final = 15
_DIGITS_MAX: Final = 1000
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIRST_DAY: Final = date(1583, 1, 1)
_STEP: Final = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]{1,6})\]")


def json_path(path: str) -> list[str | int] | None:
    """The steps of a plain path, names and positions; None for any other path."""
    if not re.fullmatch(rf"\$(?:{_STEP.pattern})+", path):
        return None
    return [found[1] if found[1] is not None else int(found[2]) for found in _STEP.finditer(path)]


class _Whole(str):
    """A whole number as it is written."""

    __slots__ = ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        doubt("get_json_object")
    return found


def _odd(_text: str) -> NoReturn:
    doubt("get_json_object")


def _whole(text: str) -> _Whole:
    # Java writes -0 as 0, and does not read very long numbers.
    return doubt("get_json_object") if text == "-0" or len(text) > _DIGITS_MAX else _Whole(text)


def _fraction(text: str) -> float:
    return doubt("get_json_object") if len(text) > _DIGITS_MAX else float(text)


_DECODER: Final = json.JSONDecoder(
    parse_int=_whole, parse_float=_fraction, parse_constant=_odd, object_pairs_hook=_unique
)


def get_json_object(text: str, path: str) -> str | None:
    """The value at a path: a text, a whole number, true or false."""
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        doubt("get_json_object")
    for step in json_path(path) or ():
        if isinstance(found, dict) and isinstance(step, str):
            found = found.get(step)
        elif isinstance(found, list) and isinstance(step, int):
            found = found[step] if step < len(found) else None
        else:
            doubt("get_json_object")
        if found is None:
            return None
    if found is True or found is False:
        return "true" if found else "false"
    if not isinstance(found, str) or not _is_text(found):
        doubt("get_json_object")
    return str(found)


def json_member(text: str, name: str, kind: str, bits: int) -> str | None:
    """A member of an object, which must have the given kind, as text."""
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        doubt("from_json")
    value = found.get(name) if isinstance(found, dict) else doubt("from_json")
    match kind, value:
        case _, None:
            return None
        case "whole", _Whole() if (
            len(value) <= _PLAIN_DIGITS and -(1 << bits - 1) <= int(value) < 1 << bits - 1
        ):
            return str(value)
        case "double", _Whole() if len(value) <= _PLAIN_DIGITS:
            return str(value)
        case "double", float() if math.isfinite(value):
            return repr(value)
        case "boolean", bool():
            return "true" if value else "false"
        case "text", str() if not isinstance(value, _Whole) and _is_text(value):
            return value
        case "date", str() if _DATE.fullmatch(value) and _is_date(value):
            return value
        case _:
            return doubt("from_json")


def _is_date(text: str) -> bool:
    """Is it a date in today's calendar?"""
    try:
        return date.fromisoformat(text) >= _FIRST_DAY
    except ValueError:
        return False


def _is_text(text: str) -> bool:
    """Is it valid text, without unpaired surrogates?"""
    return not any("\ud800" <= character <= "\udfff" for character in text)


_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
_JSON: Final = {
    **{kind: ("whole", bits) for kind, bits in zip(_WHOLE, (8, 16, 32, 64), strict=True)},
    Kind.DOUBLE: ("double", 0),
    Kind.BOOLEAN: ("boolean", 0),
    Kind.STRING: ("text", 0),
    Kind.DATE: ("date", 0),
}


def _json_member(call: Call, sql: Sequence[str]) -> str:
    kind, bits = _JSON[call.type.kind]
    return cast(f"wallaby_json_member({sql[0]}, {sql[1]}, '{kind}', {bits})", call.type)


def _json_member_reason(call: Call) -> str | None:
    return _OF_TEXT(call) if call.type.kind in _JSON else not_supported(call)


_OF_TEXT: Final = of_kinds(Kind.STRING)
#: The longest form of a byte of a text, and the quotes and signs around a name.
_ESCAPED_BYTES: Final = 6
_NAME_SIGNS: Final = 4
_PLAIN: Final = frozenset({Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG})
_KEYS: Final = _PLAIN | {Kind.STRING}


def _json_size(call: Call) -> tuple[Sequence[float], float]:
    """A character takes up to six, a number some dozens, and the names of fields stand in every element of an array."""
    kinds = types_in(call.arguments[0].type)
    names = sum(constant_size(name) + _NAME_SIGNS for part in kinds for name in part.names)
    return (_ESCAPED_BYTES + names / VALUE_BYTES, 0), names + _ESCAPED_BYTES


def _write_to_json(call: Call, sql: Sequence[str]) -> str:
    return _written(sql[0], call.arguments[0].type, sql[1], 0)


def _written(value: str, type_: DataType, java: str, depth: int) -> str:
    """The text of a value; variable names are numbered by their depth."""
    match type_.kind:
        case Kind.STRUCT:
            return _object(value, type_, java, depth)
        case Kind.ARRAY:
            item = f"e{depth}"
            element = f"coalesce({_written(item, type_.element, java, depth + 1)}, 'null')"
            return _joined("[", f"list_transform({value}, lambda {item}: {element})", "]")
        case Kind.MAP:
            item = f"e{depth}"
            key, entry = type_.children
            name = _key(field_sql(item, 0), key)
            member = f"coalesce({_written(field_sql(item, 1), entry, java, depth + 1)}, 'null')"
            return _joined("{", f"list_transform({value}, lambda {item}: {name} || ':' || {member})", "}")
        case Kind.STRING:
            return f"wallaby_json_text({value})"
        case Kind.FLOAT | Kind.DOUBLE:
            number = value_text(value, type_, java)
            return case([(f"isfinite({value})", number)], f"'\"' || {number} || '\"'")
        case Kind.DATE:
            return f"'\"' || {value_text(value, type_, java)} || '\"'"
        case Kind.DECIMAL:
            return value_text(value, type_, java)
        case _:
            return f"CAST({value} AS VARCHAR)"


def _object(value: str, type_: DataType, java: str, depth: int) -> str:
    whole = f"o{depth}"
    members = [
        f"{text(json_text(name) + ':')} || {_written(field_sql(whole, place), child, java, depth + 1)}"
        for place, (name, child) in enumerate(zip(type_.names, type_.children, strict=True))
    ]
    listed = f"concat('{{', concat_ws(',', {', '.join(members)}), '}}')" if members else "'{}'"
    return let(value, whole, case([(f"{whole} IS NULL", "NULL")], listed))


def _key(value: str, type_: DataType) -> str:
    if type_.kind is Kind.STRING:
        return f"wallaby_json_text({value})"
    return f"'\"' || CAST({value} AS VARCHAR) || '\"'"


def _joined(begin: str, texts: str, end: str) -> str:
    return f"'{begin}' || array_to_string({texts}, ',') || '{end}'"


def _reason(call: Call) -> str | None:
    source = call.arguments[0].type
    return None if source.is_nested and _is_written(source) else not_supported(call)


def _is_written(type_: DataType) -> bool:
    match type_.kind:
        case Kind.STRUCT:
            return all(map(_is_written, type_.children))
        case Kind.ARRAY:
            return _is_written(type_.element)
        case Kind.MAP:
            return type_.children[0].kind in _KEYS and _is_written(type_.children[1])
        case Kind.DECIMAL:
            # Java writes other numbers with an exponent.
            return type_.scale <= PLAIN_SCALE_MAX
        case _:
            return type_.kind in _KEYS | {Kind.FLOAT, Kind.DOUBLE, Kind.DATE}


FAMILY: Final = Family(
    "Text",
    (
        guarded(
            "GetJsonObject",
            "get_json_object",
            TEXT,
            guard=f"a constant path of names and places, to a text, whole number or boolean; {DOUBT}",
            build=_get_json_object,
            sql=ScalarSql(
                2, template("wallaby_json_object({0}, {1})"), fallible=always, doubtful=True, size=at_most(6)
            ),
            examples=(
                f"get_json_object({_OBJECT}, '$.a')",
                f"get_json_object({_OBJECT}, '$.b[1]')",
                "get_json_object({string}, '$.a')",
            ),
        ),
        guarded(
            "JsonToStructs",
            "json_member",
            TEXT,
            guard=f"to a struct of whole numbers, doubles, booleans, texts and dates, without options; {DOUBT}",
            build=_from_json,
            requires=("spark.sql.columnNameOfCorruptRecord", _CORRUPT),
            sql=ScalarSql(
                2, _json_member, reason=_json_member_reason, fallible=always, doubtful=True, size=at_most(6)
            ),
            examples=(
                f"from_json({_OBJECT}, 'a int, c boolean, d string')",
                f"from_json({_OBJECT}, 'a double').a",
            ),
        ),
        guarded(
            "StructsToJsonEvaluator#evaluate",
            "to_json",
            frozenset({Kind.STRUCT, Kind.ARRAY, Kind.MAP}),
            guard="without options, of numbers, booleans, texts and dates; decimals of at most 6 places",
            build=_read_to_json,
            requires=("spark.sql.jsonGenerator.ignoreNullFields", "true"),
            sql=ScalarSql(2, _write_to_json, reason=_reason, size=by_call(_json_size)),
            examples=(
                "to_json(named_struct('a', {any}, 'b \"x', {string}))",
                "to_json(struct({whole}, {floating}, {date}, {decimal_5_2}))",
                "to_json({struct})",
                "to_json({array})",
                "to_json({map})",
                "to_json(array({struct}, {struct}))",
                "to_json(named_struct('a', {array}, 'm', {map}, 's', {struct}))",
            ),
            shown_as="Invoke",
        ),
        unsupported(
            "StructsToJsonWithOptions#evaluate",
            "its options are not supported",
            "use to_json without options",
        ),
    ),
    arrow_functions=(
        per_value("wallaby_json_text", (STRING,), STRING, json_text),
        per_value("wallaby_json_object", (STRING, STRING), STRING, get_json_object),
        per_value("wallaby_json_member", (STRING, STRING, STRING, INTEGER), STRING, json_member),
    ),
)
