"""LIKE: Spark's patterns, which have an escape character by default, as DuckDB's, which have none."""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.kernels.sql_text import text
from wallaby.plan.expression import Call, Literal
from wallaby.plan.types import Kind

_ESCAPE = "\\"


def like_reason(call: Call) -> str | None:
    """Only constant patterns; one that Spark refuses is left for Spark to refuse."""
    if any(argument.type.kind is not Kind.STRING for argument in call.arguments):
        return f"like of {call.arguments[0].type} is not supported"
    if not all(isinstance(part, Literal) and isinstance(part.value, str) for part in call.arguments[1:]):
        return "like with a pattern that is not constant is not supported"
    pattern, escape = _constants(call)
    if len(escape) != 1:
        return "like with such an escape character is not supported"
    if escape in "%_":
        return f"like with the escape character {escape} is not supported"
    return (
        None if _parts(pattern, escape) is not None else "like with an unfinished escape is Spark's to refuse"
    )


def like_sql(call: Call, sql: Sequence[str]) -> str:
    """The pattern is taken apart and written anew."""
    pattern, escape = _constants(call)
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


def _constants(call: Call) -> tuple[str, str]:
    values = [part.value for part in call.arguments[1:] if isinstance(part, Literal)]
    escape = values[1] if len(values) == 2 else _ESCAPE
    return str(values[0]), str(escape)


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
