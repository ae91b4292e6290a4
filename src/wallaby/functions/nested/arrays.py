"""Arrays: sorted, cut, joined and filled. Positions count from 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from wallaby.catalyst.data_types import ARRAYS, DATES, INTEGRAL, READABLE, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded, plain, unsupported
from wallaby.functions.family import Family
from wallaby.functions.nested.searching import comparable
from wallaby.functions.scalar_sql import MANY, ScalarSql, Write, fine, template
from wallaby.functions.size import (
    PARTS_TIMES,
    TOGETHER,
    VALUE_BYTES,
    WITHIN,
    Sizes,
    at_most,
    by_call,
    constant_bytes,
    constant_number,
    growing,
    number,
    value_size,
    varies,
)
from wallaby.functions.within_limit import checked
from wallaby.functions.words import always, bound, failing, has_null
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import DataType, Kind
from wallaby.sql.words import case, cast, error, field_sql, ordered, struct_sql

#: Functions that Catalyst has for text and for arrays under one name, and our names for arrays.
OF_ARRAYS: Final = MappingProxyType({"Concat": "ConcatOfArrays", "Reverse": "ReverseOfArray"})
_DAY_MICROS: Final = 86_400_000_000
_DAY_TIMES: Final = frozenset(
    {"interval day", "interval day to hour", "interval day to minute", "interval day to second"}
)
#: Characters without a special meaning in Java's regular expressions.
_PLAIN: Final = re.compile(r"[^\\\[\]{}()*+?.^$|\x00]+")
_ESCAPED: Final = re.compile(r"\\([^A-Za-z0-9\s])|\[([^\\\[\]^&-])\]")
#: The default comparator of `array_sort`; its parameters are $0 and $1.
_DEFAULT_ORDER: Final = (
    "If(And(IsNull($0),IsNull($1)),0,If(IsNull($0),1,If(IsNull($1),-1,"
    "If(LessThan($0,$1),-1,If(GreaterThan($0,$1),1,0)))))"
)
#: The same, simplified by Catalyst where no element is NULL.
_DEFAULT_WITHOUT_NULLS: Final = "If(LessThan($0,$1),-1,If(GreaterThan($0,$1),1,0))"


def _sort_array(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    match arguments[1]:
        case Literal(value=bool(ascending)):
            return Call("sort_up" if ascending else "sort_down", arguments[:1], kind, node.nullable)
        case _:
            return Refusal("the direction is not a constant")


def _array_sort(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    function = node.children[1]
    places = {part.id: f"${place}" for place, part in enumerate(function.children[1:])}
    shape = _shape(function.children[0], places)
    nulls = any(part.nullable for part in function.children[1:])
    if shape != _DEFAULT_ORDER and (nulls or shape != _DEFAULT_WITHOUT_NULLS):
        return Refusal("it has a comparator of its own", "use sort_array")
    return Call(entry.function, arguments[:1], kind, node.nullable)


def _shape(node: Node, places: dict[int | None, str]) -> str:
    if node.id in places:
        return places[node.id]
    if node.name == "Literal":
        return str(node.value)
    return f"{node.name}({','.join(_shape(child, places) for child in node.children)})"


def _read_split(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    text, pattern, limit = arguments
    if not isinstance(limit, Literal) or not isinstance(limit.value, int) or limit.value > 0:
        return Refusal("the number of parts is limited")
    separator = split_text(pattern.value) if isinstance(pattern, Literal) else None
    if separator is None:
        return Refusal("the delimiter is a regular expression, not a plain text")
    return Call(entry.function, (text, Literal(separator, pattern.type)), kind, node.nullable)


def split_text(pattern: object) -> str | None:
    """The only text that a simple regular expression matches; None for other patterns."""
    if not isinstance(pattern, str) or not pattern:
        return None
    found, at = "", 0
    while at < len(pattern):
        plain_part, escaped = _PLAIN.match(pattern, at), _ESCAPED.match(pattern, at)
        if plain_part is not None:
            found, at = found + plain_part[0], plain_part.end()
        elif escaped is not None:
            found, at = found + (escaped[1] or escaped[2]), escaped.end()
        else:
            return None
    return found


def _in_days(node: Node) -> Node:
    """Turn a sequence of dates by an interval of whole days into one by a number of days."""
    if len(node.children) != 3 or node.children[0].type != "date":
        return node
    start, stop, step = node.children
    micros = step.value
    whole = isinstance(micros, int) and not isinstance(micros, bool) and micros % _DAY_MICROS == 0
    if step.name != "Literal" or step.type not in _DAY_TIMES or not whole:
        return node
    assert isinstance(micros, int), "a day-time interval is a number of microseconds"
    return replace(node, children=(start, stop, replace(step, type="int", value=micros // _DAY_MICROS)))


def _read_insert(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if node.flag("legacyNegativeIndex"):
        return Refusal("with spark.sql.legacy.negativeIndexInArrayInsert positions are counted differently")
    return plain(entry, node, arguments, kind)


_ZERO = ("INVALID_INDEX_OF_ZERO", "The index 0 is invalid. Positions count from 1.")


def _join(call: Call, sql: Sequence[str]) -> str:
    """Join texts; DuckDB supports only a constant separator, so another one comes before each text but the first."""
    constant = isinstance(call.arguments[1], Literal)

    def write(a: str, between: str, instead: str = "") -> str:
        shown = (
            f"list_transform({a}, lambda e: coalesce(e, {instead}))"
            if instead
            else f"list_filter({a}, lambda e: e IS NOT NULL)"
        )
        nulls = " OR ".join(f"{one} IS NULL" for one in (a, between, *([instead] if instead else [])))
        after_first = case([("i > 1", f"{between} || e")], "e")
        joined = (
            f"array_to_string({shown}, {sql[1]})"
            if constant
            else f"array_to_string(list_transform({shown}, lambda e, i: {after_first}), '')"
        )
        return case([(nulls, "NULL"), (f"len({shown}) = 0", "''")], joined)

    def size(a: str, between: str, instead: str = "") -> str:
        added = " + ".join(f"strlen({one})" for one in (between, *([instead] if instead else [])))
        return f"{value_size(a, call.arguments[0].type)} + len({a}) * ({added})"

    return cast(checked(call, sql, size, lambda *given: bound(given, write)), call.type)


def _joined_within(call: Call) -> tuple[Sequence[float], float] | None:
    """The texts, and a constant text or two for each."""
    added = [constant_bytes(call, place) for place in range(1, len(call.arguments))]
    known = sum(one for one in added if one is not None)
    return None if None in added else ((1 + known / VALUE_BYTES, *(0,) * len(added)), 0)


def _joined_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:  # noqa: ARG001 - the signature of a formula
    return f"{sizes.bytes[0]} + {sizes.counts[0]} * ({' + '.join(sizes.bytes[1:])})", False


def _sorted(ascending: bool, nulls_first: bool) -> Write:
    direction = f"'{'ASC' if ascending else 'DESC'}', 'NULLS {'FIRST' if nulls_first else 'LAST'}'"

    def write(call: Call, sql: Sequence[str]) -> str:
        element = call.type.element
        if not element.is_nested:
            return f"list_sort({sql[0]}, {direction})"
        present = "e IS NOT NULL" if nulls_first == ascending else "e IS NULL"
        pairs = f"list_transform({sql[0]}, lambda e: {struct_sql([present, ordered('e', element), 'e'])})"
        return f"list_transform(list_sort({pairs}, {direction}), lambda e: {field_sql('e', 2)})"

    return write


def _slice(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    zero = ("INVALID_PARAMETER_VALUE.START", "The parameter start in slice is 0; positions count from 1.")
    negative = ("INVALID_PARAMETER_VALUE.LENGTH", "The parameter length in slice is negative.")

    def write(a: str, start: str, length: str) -> str:
        begin = f"(CASE WHEN {start} < 0 THEN len({a}) + {start} + 1 ELSE {start} END)"
        taken = f"list_slice({a}, {begin}, {begin} + CAST({length} AS BIGINT) - 1)"
        known = f"{a} IS NULL OR {start} IS NULL OR {length} IS NULL"
        checked = failing([(f"{start} = 0", *zero), (f"{length} < 0", *negative)], taken)
        return case([(known, "NULL"), (f"{begin} < 1 AND {start} <> 0 AND {length} >= 0", "[]")], checked)

    return bound(sql, write)


def _concatenated(call: Call, sql: Sequence[str]) -> str:
    nulls = " OR ".join(f"{one} IS NULL" for one in sql)
    return cast(case([(nulls, "NULL")], f"list_concat({', '.join(sql)})"), call.type)


def _flatten(call: Call, sql: Sequence[str]) -> str:
    inner = call.arguments[0].type.element
    return bound(sql, lambda a: case([(has_null(a, inner), "NULL")], f"flatten({a})"))


def _repeat(call: Call, sql: Sequence[str]) -> str:
    value, count = sql

    def size(value: str, count: str) -> str:
        return f"({value_size(value, call.arguments[0].type)} + {VALUE_BYTES}.0) * {count}"

    def write(value: str, count: str) -> str:
        made = f"list_transform(range(greatest({count}, 0)), lambda n: {value})"
        return case([(f"{count} IS NULL", "NULL")], made)

    return cast(checked(call, (value, count), size, write), call.type)


def _repeated_within(call: Call) -> tuple[Sequence[float], float] | None:
    times = constant_number(call, 1)
    return None if times is None else ((max(times, 0), 0), VALUE_BYTES * max(times, 0))


def _repeated_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:
    times = sizes.values[1]
    own = sizes.bytes[0] if not varies(call.arguments[0].type) else f"({sizes.bytes[0]} + {VALUE_BYTES}.0)"
    return None if times is None else (f"{own} * {number(times)}", True)


def _sequence_within(call: Call) -> tuple[Sequence[float], float] | None:
    ends = [constant_number(call, place) for place in range(2)]
    if None in ends:
        return None
    first, last = (end for end in ends if end is not None)
    return (0,) * len(call.arguments), VALUE_BYTES * (abs(last - first) + 1)


def _sequence_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:
    values = [value for value in sizes.values if value is not None]
    if len(values) < len(call.arguments):
        return None
    if call.type.element.kind is Kind.DATE:
        values[:2] = [f"({value} - DATE '1970-01-01')" for value in values[:2]]
    first, last, *by = (f"CAST({value} AS DOUBLE)" for value in values)
    step = f"greatest(abs({by[0]}), 1)" if by else "1"
    return f"coalesce((floor(abs({last} - {first}) / {step}) + 1) * {VALUE_BYTES}.0, 0)", True


def _zipped(call: Call) -> tuple[Sequence[float], float]:
    """A value of each array for every element of the longest."""
    return (1 + len(call.arguments),) * len(call.arguments), 0


def _inserted_within(call: Call) -> tuple[Sequence[float], float] | None:
    place = constant_number(call, 1)
    return None if place is None else ((1, 0, 1), VALUE_BYTES * (abs(place) + 1))


def _inserted_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:  # noqa: ARG001 - the signature of a formula
    place = sizes.values[1]
    gap = None if place is None else f"abs(coalesce(CAST({place} AS DOUBLE), 0)) * {VALUE_BYTES}.0"
    return None if gap is None else (f"{sizes.bytes[0]} + {sizes.bytes[2]} + {gap}", False)


def _sequence(call: Call, sql: Sequence[str]) -> str:
    """A sequence, up or down by 1, or by the step; dates are counted in days."""
    dates = call.type.element.kind is Kind.DATE

    def size(*given: str) -> str:
        made = _sequence_size(call, Sizes((), (), given))
        assert made is not None, "all arguments are there"
        return made[0]

    def write(*given: str) -> str:
        ends = [f"({one} - DATE '1970-01-01')" if dates else one for one in given[:2]]
        made = bound([f"CAST({one} AS BIGINT)" for one in (*ends, *given[2:])], _series)
        if dates:
            made = f"list_transform({made}, lambda e: DATE '1970-01-01' + CAST(e AS INTEGER))"
        return made

    return cast(checked(call, sql, size, write), call.type)


def _series(a: str, b: str, step: str = "") -> str:
    if not step:
        up, down = f"generate_series({a}, {b})", f"generate_series({a}, {b}, -1)"
        return case([(f"{a} <= {b}", up), (f"{a} > {b}", down)])
    forward = f"{step} > 0 AND {a} <= {b} OR {step} < 0 AND {a} >= {b} OR {step} = 0 AND {a} = {b}"
    made = case([(f"{a} = {b}", f"[{a}]")], f"generate_series({a}, {b}, {step})")
    known = f"{a} IS NULL OR {b} IS NULL OR {step} IS NULL"
    wrong = ("_LEGACY_ERROR_TEMP_3243", "Illegal sequence boundaries.")
    return case([(known, "NULL")], failing([(f"NOT ({forward})", *wrong)], made))


def _has_step(call: Call) -> bool:
    return len(call.arguments) > 2


def _zip(call: Call, sql: Sequence[str]) -> str:
    def write(*arrays: str) -> str:
        nulls = " OR ".join(f"{array} IS NULL" for array in arrays)
        row = struct_sql([f"list_extract({array}, n)" for array in arrays])
        longest = f"greatest({', '.join(f'len({array})' for array in arrays)})"
        return case([(nulls, "NULL")], f"list_transform(generate_series(1, {longest}), lambda n: {row})")

    return cast(bound(sql, write), call.type)


def _write_insert(call: Call, sql: Sequence[str]) -> str:
    """Insert before a position; -1 is after the last element. Gaps are filled with NULL."""
    element = call.type.element

    def write(a: str, position: str, value: str) -> str:
        one = cast(f"[{value}]", call.type)
        missing = f"list_transform(range(abs({position}) - len({a}) - 1), lambda n: {cast('NULL', element)})"
        head = f"list_slice({a}, 1, {position} - 1)"
        tail = f"list_slice({a}, {position}, len({a}))"
        back = f"len({a}) + {position} + 1"
        return case(
            [
                (f"{a} IS NULL OR {position} IS NULL", "NULL"),
                (f"{position} = 0", error(*_ZERO)),
                (f"{position} > len({a})", f"list_concat({a}, {missing}, {one})"),
                (f"{position} > 0", f"list_concat({head}, {one}, {tail})"),
                (f"{back} < 0", f"list_concat({one}, {missing}, {a})"),
            ],
            f"list_concat(list_slice({a}, 1, {back}), {one}, list_slice({a}, {back} + 1, len({a})))",
        )

    def size(a: str, position: str, value: str) -> str:  # noqa: ARG001 - the signature of a size
        return f"abs(CAST({position} AS DOUBLE)) * {VALUE_BYTES}.0"

    def whole(a: str, position: str, value: str) -> str:
        return bound([a, f"CAST({position} AS BIGINT)", value], write)

    return cast(checked(call, sql, size, whole), call.type)


def _write_split(call: Call, sql: Sequence[str]) -> str:
    """Split by a constant text, which `split_text` has extracted from Java's pattern."""
    return cast(f"string_split({sql[0]}, {sql[1]})", call.type)


def _same_arrays(call: Call) -> str | None:
    """Refuse arrays of different types; Catalyst casts them to one."""
    odd = next((a.type for a in call.arguments if a.type != call.type), None)
    return None if odd is None else f"{call.function} of {odd} as {call.type} is not supported"


FAMILY: Final = Family(
    "Arrays, structs and maps",
    (
        exact(
            "ArrayJoin",
            "array_join",
            ARRAYS,
            TEXT,
            sql=ScalarSql((2, 3), _join, size=growing(_joined_size, _joined_within)),
            examples=("array_join({array_string}, ',')", "array_join({array_string}, {string}, {string})"),
        ),
        exact(
            "SortArray",
            "sort_up",
            ARRAYS,
            READABLE,
            build=_sort_array,
            sql=ScalarSql(1, _sorted(ascending=True, nulls_first=True), reason=comparable, size=WITHIN),
            examples=(
                "sort_array({array})",
                "sort_array({array}, false)",
                "sort_array(array({struct}, null, {struct}), false)",
                "sort_array(array({array}, null, {array}))",
            ),
        ),
        guarded(
            "ArraySort",
            "sort_nulls_last",
            ARRAYS,
            READABLE,
            guard="without a comparator",
            build=_array_sort,
            sql=ScalarSql(1, _sorted(ascending=True, nulls_first=False), reason=comparable, size=WITHIN),
            examples=("array_sort({array})", "array_sort(array({struct}, null, {struct}))"),
        ),
        exact(
            "Slice",
            "slice",
            ARRAYS,
            INTEGRAL,
            sql=ScalarSql(3, _slice, fallible=always, size=WITHIN),
            examples=("slice({array}, {small}, {small})", "slice({array}, -2, 5)", "slice({array}, 2, 0)"),
        ),
        exact(
            "ConcatOfArrays",
            "array_concat",
            ARRAYS,
            sql=ScalarSql((1, MANY), _concatenated, reason=_same_arrays, size=TOGETHER),
            examples=("concat({array}, {array})",),
            shown_as="Concat",
        ),
        exact(
            "ReverseOfArray",
            "array_reverse",
            ARRAYS,
            sql=ScalarSql(1, template("list_reverse({0})"), size=WITHIN),
            examples=("reverse({array})",),
            shown_as="Reverse",
        ),
        exact(
            "Flatten",
            "flatten",
            ARRAYS,
            sql=ScalarSql(1, _flatten, size=WITHIN),
            examples=("flatten(array({array}, {array}))", "flatten(array({array}))"),
        ),
        exact(
            "ArrayRepeat",
            "array_repeat",
            READABLE,
            INTEGRAL,
            sql=ScalarSql(2, _repeat, size=growing(_repeated_size, _repeated_within)),
            examples=("array_repeat({any}, {small})", "array_repeat({array}, 2)"),
        ),
        guarded(
            "Sequence",
            "sequence",
            INTEGRAL | DATES,
            guard="dates by a constant number of days; a step in the wrong direction is an error",
            rewrite=_in_days,
            sql=ScalarSql(
                (2, 3), _sequence, fallible=_has_step, size=growing(_sequence_size, _sequence_within)
            ),
            examples=(
                "sequence({small}, {small})",
                "sequence(cast({small} as bigint), 3L)",
                "sequence(1Y, cast({small} as tinyint))",
                "sequence(1, 20, {small} + 8)",
                "sequence(date'2020-02-27', date'2020-03-01', interval 2 days)",
            ),
        ),
        guarded(
            "StringSplit",
            "split",
            TEXT,
            TEXT,
            INTEGRAL,
            guard="by a constant text, without a limit",
            build=_read_split,
            sql=ScalarSql(2, _write_split, reason=fine, size=at_most(PARTS_TIMES)),
            examples=(
                "split({string}, ',')",
                "split({string}, '[|]')",
                "split({string}, 'a\\\\.b')",
                "split({digits}, '-')",
                "split({string}, ' ', 0)",
            ),
        ),
        exact(
            "ArraysZip",
            "arrays_zip",
            ARRAYS,
            sql=ScalarSql((1, MANY), _zip, size=by_call(_zipped)),
            examples=("arrays_zip({array}, {array})", "arrays_zip({array_int})"),
        ),
        exact(
            "ArrayInsert",
            "array_insert",
            ARRAYS,
            INTEGRAL,
            READABLE,
            build=_read_insert,
            sql=ScalarSql(
                3, _write_insert, reason=fine, fallible=always, size=growing(_inserted_size, _inserted_within)
            ),
            examples=(
                "array_insert({array_int}, {small}, {int})",
                "array_append({array}, null)",
                "array_prepend({array_string}, {string})",
                "array_insert({array_int}, -3, {int})",
            ),
        ),
        unsupported("Shuffle", "its result differs every time"),
    ),
    also={
        "sort_down": ScalarSql(1, _sorted(ascending=False, nulls_first=False), reason=comparable, size=WITHIN)
    },
)
