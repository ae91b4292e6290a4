"""Calls of Java's methods, which stand in optimized plans for functions that Catalyst has no class of its own for.

They are read as if such a class existed, named after the Java class and the method: `Base64#encode`. What of the
arguments only configures the method is looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import DOUBT, Entry, Refusal, State, guarded, unsupported
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType, Kind

_BINARY: Final = frozenset({Kind.BINARY})
_SPARK: Final = "org.apache.spark.sql."
#: What only configures a method.
_SETTING: Final = frozenset({Kind.STRING, Kind.BOOLEAN})
_URL_PARTS: Final = ("PROTOCOL", "AUTHORITY", "HOST", "FILE", "PATH", "QUERY", "REF")
_UTF8: Final = ("utf-8", "utf8")


def _static(node: Node) -> Node:
    """Under the name of the class and the method."""
    return replace(node, class_name=_method(node, str(node.field("staticObject"))))


def _on_object(node: Node) -> Node:
    """The object is the first child: a constant of a Java class, or a value."""
    target = node.children[0]
    value = target.value
    if target.name != "Literal" or not isinstance(value, dict) or "opaque" not in value:
        return replace(node, class_name=_method(node, "Value"))
    return replace(node, class_name=_method(node, str(value["opaque"])), children=node.children[1:])


def _method(node: Node, class_name: str) -> str:
    return f"{_SPARK}{class_name.rpartition('.')[2].rstrip('$')}#{node.field('functionName')}"


def _configured(
    *wanted: object,
) -> Callable[[Entry, Node, tuple[Expression, ...], DataType], Expression | Refusal]:
    """The first argument counts; the others must be these constants, of which a set names alternatives."""

    def build(
        entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
    ) -> Expression | Refusal:
        given = [a.value if isinstance(a, Literal) else None for a in arguments[1:]]
        same = len(given) == len(wanted) and all(
            (isinstance(want, tuple) and isinstance(have, str) and have.lower() in want) or have == want
            for have, want in zip(given, wanted, strict=True)
        )
        if not same:
            return Refusal("it is not supported with these arguments")
        return Call(entry.function, arguments[:1], kind, node.nullable)

    return build


def _base64(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """In lines or in one."""
    if len(arguments) != 2 or not isinstance(arguments[1], Literal):
        return Refusal("it is not supported with these arguments")
    return Call(entry.function, arguments, kind, node.nullable)


def _decode(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Whether a bad address is an error or NULL."""
    failing = arguments[1]
    if not isinstance(failing, Literal):
        return Refusal("it is not supported with these arguments")
    name = entry.function if failing.value else f"try_{entry.function}"
    return Call(name, arguments[:1], kind, node.nullable)


def _padded(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """A column of type CHAR(n) with spaces at its end; text that is longer stays what it is."""
    text, length = arguments
    own = Call("length", (text,), INTEGER, text.nullable)
    shorter = Call("lt", (own, length), BOOLEAN, text.nullable)
    filled = Call(entry.function, (text, length, Literal(" ", STRING)), kind, node.nullable)
    return Call("if", (shorter, filled, text), kind, node.nullable)


def _parse_url(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Which part, and of a query which key, are constants."""
    url, part, *key = arguments
    known = [a.value for a in (part, *key) if isinstance(a, Literal) and isinstance(a.value, str) and a.value]
    if len(known) != len(arguments) - 1 or known[0] not in _URL_PARTS or (key and known[0] != "QUERY"):
        return Refusal("it is not supported with these arguments")
    return Call(entry.function, (url, part, *(key or (Literal("", STRING),))), kind, node.nullable)


def _to_json(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    return Call(entry.function, (*arguments, Literal(node.java, INTEGER)), kind, node.nullable)


ENTRIES: Final = (
    replace(
        guarded(
            "StructsToJsonEvaluator#evaluate",
            "to_json",
            frozenset({Kind.STRUCT, Kind.ARRAY, Kind.MAP}),
            guard="without options, of numbers, booleans, texts and dates; decimals of at most 6 places",
            build=_to_json,
        ),
        requires=("spark.sql.jsonGenerator.ignoreNullFields", "true"),
    ),
    unsupported(
        "StructsToJsonWithOptions#evaluate", "its options are not supported", "use to_json without options"
    ),
    guarded(
        "ParseUrlEvaluator#evaluate",
        "parse_url",
        TEXT,
        guard=f"constant parts of plain addresses; {DOUBT}",
        build=_parse_url,
    ),
    Entry("StaticInvoke", "", State.EXACT_WITH_GUARD, note="if the method is in this table", rewrite=_static),
    Entry("Invoke", "", State.EXACT_WITH_GUARD, note="if the method is in this table", rewrite=_on_object),
    guarded(
        "CharVarcharCodegenUtils#readSidePadding",
        "pad_right",
        TEXT,
        INTEGRAL,
        guard="of columns that tables declare as CHAR",
        build=_padded,
    ),
    guarded(
        "Base64#encode",
        "base64",
        _BINARY,
        _SETTING,
        guard="in lines of 76 characters, or in one",
        build=_base64,
    ),
    guarded(
        "Encode#encode",
        "encode_utf8",
        TEXT,
        _SETTING,
        guard="in UTF-8",
        build=_configured(_UTF8, False, False),
    ),
    guarded(
        "StringDecode#decode",
        "decode_utf8",
        _BINARY,
        _SETTING,
        guard="from UTF-8; other bytes are an error",
        build=_configured(_UTF8, False, False),
    ),
    guarded("UrlCodec#encode", "url_encode", TEXT, guard="as java.net.URLEncoder does", build=_configured()),
    guarded(
        "UrlCodec#decode", "url_decode", TEXT, _SETTING, guard="as java.net.URLDecoder does", build=_decode
    ),
    guarded(
        "ExpressionImplUtils#isLuhnNumber", "luhn_check", TEXT, guard="ASCII digits", build=_configured()
    ),
)
