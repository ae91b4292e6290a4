"""Text. Spark counts code points and compares bytes; only strings with the binary collation are read at all."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import BINARY, INTEGRAL, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.arithmetic import fails
from wallaby.functions.catalyst.entry import DOUBT, Entry, Refusal, exact, guarded
from wallaby.relations import functions
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import BOOLEAN, STRING, DataType, Kind

_ESCAPE: Final = "\\"
_SPECIFIER: Final = re.compile(r"%(?:(?P<sign>[%n])|(?:(?P<place>[1-9][0-9]?)\$)?(?P<kind>[sd]))")
_JSON_PATH: Final = re.compile(r"\$(?:\.[A-Za-z0-9_]+|\[[0-9]{1,6}\])+")
_IN_JSON: Final = INTEGRAL | TEXT | {Kind.DOUBLE, Kind.BOOLEAN, Kind.DATE}
#: What a member for malformed text is called.
_CORRUPT: Final = "_corrupt_record"
_SIGNS: Final = {"%": "%", "n": "\n"}
_PERCENT: Final = (Literal("%", STRING),)
_SPACES: Final = "trims spaces only, no other white space; or the given characters"
_PATTERNS: Final = "the patterns are constants, and valid"
_FORMAT: Final = "in a constant format"
_CASE: Final = "text beyond ASCII follows Java's rules ('ß' becomes 'SS'), not the kernel's"


def _like(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, pattern = arguments
    escape = str(node.field("escapeChar"))
    if isinstance(pattern, Literal) and not isinstance(pattern.value, str):
        return Refusal("the pattern of LIKE is NULL")
    if isinstance(pattern, Literal) and not _valid_pattern(str(pattern.value), escape):
        return Refusal("the pattern of LIKE escapes a character that needs no escape, which Spark refuses")
    return Call(entry.function, (value, pattern, Literal(escape, STRING)), kind, node.nullable)


def _valid_pattern(pattern: str, escape: str) -> bool:
    """An escape must be followed by %, _ or itself."""
    position = pattern.find(escape)
    while position >= 0:
        if pattern[position + 1 : position + 2] not in ("%", "_", escape):
            return False
        position = pattern.find(escape, position + 2)
    return True


def _concat(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not arguments:
        return Literal("", STRING)
    return Call(entry.function, arguments, kind, node.nullable)


def _like_many(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """LIKE ANY is an OR of LIKEs, LIKE ALL an AND; those of NOT LIKE negate each."""
    listed = node.field("patterns")
    patterns = [item.get("string") if isinstance(item, dict) else item for item in _items(listed)]
    found: list[Expression] = []
    for pattern in patterns:
        if pattern is None:
            found.append(Literal(None, kind))
            continue
        if not isinstance(pattern, str) or not _valid_pattern(pattern, _ESCAPE):
            return Refusal("a pattern escapes a character that needs no escape, which Spark refuses")
        like = Call(
            "like", (*arguments, Literal(pattern, STRING), Literal(_ESCAPE, STRING)), kind, node.nullable
        )
        found.append(Call("not", (like,), kind, node.nullable) if node.name.startswith("Not") else like)
    return Call(entry.function, tuple(found), kind, node.nullable) if found else Refusal("it has no pattern")


def _items(listed: object) -> list[object]:
    return listed if isinstance(listed, list) else [False]


def _format_string(
    _entry: Entry, _node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """The pieces of the pattern and the arguments as texts, one after the other; NULL is written as `null`."""
    pattern, *values = arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return Refusal("the pattern is not a constant", "write the pattern as a constant")
    pieces: list[Expression] = [Literal("", STRING)]
    end = taken = 0
    for found in _SPECIFIER.finditer(pattern.value):
        pieces.append(Literal(pattern.value[end : found.start()], STRING))
        end = found.end()
        if found["sign"] is not None:
            pieces.append(Literal(_SIGNS[found["sign"]], STRING))
            continue
        place = int(found["place"]) - 1 if found["place"] else taken
        taken += not found["place"]
        kinds = INTEGRAL if found["kind"] == "d" else INTEGRAL | TEXT | {Kind.BOOLEAN}
        if not 0 <= place < len(values) or values[place].type.kind not in kinds:
            return Refusal(f"%{found['kind']} stands for no argument, or for one of another type")
        pieces.append(_written(values[place]))
    pieces.append(Literal(pattern.value[end:], STRING))
    if any(
        isinstance(piece, Literal) and "%" in str(piece.value) for piece in pieces if piece not in _PERCENT
    ):
        return Refusal("a pattern with other specifiers than %s and %d has no kernel yet")
    return Call("concat", tuple(pieces), kind, nullable=False)


def _written(value: Expression) -> Expression:
    text = value if value.type.kind is Kind.STRING else Call("cast", (value,), STRING, value.nullable)
    return Call(functions.COALESCE, (text, Literal("null", STRING)), STRING, nullable=False)


def _get_json_object(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    path = arguments[1]
    if not isinstance(path, Literal) or not _JSON_PATH.fullmatch(str(path.value)):
        return Refusal("the path is not a constant of names and places", "use a path like $.a.b[0]")
    return Call(entry.function, arguments, kind, node.nullable)


def _from_json(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """A struct of members; each of them looks for itself."""
    options = node.field("options")
    plain = isinstance(options, dict) and str(options.get("opaque", "")).endswith("EmptyMap$")
    known = kind.kind is Kind.STRUCT and all(child.kind in _IN_JSON for child in kind.children)
    if not plain or not known or _CORRUPT in kind.names:
        return Refusal("it is not supported with these options, or to this type")
    (text,) = arguments
    members = tuple(
        Call(entry.function, (text, Literal(name, STRING)), child, nullable=True)
        for name, child in zip(kind.names, kind.children, strict=True)
    )
    there = Call(functions.IS_NOT_NULL, (text,), BOOLEAN, nullable=False)
    return Call("case", (there, Call("struct", members, kind, nullable=False)), kind, nullable=True)


def _mask(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """The characters are constants; one that is NULL leaves a kind of characters as it is."""
    text, *signs = arguments
    if not all(isinstance(sign, Literal) for sign in signs):
        return Refusal("what stands for characters is not constant")
    found = (sign.value if isinstance(sign, Literal) else None for sign in signs)
    return Call(entry.function, (text, *(Literal(sign or "", STRING) for sign in found)), kind, node.nullable)


def _levenshtein(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if len(arguments) != 2:
        return Refusal("a distance with a threshold has no kernel yet", "compare the distance")
    return Call(entry.function, arguments, kind, node.nullable)


def _formatted(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    form = arguments[1]
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        return Refusal("the format is not a constant", "write the format as a constant")
    mode = EvalMode.TRY if entry.catalyst.startswith("Try") else EvalMode.ANSI
    return Call(entry.function, arguments, kind, node.nullable, mode)


def split_part(node: Node) -> Node:
    """`split_part` is an element of a split text, or a default, which only it has; it needs no array."""
    parts = node.children[0]
    with_default = "defaultValueOutOfBound" not in (node.fields or {})
    if parts.name != "StringSplitSQL" or not with_default:
        return node
    return replace(
        node, class_name="org.apache.spark.sql.SplitPart", children=(*parts.children, node.children[1])
    )


ENTRIES: Final = (
    exact("StartsWith", "starts_with", TEXT),
    exact("EndsWith", "ends_with", TEXT),
    exact("Contains", "contains", TEXT),
    guarded("Like", "like", TEXT, guard="a pattern that is not valid is an error", build=_like),
    guarded(
        "Substring",
        "substring",
        TEXT,
        INTEGRAL,
        guard="position 0 counts as 1; negative positions count from the end",
    ),
    guarded("Upper", "upper", TEXT, guard=_CASE),
    guarded("Lower", "lower", TEXT, guard=_CASE),
    guarded("Concat", "concat", TEXT | BINARY, guard="NULL if any argument is", build=_concat),
    exact("ConcatWs", "concat_ws", TEXT),
    guarded(
        "GetJsonObject",
        "get_json_object",
        TEXT,
        guard=f"a constant path of names and places, to a text, whole number or boolean; {DOUBT}",
        build=_get_json_object,
    ),
    replace(
        guarded(
            "JsonToStructs",
            "json_member",
            TEXT,
            guard=f"to a struct of whole numbers, doubles, booleans, texts and dates, without options; {DOUBT}",
            build=_from_json,
        ),
        requires=("spark.sql.columnNameOfCorruptRecord", _CORRUPT),
    ),
    guarded("Mask", "mask", guard=f"of ASCII; {DOUBT}", build=_mask),
    guarded(
        "FormatString",
        "concat",
        guard="a constant pattern with %s of text, whole numbers and booleans, and %d of whole numbers",
        build=_format_string,
    ),
    exact("Length", "length", TEXT | BINARY),
    exact("OctetLength", "octet_length", TEXT | BINARY),
    exact("BitLength", "bit_length", TEXT | BINARY),
    guarded("StringTrim", "trim", TEXT, guard=_SPACES),
    guarded("StringTrimLeft", "trim_left", TEXT, guard=_SPACES),
    guarded("StringTrimRight", "trim_right", TEXT, guard=_SPACES),
    guarded("StringLPad", "pad_left", TEXT, INTEGRAL, TEXT, guard="padding with an empty text only cuts"),
    guarded("StringRPad", "pad_right", TEXT, INTEGRAL, TEXT, guard="padding with an empty text only cuts"),
    exact("StringInstr", "instr", TEXT),
    guarded("StringLocate", "locate", TEXT, TEXT, INTEGRAL, guard="0 if the start is NULL"),
    guarded("SubstringIndex", "substring_index", TEXT, TEXT, INTEGRAL, guard="delimiters may overlap"),
    guarded("SplitPart", "split_part", TEXT, TEXT, INTEGRAL, guard="`split_part`; part 0 is an error"),
    exact("StringReplace", "replace", TEXT),
    exact("StringTranslate", "translate", TEXT),
    guarded("Reverse", "reverse", TEXT, guard="of text, by code points"),
    exact("StringRepeat", "repeat", TEXT, INTEGRAL),
    exact("StringSpace", "space", INTEGRAL),
    guarded("InitCap", "initcap", TEXT, guard="after spaces only"),
    exact("Ascii", "ascii", TEXT),
    guarded("Chr", "character", INTEGRAL, guard="of the lowest byte"),
    exact("Overlay", "overlay", TEXT, TEXT, INTEGRAL),
    exact("FindInSet", "find_in_set", TEXT),
    guarded(
        "Levenshtein",
        "levenshtein",
        TEXT,
        TEXT,
        INTEGRAL,
        guard="by code points, without a threshold",
        build=_levenshtein,
    ),
    exact("SoundEx", "soundex", TEXT),
    guarded("Elt", "elt", INTEGRAL, TEXT, guard="an index outside is an error (ANSI) or NULL", build=fails),
    guarded("LikeAll", "and", TEXT, guard=_PATTERNS, build=_like_many),
    guarded("LikeAny", "or", TEXT, guard=_PATTERNS, build=_like_many),
    guarded("NotLikeAll", "and", TEXT, guard=_PATTERNS, build=_like_many),
    guarded("NotLikeAny", "or", TEXT, guard=_PATTERNS, build=_like_many),
    guarded("ToNumber", "to_number", TEXT, guard=_FORMAT, build=_formatted),
    guarded("TryToNumber", "to_number", TEXT, guard=_FORMAT, build=_formatted),
    guarded("ToCharacter", "to_character", frozenset({Kind.DECIMAL}), TEXT, guard=_FORMAT, build=_formatted),
)
