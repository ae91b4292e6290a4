"""Text. Spark counts code points and compares bytes; only strings with the binary collation are read at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.arithmetic import fails
from wallaby.catalyst.data_types import BINARY, INTEGRAL, TEXT
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded, unsupported
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, Expression, Literal
from wallaby.plan.types import STRING, DataType

_ESCAPE: Final = "\\"
_SPACES: Final = "spaces only, no other white space, or the characters that are given"
_PATTERNS: Final = "the patterns are constants, and valid"
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


def _levenshtein(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if len(arguments) != 2:
        return Refusal("a distance with a threshold has no kernel yet", "compare the distance")
    return Call(entry.function, arguments, kind, node.nullable)


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
        "Substring", "substring", TEXT, INTEGRAL, guard="position 0 is 1; negative ones count from the end"
    ),
    guarded("Upper", "upper", TEXT, guard=_CASE),
    guarded("Lower", "lower", TEXT, guard=_CASE),
    guarded("Concat", "concat", TEXT | BINARY, guard="NULL if any argument is", build=_concat),
    exact("ConcatWs", "concat_ws", TEXT),
    exact("Length", "length", TEXT | BINARY),
    exact("OctetLength", "octet_length", TEXT | BINARY),
    exact("BitLength", "bit_length", TEXT | BINARY),
    guarded("StringTrim", "trim", TEXT, guard=_SPACES),
    guarded("StringTrimLeft", "trim_left", TEXT, guard=_SPACES),
    guarded("StringTrimRight", "trim_right", TEXT, guard=_SPACES),
    guarded("StringLPad", "pad_left", TEXT, INTEGRAL, TEXT, guard="by nothing, it only cuts"),
    guarded("StringRPad", "pad_right", TEXT, INTEGRAL, TEXT, guard="by nothing, it only cuts"),
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
    unsupported("ToNumber", "formats for numbers have no kernel yet", "use a cast"),
    unsupported("TryToNumber", "formats for numbers have no kernel yet", "use try_cast"),
    unsupported("ToCharacter", "formats for numbers have no kernel yet", "use a cast"),
    unsupported("Mask", "it depends on which characters Java's version knows as letters"),
    unsupported("GetJsonObject", "JSON is not read here yet"),
)
