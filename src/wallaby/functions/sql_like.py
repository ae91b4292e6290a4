"""LIKE: Spark's patterns, which have an escape character by default, as DuckDB's, which have none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wallaby.relations.expression import Call, Literal
from wallaby.relations.types import Kind
from wallaby.sql.words import case, error, text

_ESCAPE = "\\"
_AT_THE_END = error("INVALID_FORMAT.ESC_AT_THE_END", "The escape character is not allowed to end with.")
_IN_THE_MIDDLE = error(
    "INVALID_FORMAT.ESC_IN_THE_MIDDLE", "The escape character is not allowed to precede other characters."
)


def like_reason(call: Call) -> str | None:
    """A constant pattern that Spark refuses is left for Spark to refuse."""
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
    """A pattern that comes with the rows may not be valid."""
    return not isinstance(call.arguments[1], Literal)


def like_sql(call: Call, sql: Sequence[str]) -> str:
    """The pattern is taken apart and written anew."""
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
    """Each row has a pattern of its own; one in which an escape stands before something else is an error."""
    sign = re.escape(escape)
    valid = f"(?:[^{sign}]|{sign}[%_{sign}])*"
    failures = [
        (f"regexp_full_match({pattern}, {text(valid + sign)})", _AT_THE_END),
        (f"NOT regexp_full_match({pattern}, {text(valid)})", _IN_THE_MIDDLE),
    ]
    known = [(f"{value} IS NOT NULL AND {condition}", failed) for condition, failed in failures]
    return case(known, f"({value} LIKE {pattern} ESCAPE {text(escape)})")


def _constants(call: Call) -> tuple[str | None, str]:
    """The pattern, None if it is none, and the escape."""
    pattern, *rest = (part.value if isinstance(part, Literal) else None for part in call.arguments[1:])
    return None if pattern is None else str(pattern), str(rest[0]) if rest else _ESCAPE


def _parts(pattern: str, escape: str) -> list[tuple[str, bool]] | None:
    """Characters, and whether each is a wildcard; None if something other than a special one is escaped."""
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
