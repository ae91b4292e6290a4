"""Encode, decode and parse URLs."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from wallaby.catalyst.data_types import TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ValueFault, per_value
from wallaby.functions.doubt import DOUBT, doubt
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.others.java_methods import configured
from wallaby.functions.scalar_sql import ScalarSql, of_kinds, template
from wallaby.functions.size import WITHIN, at_most
from wallaby.functions.words import always
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import STRING, DataType, Kind

#: Constant arguments that only configure a method.
_SETTING: Final = frozenset({Kind.STRING, Kind.BOOLEAN})
_URL_PARTS: Final = ("PROTOCOL", "AUTHORITY", "HOST", "FILE", "PATH", "QUERY", "REF")


def _decode(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read URL decoding, in which a bad URL is an error or NULL."""
    failing = arguments[1]
    if not isinstance(failing, Literal):
        return Refusal("it is not supported with these arguments")
    name = entry.function if failing.value else f"try_{entry.function}"
    return Call(name, arguments[:1], kind, node.nullable)


def _parse_url(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read `parse_url`; the part, and the key of a query, must be constants."""
    url, part, *key = arguments
    known = [a.value for a in (part, *key) if isinstance(a, Literal) and isinstance(a.value, str) and a.value]
    if len(known) != len(arguments) - 1 or known[0] not in _URL_PARTS or (key and known[0] != "QUERY"):
        return Refusal("it is not supported with these arguments")
    return Call(entry.function, (url, part, *(key or (Literal("", STRING),))), kind, node.nullable)


_ESCAPED: Final = re.compile("%[0-9a-fA-F]{2}")


def url_encode(text: str) -> str:
    """Encode a URL: letters, digits and .-*_ stay, spaces become +, everything else becomes UTF-8 escapes."""
    return quote_from_bytes(text.encode(), safe="* ").replace("~", "%7E").replace(" ", "+")


def url_decode(text: str) -> str:
    """Decode a URL; an invalid escape is an error."""
    if len(_ESCAPED.findall(text)) != text.count("%"):
        raise ValueFault("CANNOT_DECODE_URL", f"The provided URL cannot be decoded: {text}.")
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def try_url_decode(text: str) -> str | None:
    """Decode a URL, with NULL instead of an error."""
    try:
        return url_decode(text)
    except ValueFault:
        return None


_URL: Final = re.compile(
    r"(?P<protocol>[a-zA-Z][a-zA-Z0-9]*)://(?P<authority>(?P<host>[a-zA-Z][a-zA-Z0-9]*(?:\.[a-zA-Z][a-zA-Z0-9]*)*)"
    r"(?::[0-9]{1,5})?)(?P<file>(?P<path>(?:/[a-zA-Z0-9._~-]*)*)(?:\?(?P<query>[a-zA-Z0-9=&._~-]*))?)"
    r"(?:#(?P<ref>[a-zA-Z0-9._~-]*))?"
)


def parse_url(text: str, part: str, key: str) -> str | None:
    """A part of a URL; with a key, the value of that key in its query."""
    found = _URL.fullmatch(text)
    if found is None:
        doubt("parse_url")
    value = found[part.lower()]
    if value is None or not key:
        return value
    pair = re.search(rf"(?:&|^){re.escape(key)}=([^&]*)", value)
    return None if pair is None else pair[1]


FAMILY: Final = Family(
    "Text",
    (
        guarded(
            "UrlCodec#encode",
            "url_encode",
            TEXT,
            guard="as java.net.URLEncoder does",
            build=configured(),
            sql=ScalarSql(1, template("wallaby_url_encode({0})"), size=at_most(3)),
            examples=("url_encode({string})",),
        ),
        guarded(
            "UrlCodec#decode",
            "url_decode",
            TEXT,
            _SETTING,
            guard="as java.net.URLDecoder does",
            build=_decode,
            sql=ScalarSql(1, template("wallaby_url_decode({0})"), fallible=always, size=at_most(3)),
            examples=("url_decode(url_encode({string}))", "try_url_decode({string})"),
        ),
        guarded(
            "ParseUrlEvaluator#evaluate",
            "parse_url",
            TEXT,
            guard=f"constant parts of plain addresses; {DOUBT}",
            build=_parse_url,
            sql=ScalarSql(
                3, template("wallaby_parse_url({0}, {1}, {2})"), fallible=always, doubtful=True, size=WITHIN
            ),
            examples=(
                "parse_url(concat('http://spark.apache.org/p', {small}, '?q=', {int}, '&x=1'), 'QUERY', 'q')",
                "try_parse_url({string}, 'HOST')",
            ),
            shown_as="Invoke",
        ),
    ),
    also={
        "try_url_decode": ScalarSql(
            1, template("wallaby_try_url_decode({0})"), reason=of_kinds(Kind.STRING), size=at_most(3)
        )
    },
    arrow_functions=(
        per_value("wallaby_url_encode", (STRING,), STRING, url_encode),
        per_value("wallaby_url_decode", (STRING,), STRING, url_decode),
        per_value("wallaby_try_url_decode", (STRING,), STRING, try_url_decode),
        per_value("wallaby_parse_url", (STRING,) * 3, STRING, parse_url),
    ),
)
