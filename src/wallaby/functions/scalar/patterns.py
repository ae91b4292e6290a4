"""Regular expressions: DuckDB's engine where it means what Java does, Python's where it does not.

The second argument is the pattern as Java reads it, a constant; then come the group or the replacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.java_regex import LINE_BREAKS, Pattern, UnsafePatternError, replacement, translate
from wallaby.functions.scalar.function import Function, unsupported
from wallaby.relations.expression import Call, Literal
from wallaby.relations.types import Kind
from wallaby.sql.words import case, text

#: DuckDB knows the groups up to this one.
_GROUP_MAX: Final = 9
#: What looks for every match: Java finds an empty one between the halves of a character beyond 16 bits.
_EVERY: Final = ("regexp_extract_all", "regexp_replace")


def _constant(call: Call, place: int) -> object:
    found = call.arguments[place]
    assert isinstance(found, Literal), "refused by the reason"
    return found.value


def _pattern(call: Call) -> Pattern:
    return translate(str(_constant(call, 1)))


def _chosen(pattern: Pattern, value: str, quick: str, slow: str) -> str:
    """The quick way where both mean the same."""
    if not pattern.breaks:
        return quick
    breaks = text(f"[{LINE_BREAKS}]")
    return case([(f"regexp_matches({value}, {breaks})", slow)], quick)


def _matches(call: Call, sql: Sequence[str]) -> str:
    pattern = _pattern(call)
    slow = f"wallaby_regexp_matches({sql[0]}, {text(pattern.python)})"
    if pattern.re2 is None:
        return slow
    return _chosen(pattern, sql[0], f"regexp_matches({sql[0]}, {text(pattern.re2)})", slow)


def _extract(call: Call, sql: Sequence[str]) -> str:
    pattern, group = _pattern(call), _constant(call, 2)
    slow = f"wallaby_regexp_extract({sql[0]}, {text(pattern.python)}, {group})"
    if pattern.re2 is None or int(str(group)) > _GROUP_MAX:
        return slow
    return _chosen(pattern, sql[0], f"regexp_extract({sql[0]}, {text(pattern.re2)}, {group})", slow)


def _extract_all(call: Call, sql: Sequence[str]) -> str:
    return f"wallaby_regexp_extract_all({sql[0]}, {text(_pattern(call).python)}, {_constant(call, 2)})"


def _position(call: Call, sql: Sequence[str]) -> str:
    return f"wallaby_regexp_position({sql[0]}, {text(_pattern(call).python)})"


def _replace(call: Call, sql: Sequence[str]) -> str:
    pattern, by = _pattern(call), str(_constant(call, 2))
    slow = f"wallaby_regexp_replace({sql[0]}, {text(pattern.python)}, {text(by)})"
    parts = replacement(by, pattern.groups)
    if pattern.re2 is None or any(isinstance(p, int) and p > _GROUP_MAX for p in parts):
        return slow
    by_re2 = "".join(f"\\{part}" if isinstance(part, int) else part.replace("\\", "\\\\") for part in parts)
    quick = f"regexp_replace({sql[0]}, {text(pattern.re2)}, {text(by_re2)}, 'g')"
    return _chosen(pattern, sql[0], quick, slow)


def _reason(call: Call) -> str | None:
    """The pattern is a constant that all engines read alike, and names the groups that are asked for."""
    constants = [a.value if isinstance(a, Literal) else None for a in call.arguments[1:]]
    if call.arguments[0].type.kind is not Kind.STRING or None in constants:
        return unsupported(call)
    try:
        pattern = translate(str(constants[0]))
        if call.function == "regexp_replace":
            replacement(str(constants[1]), pattern.groups)
    except UnsafePatternError as error:
        return f"the pattern {constants[0]!r} is not supported: {error}"
    if pattern.empty and call.function in _EVERY:
        return f"{call.function} with a pattern that may match nothing is not supported"
    group = constants[1] if len(constants) > 1 else 0
    if isinstance(group, int) and not 0 <= group <= pattern.groups:
        return unsupported(call)
    return None


FUNCTIONS: dict[str, Function] = {
    "regexp_matches": Function((2, 2), _matches, _reason),
    "regexp_extract": Function((3, 3), _extract, _reason),
    "regexp_extract_all": Function((3, 3), _extract_all, _reason),
    "regexp_replace": Function((3, 3), _replace, _reason),
    "regexp_position": Function((2, 2), _position, _reason),
}
