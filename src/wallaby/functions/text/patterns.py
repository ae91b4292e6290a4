"""Regular expressions: DuckDB's engine where it agrees with Java, Python's where it does not.

The second argument is Java's pattern, a constant; the group or the replacement follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import per_value
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, not_supported
from wallaby.functions.size import PARTS_TIMES, WITHIN, at_most, by_call
from wallaby.functions.text.java_regex import LINE_BREAKS, Pattern, UnsafePatternError, replacement, translate
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType, Kind, array
from wallaby.sql.words import case, text

_CONSTANT: Final = (
    "the pattern is a constant without what only Java has: Unicode's classes, word boundaries, references to groups, "
    "possessive quantifiers, classes within classes, flags but a leading (?i)"
)
_EMPTY: Final = Refusal(
    "the pattern may match the empty text, which Java does not find inside some characters", "use + for *"
)


def _read(argument: Expression) -> Pattern | Refusal:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return Refusal("the pattern is not a constant")
    try:
        return translate(argument.value)
    except UnsafePatternError as error:
        return Refusal(
            f"other engines may read the regular expression {argument} differently: {error}", "use LIKE"
        )


def _read_matches(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    pattern = _read(arguments[1])
    return pattern if isinstance(pattern, Refusal) else Call(entry.function, arguments, kind, node.nullable)


def _group(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    pattern, group = _read(arguments[1]), arguments[2]
    if isinstance(pattern, Refusal):
        return pattern
    if not isinstance(group, Literal) or not isinstance(group.value, int):
        return Refusal("the number of the group is not a constant")
    if pattern.empty and entry.function == "regexp_extract_all":
        return _EMPTY
    if not 0 <= group.value <= pattern.groups:
        return Refusal("the pattern has no such group, which Spark refuses")
    return Call(entry.function, arguments, kind, node.nullable)


def _read_position(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    made = _group(entry, node, arguments, kind)
    return made if isinstance(made, Refusal) else Call(entry.function, arguments[:2], kind, node.nullable)


def _read_replace(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    pattern, by, start = _read(arguments[1]), arguments[2], arguments[3]
    if isinstance(pattern, Refusal):
        return pattern
    if pattern.empty:
        return _EMPTY
    if not isinstance(by, Literal) or not isinstance(by.value, str):
        return Refusal("the replacement is not a constant")
    if not isinstance(start, Literal) or start.value != 1:
        return Refusal("the position is not 1")
    try:
        replacement(by.value, pattern.groups)
    except UnsafePatternError as error:
        return Refusal(str(error))
    return Call(entry.function, arguments[:3], kind, node.nullable)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_replacement: Final = lru_cache(maxsize=256)(replacement)


#: A text with more characters than this is replaced a part at a time.
_LONG: Final = 1 << 16


def matches(text: str, pattern: str) -> bool:
    """Is there a match anywhere?"""
    return _compiled(pattern).search(text) is not None


def extract(text: str, pattern: str, group: int) -> str:
    """A group of the first match; empty without a match."""
    found = _compiled(pattern).search(text)
    return "" if found is None else found[group] or ""


def extract_all(text: str, pattern: str, group: int) -> list[str]:
    """A group of every match."""
    return [found[group] or "" for found in _compiled(pattern).finditer(text)]


def replace(text: str, pattern: str, by: str) -> str:
    """Replace every match; `by` is in Java's form."""
    compiled = _compiled(pattern)
    parts = _replacement(by, compiled.groups)

    def written(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in parts)

    if len(text) <= _LONG:
        return compiled.sub(written, text)
    # The pieces between millions of matches take many times as much memory as the text, so they are joined on the way.
    done: list[str] = []
    pieces: list[str] = []
    begin = 0
    for found in compiled.finditer(text):
        pieces += (text[begin : found.start()], written(found))
        begin = found.end()
        if len(pieces) >= _LONG:
            done.append("".join(pieces))
            pieces = []
    return "".join((*done, *pieces, text[begin:]))


def position(text: str, pattern: str) -> int:
    """Where the first match begins, counted from 1; 0 without one."""
    found = _compiled(pattern).search(text)
    return 0 if found is None else found.start() + 1


#: The last group that DuckDB supports.
_GROUP_MAX: Final = 9
#: Functions that find every match: Java finds an empty match between the halves of a character beyond 16 bits.
_EVERY: Final = ("regexp_extract_all", "regexp_replace")


def _constant(call: Call, place: int) -> object:
    found = call.arguments[place]
    assert isinstance(found, Literal), "refused by the reason"
    return found.value


def _pattern(call: Call) -> Pattern:
    return translate(str(_constant(call, 1)))


def _chosen(pattern: Pattern, value: str, quick: str, slow: str) -> str:
    """Use the faster engine where both agree."""
    if not pattern.breaks:
        return quick
    breaks = text(f"[{LINE_BREAKS}]")
    return case([(f"regexp_matches({value}, {breaks})", slow)], quick)


def _write_matches(call: Call, sql: Sequence[str]) -> str:
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


def _write_position(call: Call, sql: Sequence[str]) -> str:
    return f"wallaby_regexp_position({sql[0]}, {text(_pattern(call).python)})"


def _write_replace(call: Call, sql: Sequence[str]) -> str:
    pattern, by = _pattern(call), str(_constant(call, 2))
    slow = f"wallaby_regexp_replace({sql[0]}, {text(pattern.python)}, {text(by)})"
    parts = replacement(by, pattern.groups)
    if pattern.re2 is None or any(isinstance(p, int) and p > _GROUP_MAX for p in parts):
        return slow
    by_re2 = "".join(f"\\{part}" if isinstance(part, int) else part.replace("\\", "\\\\") for part in parts)
    quick = f"regexp_replace({sql[0]}, {text(pattern.re2)}, {text(by_re2)}, 'g')"
    return _chosen(pattern, sql[0], quick, slow)


def _replaced(call: Call) -> tuple[Sequence[float], float]:
    """Each match has at least one byte, and becomes constant texts and parts of itself."""
    parts = replacement(str(_constant(call, 2)), _pattern(call).groups)
    times = sum(1 if isinstance(part, int) else len(part.encode("utf-8", "surrogatepass")) for part in parts)
    return (max(times, 1), 0, 0), 0


def _reason(call: Call) -> str | None:
    """Refuse a pattern that is not constant, that engines read differently, or that lacks the requested group."""
    constants = [a.value if isinstance(a, Literal) else None for a in call.arguments[1:]]
    if call.arguments[0].type.kind is not Kind.STRING or None in constants:
        return not_supported(call)
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
        return not_supported(call)
    return None


FAMILY: Final = Family(
    "Regular expressions",
    (
        guarded(
            "RLike",
            "regexp_matches",
            TEXT,
            guard=_CONSTANT,
            build=_read_matches,
            sql=ScalarSql(2, _write_matches, reason=_reason),
            examples=(
                "{string} rlike '^a.*m?$'",
                "{string} rlike '(?i)[a-c]x|ß|😀'",
                "regexp_like({digits}, '^[+-]?\\\\d+(\\\\.\\\\d*)?$')",
                "{string} rlike 'a(?=b)'",
            ),
        ),
        guarded(
            "RegExpExtract",
            "regexp_extract",
            TEXT,
            TEXT,
            INTEGRAL,
            guard=_CONSTANT,
            build=_group,
            sql=ScalarSql(3, _extract, reason=_reason, size=WITHIN),
            examples=(
                "regexp_extract({moment}, '(\\\\d+)-(\\\\d+)', 2)",
                "regexp_extract({string}, '(a|ab)(b?)', 1)",
                "regexp_substr({string}, '[a-cX]+')",
            ),
        ),
        guarded(
            "RegExpExtractAll",
            "regexp_extract_all",
            TEXT,
            TEXT,
            INTEGRAL,
            guard=_CONSTANT,
            build=_group,
            sql=ScalarSql(3, _extract_all, reason=_reason, size=at_most(PARTS_TIMES)),
            examples=("regexp_extract_all({string}, '[a-z]', 0)", "regexp_count({string}, 'a|X')"),
        ),
        guarded(
            "RegExpInStr",
            "regexp_position",
            TEXT,
            TEXT,
            INTEGRAL,
            guard=_CONSTANT,
            build=_read_position,
            sql=ScalarSql(2, _write_position, reason=_reason),
            examples=("regexp_instr({string}, '[b😀]')",),
        ),
        guarded(
            "RegExpReplace",
            "regexp_replace",
            TEXT,
            TEXT,
            TEXT,
            INTEGRAL,
            guard=_CONSTANT,
            build=_read_replace,
            sql=ScalarSql(3, _write_replace, reason=_reason, size=by_call(_replaced)),
            examples=(
                "regexp_replace({string}, '[^a-z]', '')",
                "regexp_replace({string}, '(a)(.)', '$2<$1>')",
                "regexp_replace({string}, 'x+$', '-')",
            ),
        ),
    ),
    arrow_functions=(
        per_value("wallaby_regexp_matches", (STRING, STRING), BOOLEAN, matches),
        per_value("wallaby_regexp_extract", (STRING, STRING, INTEGER), STRING, extract),
        per_value("wallaby_regexp_extract_all", (STRING, STRING, INTEGER), array(STRING), extract_all),
        per_value("wallaby_regexp_replace", (STRING, STRING, STRING), STRING, replace),
        per_value("wallaby_regexp_position", (STRING, STRING), INTEGER, position),
    ),
)
