"""Casts of arrays, structs and maps to text: `[1, null]`, `{1, a}`, `{k -> v}`.

Parts are written like casts of their own types, and NULL as `null`. The SQL follows the structure of the type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import NESTED
from wallaby.catalyst.node import Node
from wallaby.functions.casts.value_text import PLAIN_SCALE_MAX, value_text
from wallaby.functions.entry import Entry, Refusal, guarded, mode_of
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, not_supported
from wallaby.functions.size import at_most
from wallaby.functions.words import let
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.words import case, field_sql

#: Our name for such a cast.
_NESTED_TO_TEXT: Final = "NestedToText"
_NESTED: Final = ("array<", "map<", "struct<")
_LEAVES: Final = frozenset(
    {
        *(Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG),
        *(Kind.FLOAT, Kind.DOUBLE, Kind.STRING, Kind.DATE),
    }
)


def nested_to_text(node: Node) -> Node:
    """Redirect a cast of a nested value to text to its own entry."""
    nested = node.children[0].type.startswith(_NESTED)
    return replace(node, class_name=_NESTED_TO_TEXT) if nested and node.type == "string" else node


def _read(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read the cast, with Java's version, which determines how numbers are written."""
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    if not _is_written(arguments[0].type, mode):
        return Refusal(f"a cast from {arguments[0].type} to string is not supported")
    return Call(entry.function, (*arguments, Literal(node.java, INTEGER)), kind, node.nullable, mode)


def _is_written(type_: DataType, mode: EvalMode) -> bool:
    if type_.kind is Kind.DECIMAL:
        # Java writes other numbers with an exponent.
        return mode is EvalMode.ANSI or type_.scale <= PLAIN_SCALE_MAX
    if type_.is_nested:
        return all(_is_written(child, mode) for child in type_.children)
    return type_.kind in _LEAVES


def _reason(call: Call) -> str | None:
    source = call.arguments[0].type
    return None if source.is_nested and _is_written(source, call.mode) else not_supported(call)


def _write(call: Call, sql: Sequence[str]) -> str:
    return _written(sql[0], call.arguments[0].type, sql[1], 0)


def _written(value: str, type_: DataType, java: str, depth: int) -> str:
    """The text of a value, NULL for NULL; variable names are numbered by their depth."""
    part = f"e{depth}"
    match type_.kind:
        case Kind.ARRAY:
            return _listed("[", value, part, _part(part, type_.element, java, depth), "]")
        case Kind.MAP:
            key, item = (
                _part(field_sql(part, place), child, java, depth)
                for place, child in enumerate(type_.children)
            )
            return _listed("{", value, part, f"{key} || ' -> ' || {item}", "}")
        case Kind.STRUCT:
            fields = " || ', ' || ".join(
                _part(field_sql(part, place), child, java, depth)
                for place, child in enumerate(type_.children)
            )
            return let(value, part, case([(f"{part} IS NULL", "NULL")], f"('{{' || {fields} || '}}')"))
        case _:
            return value_text(value, type_, java)


def _part(value: str, type_: DataType, java: str, depth: int) -> str:
    return f"coalesce({_written(value, type_, java, depth + 1)}, 'null')"


def _listed(begin: str, value: str, part: str, text: str, end: str) -> str:
    return f"('{begin}' || array_to_string(list_transform({value}, lambda {part}: {text}), ', ') || '{end}')"


FAMILY: Final = Family(
    "Casts",
    (
        guarded(
            _NESTED_TO_TEXT,
            "nested_to_text",
            NESTED,
            guard="Wallaby's name for a cast of an array, a struct or a map to string; "
            "of numbers, booleans, texts and dates",
            build=_read,
            requires=("spark.sql.legacy.castComplexTypesToString.enabled", "false"),
            sql=ScalarSql(2, _write, reason=_reason, size=at_most(8, 64)),
            examples=(
                "cast({array} as string)",
                "cast({map} as string)",
                "cast({struct} as string)",
                "cast(struct({array}, {map}, {struct}, {any}) as string)",
                "cast(array({number}, null, {number}) as string)",
                "concat('x', array({date}, null))",
            ),
            shown_as="Cast",
        ),
    ),
)
