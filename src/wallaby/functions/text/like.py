"""LIKE: translate Spark's patterns, which have an escape character by default, into DuckDB's, which have none.

`like` takes value, pattern and perhaps the escape character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import STRING, DataType, Kind
from wallaby.sql.words import case, error, text

_ESCAPE: Final = "\\"
_PATTERNS: Final = "the patterns are constants, and valid"


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
    """Is the pattern valid? An escape character must be followed by %, _ or itself."""
    position = pattern.find(escape)
    while position >= 0:
        if pattern[position + 1 : position + 2] not in ("%", "_", escape):
            return False
        position = pattern.find(escape, position + 2)
    return True


def _like_many(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read LIKE ANY as an OR of LIKEs, LIKE ALL as an AND; NOT LIKE negates each."""
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


_AT_THE_END = error("INVALID_FORMAT.ESC_AT_THE_END", "The escape character is not allowed to end with.")
_IN_THE_MIDDLE = error(
    "INVALID_FORMAT.ESC_IN_THE_MIDDLE", "The escape character is not allowed to precede other characters."
)


def like_reason(call: Call) -> str | None:
    """Leave an invalid constant pattern to Spark, which refuses it."""
    if any(argument.type.kind is not Kind.STRING for argument in call.arguments):
        return f"like of {call.arguments[0].type} is not supported"
    constants = [part for part in call.arguments[1:] if isinstance(part, Literal)]
    if len(call.arguments) == 3 and call.arguments[2] not in constants:
        return "like with an escape character that is not constant is not supported"
    if not all(isinstance(part.value, str) for part in constants):
        return "like with a pattern that is NULL is not supported"
    pattern, escape = _constants(call)
    if len(escape) != 1:
        return "like with such an escape character is not supported"
    if escape in "%_":
        return f"like with the escape character {escape} is not supported"
    valid = pattern is None or _parts(pattern, escape) is not None
    return None if valid else "like with an unfinished escape is Spark's to refuse"


def like_can_fail(call: Call) -> bool:
    """Can it fail? A pattern that comes with the rows may be invalid."""
    return not isinstance(call.arguments[1], Literal)


def like_sql(call: Call, sql: Sequence[str]) -> str:
    """Parse a constant pattern and write it for DuckDB."""
    pattern, escape = _constants(call)
    if pattern is None:
        return _by_row(sql[0], sql[1], escape)
    parts = _parts(pattern, escape)
    assert parts is not None, "refused by like_reason"
    plain = all(is_wildcard or character not in "%_" for character, is_wildcard in parts)
    if plain:
        return f"({sql[0]} LIKE {text(''.join(character for character, _ in parts))})"
    written = "".join(
        character if is_wildcard or character not in ("%", "_", _ESCAPE) else _ESCAPE + character
        for character, is_wildcard in parts
    )
    return f"({sql[0]} LIKE {text(written)} ESCAPE {text(_ESCAPE)})"


def _by_row(value: str, pattern: str, escape: str) -> str:
    """Write LIKE for a pattern that varies by row; an invalid escape is an error."""
    sign = re.escape(escape)
    valid = f"(?:[^{sign}]|{sign}[%_{sign}])*"
    failures = [
        (f"regexp_full_match({pattern}, {text(valid + sign)})", _AT_THE_END),
        (f"NOT regexp_full_match({pattern}, {text(valid)})", _IN_THE_MIDDLE),
    ]
    known = [(f"{value} IS NOT NULL AND {condition}", failed) for condition, failed in failures]
    return case(known, f"({value} LIKE {pattern} ESCAPE {text(escape)})")


def _constants(call: Call) -> tuple[str | None, str]:
    """The constant pattern, None if it is not constant, and the escape character."""
    pattern, *rest = (part.value if isinstance(part, Literal) else None for part in call.arguments[1:])
    return None if pattern is None else str(pattern), str(rest[0]) if rest else _ESCAPE


def _parts(pattern: str, escape: str) -> list[tuple[str, bool]] | None:
    """Characters, and whether each is a wildcard; None if an ordinary character is escaped."""
    parts: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character != escape:
            parts.append((character, character in "%_"))
            continue
        escaped = next(characters, None)
        if escaped is None or escaped not in ("%", "_", escape):
            return None
        parts.append((escaped, False))
    return parts


FAMILY: Final = Family(
    "Text",
    (
        guarded(
            "Like",
            "like",
            TEXT,
            guard="a pattern that is not valid is an error",
            build=_like,
            sql=ScalarSql((2, 3), like_sql, reason=like_reason, fallible=like_can_fail),
            examples=(
                "{string} like '_p%m'",
                "{string} like '%a_b%'",
                "{string} like 'a/%b' escape '/'",
                "{string} not like '_'",
                "{string} like {string}",
                "{string} ilike concat(left({string}, 1), '%')",
            ),
        ),
        guarded(
            "LikeAll",
            "and",
            TEXT,
            guard=_PATTERNS,
            build=_like_many,
            examples=("{string} like all ('%a%', '%b_')",),
        ),
        guarded(
            "LikeAny",
            "or",
            TEXT,
            guard=_PATTERNS,
            build=_like_many,
            examples=("{string} like any ('a%', '_b%', '%😀%')",),
        ),
        guarded(
            "NotLikeAll",
            "and",
            TEXT,
            guard=_PATTERNS,
            build=_like_many,
            examples=("{string} not like all ('%a_', '_b%')",),
        ),
        guarded(
            "NotLikeAny",
            "or",
            TEXT,
            guard=_PATTERNS,
            build=_like_many,
            examples=("{string} not like any ('%a_', '_b%')",),
        ),
    ),
)
