"""Nested values as JSON, as Spark writes it: fields that are NULL are left out, elements that are NULL are written.

The SQL follows the type. What is NULL has no text; whoever it is a part of decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.exact.text import json_text
from wallaby.functions.scalar.cast_text import PLAIN_SCALE_MAX, number_text
from wallaby.functions.scalar.function import Function, unsupported
from wallaby.functions.scalar.words import let
from wallaby.relations.expression import Call
from wallaby.relations.types import DataType, Kind
from wallaby.sql.words import case, field_sql, text

_PLAIN: Final = frozenset({Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG})
_KEYS: Final = _PLAIN | {Kind.STRING}


def _to_json(call: Call, sql: Sequence[str]) -> str:
    return _written(sql[0], call.arguments[0].type, sql[1], 0)


def _written(value: str, type_: DataType, java: str, depth: int) -> str:
    """The text of a value, in which names are numbered by how deep they stand."""
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
            number = number_text(value, type_, java)
            return case([(f"isfinite({value})", number)], f"'\"' || {number} || '\"'")
        case Kind.DATE:
            return f"'\"' || {number_text(value, type_, java)} || '\"'"
        case Kind.DECIMAL:
            return number_text(value, type_, java)
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
    return None if source.is_nested and _is_written(source) else unsupported(call)


def _is_written(type_: DataType) -> bool:
    match type_.kind:
        case Kind.STRUCT:
            return all(map(_is_written, type_.children))
        case Kind.ARRAY:
            return _is_written(type_.element)
        case Kind.MAP:
            return type_.children[0].kind in _KEYS and _is_written(type_.children[1])
        case Kind.DECIMAL:
            # Java writes others with an exponent.
            return type_.scale <= PLAIN_SCALE_MAX
        case _:
            return type_.kind in _KEYS | {Kind.FLOAT, Kind.DOUBLE, Kind.DATE}


FUNCTIONS: dict[str, Function] = {"to_json": Function((2, 2), _to_json, _reason)}
