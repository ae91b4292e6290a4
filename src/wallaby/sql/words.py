"""Elements of DuckDB's SQL: quoted identifiers, typed literals, errors with Spark's names.

Statements are built only in `statements` and `functions`, and only from typed trees. Every identifier is quoted, every
text is escaped, and every other value is written by its own type's rules.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from wallaby.errors import InternalError
from wallaby.relations.expression import Column, Literal
from wallaby.relations.types import DataType, Kind, parts_of
from wallaby.sql.types import column_name, duckdb_type, entry_type, field_name

_EPOCH = datetime.date(1970, 1, 1)


def identifier(name: str) -> str:
    """A name, quoted."""
    return '"' + name.replace('"', '""') + '"'


def column_identifier(column_id: int) -> str:
    """A column's name, quoted."""
    return identifier(column_name(column_id))


def text(value: str) -> str:
    """A string constant. A NUL character would end the statement, so it is written as its number."""
    quoted = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    return quoted[0] if len(quoted) == 1 else "(" + " || chr(0) || ".join(quoted) + ")"


def cast(sql: str, type_: DataType) -> str:
    """Cast a value to a type."""
    return f"CAST({sql} AS {duckdb_type(type_)})"


def error(condition: str, message: str) -> str:
    """An expression that ends the statement with an error of Spark's name."""
    return f"error({text(f'[{condition}] {message}')})"


TOO_MANY_ROWS = error(
    "SCALAR_SUBQUERY_TOO_MANY_ROWS", "More than one row returned by a subquery used as an expression."
)


def literal(value: Literal) -> str:
    """The SQL of a constant, in its type."""
    if value.value is None:
        return "NULL" if value.type.kind is Kind.NULL else cast("NULL", value.type)
    return cast(_plain(value), value.type)


def _plain(constant: Literal) -> str:
    value, kind = constant.value, constant.type.kind
    match value:
        case tuple():
            return _nested(value, constant.type)
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if constant.type.is_integral or constant.type.is_interval or kind is Kind.DECIMAL:
            return text(str(value))
        case int() | float() if constant.type.is_floating:
            return text(_floating(float(value)))
        case Decimal() if kind is Kind.DECIMAL:
            return text(f"{value:f}")
        case str() if kind is Kind.STRING:
            return text(value)
        case bytes() if kind is Kind.BINARY:
            return f"from_hex({text(value.hex())})"
        case datetime.datetime() if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            return _instant(value, kind)
        case datetime.date() if kind is Kind.DATE:
            # As a number of days, not as text: years before 1000 and dates before 1582 have several texts.
            return f"(DATE '1970-01-01' + CAST({(value - _EPOCH).days} AS INTEGER))"
        case _:
            raise InternalError(
                f"{value!r} is not a valid {constant.type}.", fix="`supports` should have refused it."
            )


def _nested(values: tuple[object, ...], type_: DataType) -> str:
    match type_.kind:
        case Kind.ARRAY:
            return _list(values, type_.element)
        case Kind.MAP:
            return _list(values, entry_type(type_))
        case _:
            return struct_sql([literal(part) for part in map(Literal, values, type_.children)])


def _list(values: tuple[object, ...], element: DataType) -> str:
    return f"[{', '.join(literal(Literal(value, element)) for value in values)}]"


def struct_sql(values: Sequence[str]) -> str:
    """A struct of values, each named by its position."""
    fields = (f"{identifier(field_name(place))} := {value}" for place, value in enumerate(values))
    return f"struct_pack({', '.join(fields)})"


def _floating(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _instant(value: datetime.datetime, kind: Kind) -> str:
    """A timestamp, from microseconds since the epoch; one without a zone is read as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    micros = (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
        microseconds=1
    )
    if kind is Kind.TIMESTAMP:
        return f"make_timestamptz({micros})"
    return f"make_timestamp({micros})"


def case(branches: Sequence[tuple[str, str]], otherwise: str = "NULL") -> str:
    """CASE: conditions are tried in order, and a value is only computed where its condition is true."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE {whens} ELSE {otherwise} END"


def normalized(sql: str, type_: DataType) -> str:
    """A value in which -0.0 counts as 0.0, wherever it has floating-point numbers."""
    if type_.is_floating:
        return case([(f"{sql} = 0", cast("0", type_))], sql)
    if has_zeros(type_):
        return rebuilt(sql, type_, normalized)
    return sql


def with_signs(sql: str, type_: DataType) -> str:
    """A form of a value that keeps the signs of its zeros where DuckDB stores it as a sort key, in which they are lost.

    Aggregates that choose one of several nested values store it so. `without_signs` gives the value back.
    """
    if type_.is_floating:
        return struct_sql([sql, f"{sql} = 0 AND signbit({sql})"])
    return rebuilt(sql, type_, with_signs) if has_zeros(type_) else sql


def without_signs(sql: str, type_: DataType) -> str:
    """The value of which `with_signs` is a form."""
    if type_.is_floating:
        return case([(field_sql(sql, 1), cast("'-0.0'", type_))], field_sql(sql, 0))
    return rebuilt(sql, type_, without_signs) if has_zeros(type_) else sql


def has_zeros(type_: DataType) -> bool:
    """Is it a nested type whose values may contain floating-point numbers, and so zeros of both signs?"""
    return type_.is_nested and any(part.is_floating for part in parts_of(type_))


def rebuilt(sql: str, type_: DataType, change: Callable[[str, DataType], str]) -> str:
    """A nested value with other parts: the elements of an array, the fields of a struct. NULL stays NULL."""
    if type_.kind is Kind.STRUCT:
        fields = (field_sql(sql, place) for place in range(len(type_.children)))
        changed = struct_sql(
            [change(field, child) for field, child in zip(fields, type_.children, strict=True)]
        )
        return case([(f"{sql} IS NULL", "NULL")], changed)
    element = type_.element if type_.kind is Kind.ARRAY else entry_type(type_)
    # A name for each depth, because the outer variable is still visible inside the inner lambda.
    variable = f"e{sum(part.kind is not Kind.STRUCT for part in parts_of(element) if part.is_nested)}"
    return f"list_transform({sql}, lambda {variable}: {change(variable, element)})"


def field_sql(sql: str, place: int) -> str:
    """A field of a struct."""
    return f"struct_extract({sql}, {text(field_name(place))})"


def ordered(sql: str, type_: DataType) -> str:
    """A form of a value that DuckDB orders as Spark does: in arrays and structs NULL is the least, not the greatest."""
    return rebuilt(sql, type_, _present) if type_.is_nested else sql


def _present(sql: str, type_: DataType) -> str:
    return struct_sql([f"{sql} IS NOT NULL", ordered(normalized(sql, type_), type_)])


def names_of(columns: Sequence[Column]) -> list[str]:
    """The quoted names of columns, each once: a relation inside a statement has no column twice."""
    return [column_identifier(column_id) for column_id in dict.fromkeys(column.id for column in columns)]
