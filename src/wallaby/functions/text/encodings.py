"""Bytes and numbers as text, and back."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import BINARY, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ValueFault, per_value
from wallaby.functions.entry import Entry, Refusal, exact, fails, guarded
from wallaby.functions.family import Family
from wallaby.functions.others.java_methods import configured
from wallaby.functions.scalar_sql import ScalarSql, Write, in_ansi_mode, of_kinds, template
from wallaby.functions.size import WITHIN, at_most
from wallaby.functions.words import always
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import BOOLEAN, STRING, DataType, Kind

_LONG: Final = frozenset({Kind.LONG})
#: Constant arguments that only configure a method.
_SETTING: Final = frozenset({Kind.STRING, Kind.BOOLEAN})
_UTF8: Final = ("utf-8", "utf8")


def _base64(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read base64 encoding, with or without line breaks."""
    if len(arguments) != 2 or not isinstance(arguments[1], Literal):
        return Refusal("it is not supported with these arguments")
    return Call(entry.function, arguments, kind, node.nullable)


_BYTES: Final = DataType(Kind.BINARY)
_LINE: Final = 76
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def unhex(text: str, failing: bool) -> bytes | None:
    """Decode two digits per byte; with an odd number the first digit is alone. Other characters: NULL or an error."""
    try:
        if not text.isalnum():
            raise ValueError("not a digit")
        return bytes.fromhex("0" * (len(text) % 2) + text)
    except ValueError:
        if not text:
            return b""
        if failing:
            raise ValueFault("CONVERSION_INVALID_INPUT", f"{text!r} is no hexadecimal number.") from None
        return None


def encode_base64(value: bytes, lines: bool) -> str:
    """Encode in lines of 76 characters, or in one line."""
    text = base64.b64encode(value).decode("ascii")
    return "\r\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE)) if lines else text


def decode_base64(text: str) -> bytes:
    """Decode as Java reads MIME: other characters are skipped, and padding ends the text."""
    digits, padded, _ = text.partition("=")
    known = [_ALPHABET.find(character) for character in digits]
    sextets = [value for value in known if value >= 0]
    rest = len(sextets) % 4
    after = text[len(digits) + 1 :]
    alone = rest == 2 and padded and not after.startswith("=")
    if rest == 1 or alone or (padded and rest == 0):
        raise ValueFault("CONVERSION_INVALID_INPUT", "The text is not in base 64.")
    if any(_ALPHABET.find(character) >= 0 for character in after):
        raise ValueFault("CONVERSION_INVALID_INPUT", "The text goes on after its end.")
    bits = sum(value << (6 * place) for place, value in enumerate(reversed(sextets)))
    size = len(sextets) * 6 // 8
    return (bits >> (len(sextets) * 6 - size * 8)).to_bytes(size, "big")


def decode_utf8(value: bytes) -> str:
    """Decode bytes; invalid text is an error."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueFault("MALFORMED_CHARACTER_CODING", "Invalid value found in UTF-8.") from None


def _flagged(name: str) -> Write:
    """Write a call whose mode decides whether an invalid value is an error."""

    def write(call: Call, sql: Sequence[str]) -> str:
        return f"{name}({sql[0]}, {'TRUE' if call.mode is EvalMode.ANSI else 'FALSE'})"

    return write


FAMILY: Final = Family(
    "Hashes and encodings",
    (
        exact(
            "Hex",
            "hex",
            TEXT | BINARY | _LONG,
            sql=ScalarSql(1, template("hex({0})"), size=at_most(2, 16)),
            examples=("hex({string})", "hex({binary})", "hex({whole})"),
        ),
        guarded(
            "Unhex",
            "unhex",
            TEXT,
            guard="other characters are an error or NULL",
            build=fails,
            sql=ScalarSql(1, _flagged("wallaby_unhex"), fallible=in_ansi_mode, size=WITHIN),
            examples=("unhex({string})", "unhex({digits})", "to_binary({digits}, 'hex')"),
        ),
        guarded(
            "UnBase64",
            "unbase64",
            TEXT,
            guard="as Java reads MIME",
            build=fails,
            sql=ScalarSql(1, template("wallaby_unbase64({0})"), fallible=always, size=WITHIN),
            examples=("unbase64(base64({binary}))", "unbase64(concat(base64({binary}), ' '))"),
        ),
        guarded(
            "Base64#encode",
            "base64",
            BINARY,
            _SETTING,
            guard="in lines of 76 characters, or in one",
            build=_base64,
            sql=ScalarSql(
                2,
                template("wallaby_base64({0}, {1})"),
                reason=of_kinds(Kind.BINARY, Kind.BOOLEAN),
                size=at_most(2, 8),
            ),
            examples=("base64({binary})", "base64(concat({binary}, {binary}, {binary}, {binary}))"),
        ),
        guarded(
            "Encode#encode",
            "encode_utf8",
            TEXT,
            _SETTING,
            guard="in UTF-8",
            build=configured(_UTF8, False, False),
            sql=ScalarSql(1, template("encode({0})"), size=WITHIN),
            examples=("encode({string}, 'UTF-8')",),
        ),
        guarded(
            "StringDecode#decode",
            "decode_utf8",
            BINARY,
            _SETTING,
            guard="from UTF-8; other bytes are an error",
            build=configured(_UTF8, False, False),
            sql=ScalarSql(1, template("wallaby_decode_utf8({0})"), fallible=always, size=WITHIN),
            examples=("decode(encode({string}, 'utf-8'), 'utf-8')",),
        ),
    ),
    arrow_functions=(
        per_value("wallaby_unhex", (STRING, BOOLEAN), _BYTES, unhex),
        per_value("wallaby_base64", (_BYTES, BOOLEAN), STRING, encode_base64),
        per_value("wallaby_unbase64", (STRING,), _BYTES, decode_base64),
        per_value("wallaby_decode_utf8", (_BYTES,), STRING, decode_utf8),
    ),
)
