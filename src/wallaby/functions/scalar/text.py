"""Text. `like` takes value, pattern and perhaps the escape character."""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.functions.exact import text
from wallaby.functions.scalar.function import MANY, Function, Reason, Write, of_kinds, template, unsupported
from wallaby.functions.scalar.words import always
from wallaby.functions.sql_like import like_can_fail, like_reason, like_sql
from wallaby.relations.expression import Call, EvalMode, Literal
from wallaby.relations.types import Kind
from wallaby.sql.words import case, cast, error


def _substring(call: Call, sql: Sequence[str]) -> str:
    value, position = sql[0], sql[1]
    length = sql[2] if len(sql) == 3 else "2147483647"
    start = call.arguments[1]
    if isinstance(start, Literal) and isinstance(start.value, int) and start.value >= 0:
        # DuckDB's greatest passes over NULL.
        taken = case([(f"{length} < 0", "0")], length)
        return f"substring({value}, {max(start.value, 1)}, {taken})"
    # Spark's positions count from 1, from the end if negative, and 0 is as 1; a length that begins before the
    # text uses itself up there.
    begin = (
        f"CASE WHEN {position} > 0 THEN CAST({position} AS BIGINT) - 1 "
        f"WHEN {position} < 0 THEN length({value}) + {position} ELSE 0 END"
    )
    end = f"({begin}) + CAST({length} AS BIGINT)"
    first = f"greatest({begin}, 0)"
    taken = f"substring({value}, {first} + 1, least(greatest({end} - {first}, 0), 2147483647))"
    known = f"{position} IS NULL OR {length} IS NULL OR {value} IS NULL"
    return case([(known, "NULL")], taken)


def _mapped(name: str, exact: str) -> Write:
    """DuckDB maps case as Java does only within ASCII."""

    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        value = sql[0]
        return case([(f"strlen({value}) = length({value})", f"{name}({value})")], f"{exact}({value})")

    return write


def _trimmed(name: str) -> Write:
    """Spaces, or any of the characters that are given."""

    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        return f"{name}({sql[0]}, {sql[1] if len(sql) == 2 else repr(' ')})"

    return write


def _padded(name: str) -> Write:
    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        value, length, pad = sql
        enough = f"{pad} = '' OR length({value}) >= {length}"
        known = f"{value} IS NULL OR {length} IS NULL OR {pad} IS NULL"
        return case(
            [(known, "NULL"), (enough, f"substring({value}, 1, greatest({length}, 0))")],
            f"{name}({value}, {length}, {pad})",
        )

    return write


def _in_ascii(name: str, exact: str) -> Write:
    """DuckDB's function for ASCII, ours for everything else."""

    def write(call: Call, sql: Sequence[str]) -> str:
        ascii_only = " AND ".join(f"strlen({value}) = length({value})" for value in sql)
        arguments = ", ".join(sql)
        return cast(case([(ascii_only, f"{name}({arguments})")], f"{exact}({arguments})"), call.type)

    return write


def _locate(call: Call, sql: Sequence[str]) -> str:
    """Without a start there is no text, as in Hive; from the first character on, DuckDB knows."""
    part, value, start = sql
    if isinstance(call.arguments[2], Literal) and call.arguments[2].value == 1:
        return cast(f"instr({value}, {part})", call.type)
    branches = [(f"{start} IS NULL", "0")]
    return cast(case(branches, f"wallaby_locate({part}, {value}, {start})"), call.type)


def _repeat(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"repeat({sql[0]}, {sql[1]})"


def _concat_ws(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    if len(sql) == 1:
        return case([(f"{sql[0]} IS NULL", "NULL")], "''")
    return f"concat_ws({', '.join(sql)})"


def _character(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    """The lowest byte of a number as a character of Latin 1; nothing for negative numbers."""
    return case([(f"{sql[0]} < 0", "''")], f"chr(CAST({sql[0]} & 255 AS INTEGER))")


def _elt(call: Call, sql: Sequence[str]) -> str:
    choices = [(f"{sql[0]} = {number}", value) for number, value in enumerate(sql[1:], start=1)]
    outside = error("INVALID_ARRAY_INDEX", "The index of elt is out of bounds.")
    missing = [(f"{sql[0]} IS NULL", "NULL")]
    return case([*missing, *choices], outside if call.mode is EvalMode.ANSI else "NULL")


def _ansi(call: Call) -> bool:
    return call.mode is EvalMode.ANSI


def _length(call: Call, sql: Sequence[str]) -> str:
    counted = "octet_length" if call.arguments[0].type.kind is Kind.BINARY else "length"
    return cast(f"{counted}({sql[0]})", call.type)


def _concat(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"({' || '.join(sql)})"


def _counted(pattern: str) -> Write:
    """Bytes of text or of a binary value."""

    def write(call: Call, sql: Sequence[str]) -> str:
        counted = "octet_length" if call.arguments[0].type.kind is Kind.BINARY else "strlen"
        return cast(pattern.format(f"{counted}({sql[0]})"), call.type)

    return write


def _strings(*kinds: Kind) -> Reason:
    """Only the first argument is text."""
    allowed = kinds or (Kind.STRING,)

    def reason(call: Call) -> str | None:
        type_ = call.arguments[0].type
        return None if type_.kind in allowed else f"{call.function} of {type_} is not supported"

    return reason


def _one_of(*kinds: Kind) -> Reason:
    """All arguments are of one and the same kind."""

    def reason(call: Call) -> str | None:
        found = {argument.type.kind for argument in call.arguments}
        return None if len(found) == 1 and found <= set(kinds) else unsupported(call)

    return reason


_EITHER = (Kind.STRING, Kind.BINARY)
_TEXT_NUMBER_TEXT = (Kind.STRING, Kind.INTEGER, Kind.STRING)

FUNCTIONS: dict[str, Function] = {
    "like": Function((2, 3), like_sql, like_reason, like_can_fail),
    "starts_with": Function((2, 2), template("starts_with({0}, {1})"), _strings()),
    "ends_with": Function((2, 2), template("ends_with({0}, {1})"), _strings()),
    "contains": Function((2, 2), template("contains({0}, {1})"), _strings()),
    "substring": Function((2, 3), _substring, _strings()),
    "upper": Function((1, 1), _mapped("upper", text.UPPER), _strings()),
    "lower": Function((1, 1), _mapped("lower", text.LOWER), _strings()),
    "concat": Function((1, MANY), _concat, _one_of(Kind.STRING, Kind.BINARY)),
    "concat_ws": Function((1, MANY), _concat_ws, of_kinds(Kind.STRING)),
    "length": Function((1, 1), _length, _strings(Kind.STRING, Kind.BINARY)),
    "octet_length": Function((1, 1), _counted("{0}"), of_kinds(_EITHER)),
    "bit_length": Function((1, 1), _counted("(8 * {0})"), of_kinds(_EITHER)),
    "trim": Function((1, 2), _trimmed("trim"), of_kinds(Kind.STRING)),
    "trim_left": Function((1, 2), _trimmed("ltrim"), of_kinds(Kind.STRING)),
    "trim_right": Function((1, 2), _trimmed("rtrim"), of_kinds(Kind.STRING)),
    "pad_left": Function((3, 3), _padded("lpad"), of_kinds(*_TEXT_NUMBER_TEXT)),
    "pad_right": Function((3, 3), _padded("rpad"), of_kinds(*_TEXT_NUMBER_TEXT)),
    "instr": Function((2, 2), template("instr({0}, {1})", typed=True), of_kinds(Kind.STRING)),
    "locate": Function((3, 3), _locate, of_kinds(Kind.STRING, Kind.STRING, Kind.INTEGER)),
    "substring_index": Function(
        (3, 3),
        template("wallaby_substring_index({0}, {1}, {2})"),
        of_kinds(Kind.STRING, Kind.STRING, Kind.INTEGER),
    ),
    "split_part": Function(
        (3, 3),
        template("wallaby_split_part({0}, {1}, {2})"),
        of_kinds(Kind.STRING, Kind.STRING, Kind.INTEGER),
        always,
    ),
    "replace": Function((3, 3), template("replace({0}, {1}, {2})"), of_kinds(Kind.STRING)),
    "translate": Function((3, 3), template("wallaby_translate({0}, {1}, {2})"), of_kinds(Kind.STRING)),
    "reverse": Function((1, 1), _in_ascii("reverse", "wallaby_reverse"), of_kinds(Kind.STRING)),
    "repeat": Function((2, 2), _repeat, of_kinds(Kind.STRING, Kind.INTEGER)),
    "space": Function((1, 1), template("repeat(' ', {0})"), of_kinds(Kind.INTEGER)),
    "initcap": Function((1, 1), template("wallaby_initcap({0})"), of_kinds(Kind.STRING)),
    "ascii": Function((1, 1), template("ascii({0})", typed=True), of_kinds(Kind.STRING)),
    "character": Function((1, 1), _character, of_kinds(Kind.LONG)),
    "overlay": Function(
        (4, 4),
        template("wallaby_overlay({0}, {1}, {2}, {3})"),
        of_kinds(Kind.STRING, Kind.STRING, Kind.INTEGER),
    ),
    "find_in_set": Function((2, 2), template("wallaby_find_in_set({0}, {1})"), of_kinds(Kind.STRING)),
    "levenshtein": Function((2, 2), _in_ascii("levenshtein", "wallaby_levenshtein"), of_kinds(Kind.STRING)),
    "soundex": Function((1, 1), template("wallaby_soundex({0})"), of_kinds(Kind.STRING)),
    "luhn_check": Function((1, 1), template("wallaby_luhn_check({0})"), of_kinds(Kind.STRING)),
    "url_encode": Function((1, 1), template("wallaby_url_encode({0})"), of_kinds(Kind.STRING)),
    "url_decode": Function((1, 1), template("wallaby_url_decode({0})"), of_kinds(Kind.STRING), always),
    "try_url_decode": Function((1, 1), template("wallaby_try_url_decode({0})"), of_kinds(Kind.STRING)),
    "elt": Function((2, MANY), _elt, of_kinds(Kind.INTEGER, Kind.STRING), _ansi),
}
