"""Hashes, and bytes and numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.scalar.function import MANY, Function, Write, of_kinds, template, unsupported
from wallaby.functions.scalar.words import always
from wallaby.functions.sql_decimal import unscaled
from wallaby.relations.expression import Call, EvalMode, Literal
from wallaby.relations.types import INTEGER, LONG, DataType, Kind
from wallaby.sql.types import FLAT
from wallaby.sql.words import cast

_LONG_DIGITS: Final = 18


def _chained(name: str) -> Write:
    """Each value is hashed with the hash of those before it as the seed."""

    def write(call: Call, sql: Sequence[str]) -> str:
        found = sql[0]
        for argument, value in zip(call.arguments[1:], sql[1:], strict=True):
            kind, written = _prepared(argument.type, value)
            found = f"{name}_{kind}({written}, {found})"
        return found

    return write


def _prepared(type_: DataType, sql: str) -> tuple[str, str]:
    """As what a value is hashed, and the SQL for that."""
    match type_.kind:
        case Kind.BOOLEAN | Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.YEAR_MONTH:
            return "int", cast(sql, INTEGER)
        case Kind.DATE:
            return "int", cast(f"date_diff('day', DATE '1970-01-01', {sql})", INTEGER)
        case Kind.LONG | Kind.DAY_TIME:
            return "long", sql
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return "long", f"epoch_us({sql})"
        case Kind.FLOAT:
            return "float", sql
        case Kind.DOUBLE:
            return "double", sql
        case Kind.DECIMAL if type_.precision <= _LONG_DIGITS:
            return "long", cast(unscaled(sql, type_), LONG)
        case Kind.DECIMAL:
            return "bytes", f"wallaby_java_bytes(CAST({unscaled(sql, type_)} AS VARCHAR))"
        case Kind.STRING:
            return "bytes", f"encode({sql})"
        case _:
            return "bytes", sql


def _hashable(call: Call) -> str | None:
    return None if all(argument.type.kind in FLAT for argument in call.arguments[1:]) else unsupported(call)


def _sha2(call: Call, sql: Sequence[str]) -> str:
    bits = call.arguments[1]
    if isinstance(bits, Literal) and bits.value in (0, 256):
        return f"sha256({sql[0]})"
    return f"wallaby_sha2({sql[0]}, {sql[1]})"


def _flagged(name: str) -> Write:
    """The mode decides whether what is no value is an error."""

    def write(call: Call, sql: Sequence[str]) -> str:
        return f"{name}({sql[0]}, {'TRUE' if call.mode is EvalMode.ANSI else 'FALSE'})"

    return write


def _ansi(call: Call) -> bool:
    return call.mode is EvalMode.ANSI


_OF_BINARY: Final = of_kinds(Kind.BINARY)

FUNCTIONS: dict[str, Function] = {
    "md5": Function((1, 1), template("md5({0})"), _OF_BINARY),
    "sha1": Function((1, 1), template("sha1({0})"), _OF_BINARY),
    "sha2": Function((2, 2), _sha2, of_kinds(Kind.BINARY, Kind.INTEGER)),
    "crc32": Function((1, 1), template("wallaby_crc32({0})"), _OF_BINARY),
    "murmur3": Function((2, MANY), _chained("wallaby_murmur3"), _hashable),
    "sketch_place": Function(
        (2, 2), template("wallaby_sketch_place({0}, {1})"), of_kinds(Kind.LONG, Kind.INTEGER)
    ),
    "sketch_estimate": Function(
        (2, 2), template("wallaby_sketch_estimate({0}, {1})"), of_kinds(Kind.ARRAY, Kind.STRING)
    ),
    "xxhash64": Function((2, MANY), _chained("wallaby_xxhash64"), _hashable),
    "hex": Function((1, 1), template("hex({0})"), of_kinds((Kind.LONG, Kind.STRING, Kind.BINARY))),
    "unhex": Function((1, 1), _flagged("wallaby_unhex"), of_kinds(Kind.STRING), _ansi),
    "base64": Function((2, 2), template("wallaby_base64({0}, {1})"), of_kinds(Kind.BINARY, Kind.BOOLEAN)),
    "unbase64": Function((1, 1), template("wallaby_unbase64({0})"), of_kinds(Kind.STRING), always),
    "encode_utf8": Function((1, 1), template("encode({0})"), of_kinds(Kind.STRING)),
    "decode_utf8": Function((1, 1), template("wallaby_decode_utf8({0})"), _OF_BINARY, always),
}
