"""Find, extract, replace and pad parts of a text. Positions count code points, from 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, INTS, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ValueFault, per_value
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.others.java_methods import configured
from wallaby.functions.scalar_sql import ScalarSql, Write, of_kinds, template
from wallaby.functions.size import (
    LARGEST_SQL,
    WITHIN,
    Sizes,
    at_most,
    constant_bytes,
    constant_number,
    growing,
    number,
)
from wallaby.functions.within_limit import checked
from wallaby.functions.words import always
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType, Kind
from wallaby.sql.words import case, cast

_SPACES: Final = "trims spaces only, no other white space; or the given characters"


def _read_padded(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read the padding of a CHAR(n) column with spaces; longer text is unchanged."""
    text, length = arguments
    own = Call("length", (text,), INTEGER, text.nullable)
    shorter = Call("lt", (own, length), BOOLEAN, text.nullable)
    filled = Call(entry.function, (text, length, Literal(" ", STRING)), kind, node.nullable)
    return Call("if", (shorter, filled, text), kind, node.nullable)


LONGEST: Final = 2147483647


def substring(text: str, position: int, length: int) -> str:
    """SQL's substring: positions count from 1, negative ones from the end, and 0 counts as 1."""
    begin = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length == LONGEST else begin + length
    return text[max(begin, 0) : max(end, 0)]


def locate(part: str, text: str, start: int) -> int:
    """The position of a part at or after a position, 0 if there is none; the empty text is at 1."""
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def substring_index(text: str, delimiter: str, count: int) -> str:
    """The text before the n-th delimiter, or after it if counted from the end. Delimiters may overlap."""
    if not delimiter or not count:
        return ""
    if count > 0:
        place = -1
        for _ in range(count):
            place = text.find(delimiter, place + 1)
            if place < 0:
                return text
        return text[:place]
    place = len(text) - len(delimiter) + 1
    for _ in range(-count):
        place = text.rfind(delimiter, 0, max(place - 1, -1) + len(delimiter)) if place > 0 else -1
        if place < 0:
            return text
    return text[place + len(delimiter) :]


def split_part(text: str, delimiter: str, part: int) -> str:
    """One of the parts between delimiters, counted from 1 or from the end; empty if there is none."""
    if part == 0:
        raise ValueFault("INVALID_INDEX_OF_ZERO", "The index 0 is invalid.")
    parts = text.split(delimiter) if delimiter else [text]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def overlay(text: str, replacement: str, position: int, length: int) -> str:
    """Replace a part of a text; if its length is negative, it is as long as the replacement."""
    taken = length if length >= 0 else len(replacement)
    return substring(text, 1, position - 1) + replacement + substring(text, position + taken, LONGEST)


def find_in_set(text: str, listed: str) -> int:
    """The position of a text in a list with commas, 0 if it is not there."""
    if "," in text:
        return 0
    items = listed.split(",")
    return items.index(text) + 1 if text in items else 0


def _substring(call: Call, sql: Sequence[str]) -> str:
    value, position = sql[0], sql[1]
    length = sql[2] if len(sql) == 3 else "2147483647"
    start = call.arguments[1]
    if isinstance(start, Literal) and isinstance(start.value, int) and start.value >= 0:
        # DuckDB's greatest ignores NULL.
        taken = case([(f"{length} < 0", "0")], length)
        return f"substring({value}, {max(start.value, 1)}, {taken})"
    # Spark's positions count from 1, from the end if negative, and 0 counts as 1; a length that begins before the text
    # counts from there.
    begin = (
        f"CASE WHEN {position} > 0 THEN CAST({position} AS BIGINT) - 1 "
        f"WHEN {position} < 0 THEN length({value}) + {position} ELSE 0 END"
    )
    end = f"({begin}) + CAST({length} AS BIGINT)"
    first = f"greatest({begin}, 0)"
    taken = f"substring({value}, {first} + 1, least(greatest({end} - {first}, 0), 2147483647))"
    known = f"{position} IS NULL OR {length} IS NULL OR {value} IS NULL"
    return case([(known, "NULL")], taken)


def _trimmed(name: str) -> Write:
    """Trim spaces, or any of the given characters."""

    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        return f"{name}({sql[0]}, {sql[1] if len(sql) == 2 else repr(' ')})"

    return write


def _write_padded(name: str) -> Write:
    def write(call: Call, sql: Sequence[str]) -> str:
        value, length, pad = sql
        enough = f"{pad} = '' OR length({value}) >= {length}"
        known = f"{value} IS NULL OR {length} IS NULL OR {pad} IS NULL"
        grown = checked(call, sql, lambda _, length, __: f"CAST({length} AS DOUBLE)", partial(_pad, name))
        return case([(known, "NULL"), (enough, f"substring({value}, 1, greatest({length}, 0))")], grown)

    return write


def _pad(name: str, value: str, length: str, pad: str) -> str:
    return f"{name}({value}, {length}, {pad})"


def _padded_within(call: Call) -> tuple[Sequence[float], float] | None:
    length = constant_number(call, 1)
    return None if length is None else ((1, 0, 0), _CODE_POINT_BYTES * max(length, 0))


def _padded_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:  # noqa: ARG001 - the signature of a formula
    length = sizes.values[1]
    if length is None:
        return None
    return f"{sizes.bytes[0]} + {number(length)} * least({sizes.bytes[2]}, {_CODE_POINT_BYTES})", False


def _replaced_within(call: Call) -> tuple[Sequence[float], float] | None:
    """Each occurrence of a constant text becomes another constant text."""
    part, by = constant_bytes(call, 1), constant_bytes(call, 2)
    return None if by is None else ((max(by / max(part or 1, 1), 1), 0, 0), 0)


def _replaced_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:
    """The size itself, if the text and the part are there, so that occurrences can be counted."""
    text, part, _ = sizes.values
    if text is not None and part is not None:
        return f"coalesce({_after_replacing(text, part, sizes.bytes[2])}, 0)", True
    length = max(constant_bytes(call, 1) or 1, 1)
    return f"{sizes.bytes[0]} * greatest({sizes.bytes[2]} / {float(length)}, 1)", False


def _after_replacing(text: str, part: str, by_bytes: str) -> str:
    taken = f"CAST(strlen({text}) - strlen(replace({text}, {part}, '')) AS DOUBLE)"
    return f"(strlen({text}) + {taken} / greatest(strlen({part}), 1) * ({by_bytes} - strlen({part})))"


def _replace(call: Call, sql: Sequence[str]) -> str:
    def size(text: str, part: str, by: str) -> str:
        # Counting is as much work as replacing, so it comes after a bound within which most rows are.
        most = f"CAST(strlen({text}) AS DOUBLE) * greatest(strlen({by}), 1)"
        return case([(f"{most} > {LARGEST_SQL}", _after_replacing(text, part, f"strlen({by})"))], "0")

    return checked(call, sql, size, lambda text, part, by: f"replace({text}, {part}, {by})")


def _locate(call: Call, sql: Sequence[str]) -> str:
    """Write `locate`: a NULL start gives 0, as in Hive; from the first character, DuckDB's function is used."""
    part, value, start = sql
    if isinstance(call.arguments[2], Literal) and call.arguments[2].value == 1:
        return cast(f"instr({value}, {part})", call.type)
    branches = [(f"{start} IS NULL", "0")]
    return cast(case(branches, f"wallaby_locate({part}, {value}, {start})"), call.type)


#: A character that pads takes up to this many bytes.
_CODE_POINT_BYTES: Final = 4
_PADDED: Final = growing(_padded_size, _padded_within)
_REPLACED: Final = growing(_replaced_size, _replaced_within)
_TEXT_NUMBER_TEXT = (Kind.STRING, Kind.INTEGER, Kind.STRING)


FAMILY: Final = Family(
    "Text",
    (
        exact(
            "StartsWith",
            "starts_with",
            TEXT,
            sql=ScalarSql(2, template("starts_with({0}, {1})")),
            examples=("startswith({string}, {string})", "{string} like 'a%'"),
        ),
        exact(
            "EndsWith",
            "ends_with",
            TEXT,
            sql=ScalarSql(2, template("ends_with({0}, {1})")),
            examples=("endswith({string}, {string})", "{string} like '%m'"),
        ),
        exact(
            "Contains",
            "contains",
            TEXT,
            sql=ScalarSql(2, template("contains({0}, {1})")),
            examples=("contains({string}, {string})", "{string} like '%ß%'"),
        ),
        guarded(
            "Substring",
            "substring",
            TEXT,
            INTEGRAL,
            guard="position 0 counts as 1; negative positions count from the end",
            sql=ScalarSql((2, 3), _substring, size=WITHIN),
            examples=(
                "substring({string}, {small}, {small})",
                "substr({string}, {small})",
                "substring({string}, 0, 2)",
            ),
        ),
        guarded(
            "StringTrim",
            "trim",
            TEXT,
            guard=_SPACES,
            sql=ScalarSql((1, 2), _trimmed("trim"), size=WITHIN),
            examples=("trim({string})", "trim(both 'a ß' from {string})", "btrim({string}, {string})"),
        ),
        guarded(
            "StringTrimLeft",
            "trim_left",
            TEXT,
            guard=_SPACES,
            sql=ScalarSql((1, 2), _trimmed("ltrim"), size=WITHIN),
            examples=("ltrim({string})", "ltrim('x😀a', {string})"),
        ),
        guarded(
            "StringTrimRight",
            "trim_right",
            TEXT,
            guard=_SPACES,
            sql=ScalarSql((1, 2), _trimmed("rtrim"), size=WITHIN),
            examples=("rtrim({string})", "rtrim({string}, {string})"),
        ),
        guarded(
            "StringLPad",
            "pad_left",
            TEXT,
            INTS,
            TEXT,
            guard="padding with an empty text only cuts",
            sql=ScalarSql(3, _write_padded("lpad"), size=_PADDED),
            examples=("lpad({string}, {small}, {string})", "lpad({string}, 9)"),
        ),
        guarded(
            "StringRPad",
            "pad_right",
            TEXT,
            INTEGRAL,
            TEXT,
            guard="padding with an empty text only cuts",
            sql=ScalarSql(3, _write_padded("rpad"), reason=of_kinds(*_TEXT_NUMBER_TEXT), size=_PADDED),
            examples=("rpad({string}, {small}, {string})", "rpad({string}, 9, 'é😀')"),
        ),
        exact(
            "StringInstr",
            "instr",
            TEXT,
            sql=ScalarSql(2, template("instr({0}, {1})", typed=True)),
            examples=("instr({string}, {string})", "instr({string}, 'a')"),
        ),
        guarded(
            "StringLocate",
            "locate",
            TEXT,
            TEXT,
            INTS,
            guard="0 if the start is NULL",
            sql=ScalarSql(3, _locate),
            examples=(
                "locate('a', {string}, {small})",
                "locate({string}, {string})",
                "position('b' in {string})",
            ),
        ),
        guarded(
            "SubstringIndex",
            "substring_index",
            TEXT,
            TEXT,
            INTS,
            guard="delimiters may overlap",
            sql=ScalarSql(3, template("wallaby_substring_index({0}, {1}, {2})"), size=WITHIN),
            examples=("substring_index({string}, 'a', {small})", "substring_index({string}, {string}, -1)"),
        ),
        guarded(
            "SplitPart",
            "split_part",
            TEXT,
            TEXT,
            INTS,
            guard="`split_part`; part 0 is an error",
            sql=ScalarSql(3, template("wallaby_split_part({0}, {1}, {2})"), fallible=always, size=WITHIN),
            examples=("split_part({string}, 'X', {small})", "split_part({string}, {string}, 1)"),
            shown_as="StringSplitSQL",
        ),
        exact(
            "StringReplace",
            "replace",
            TEXT,
            sql=ScalarSql(3, _replace, size=_REPLACED),
            examples=("replace({string}, 'a', {string})", "replace({string}, {string})"),
        ),
        exact(
            "ExpressionImplUtils#quote",
            "quote",
            TEXT,
            build=configured(),
            sql=ScalarSql(1, template(r"('''' || replace({0}, '''', '\''') || '''')"), size=at_most(2, 2)),
            examples=("quote({string})", r"quote(concat({string}, '\'', {string}))"),
        ),
        exact(
            "Overlay",
            "overlay",
            TEXT,
            TEXT,
            INTS,
            sql=ScalarSql(4, template("wallaby_overlay({0}, {1}, {2}, {3})"), size=at_most(1)),
            examples=(
                "overlay({string} placing {string} from {small})",
                "overlay({string} placing 'x' from 2 for {small})",
            ),
        ),
        exact(
            "FindInSet",
            "find_in_set",
            TEXT,
            sql=ScalarSql(2, template("wallaby_find_in_set({0}, {1})")),
            examples=("find_in_set({string}, 'a,b,,abc')", "find_in_set('a', {string})"),
        ),
        guarded(
            "CharVarcharCodegenUtils#readSidePadding",
            "pad_right",
            TEXT,
            INTEGRAL,
            guard="of columns that tables declare as CHAR",
            build=_read_padded,
            without_example="only columns that a table declares as CHAR; tested on its own",
        ),
    ),
    arrow_functions=(
        per_value("wallaby_locate", (STRING, STRING, INTEGER), INTEGER, locate),
        per_value("wallaby_substring_index", (STRING, STRING, INTEGER), STRING, substring_index),
        per_value("wallaby_split_part", (STRING, STRING, INTEGER), STRING, split_part),
        per_value("wallaby_overlay", (STRING, STRING, INTEGER, INTEGER), STRING, overlay),
        per_value("wallaby_find_in_set", (STRING, STRING), INTEGER, find_in_set),
    ),
)
