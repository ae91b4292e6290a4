"""Arrays, structs and maps: made, taken apart, searched and changed. A map is an array of pairs; `types` says why.

`field` and `fields` take the place of a field as a constant. Positions are Spark's: from 0 in `item`, from 1 elsewhere.
DuckDB's equality in lists is Spark's: NULL equals NULL, NaN itself, and the two zeros each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.functions.scalar.function import MANY, Function, Reason, Write, fine, template
from wallaby.functions.scalar.words import always, bound, failing, has_null
from wallaby.relations.expression import Call, EvalMode, Literal
from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import FLAT, entry_type, is_comparable
from wallaby.sql.words import case, cast, error, field_sql, normalized, ordered, struct_sql

_ZERO = ("INVALID_INDEX_OF_ZERO", "The index 0 is invalid. Positions count from 1.")


# ----------------------------------------------------------------------------------------------------- structs
def _place(call: Call) -> int:
    place = call.arguments[1]
    assert isinstance(place, Literal), "the reader puts a constant there"
    assert isinstance(place.value, int), "a place is a number"
    return place.value


def _field(call: Call, sql: Sequence[str]) -> str:
    return field_sql(sql[0], _place(call))


def _fields(call: Call, sql: Sequence[str]) -> str:
    return f"list_transform({sql[0]}, lambda e: {field_sql('e', _place(call))})"


def _array(call: Call, sql: Sequence[str]) -> str:
    return cast(f"[{', '.join(sql)}]", call.type)


def _struct(call: Call, sql: Sequence[str]) -> str:
    return cast(struct_sql(sql), call.type)


# -------------------------------------------------------------------------------------------------- one element
_OUTSIDE = "The index is out of bounds of the array."


def _item(call: Call, sql: Sequence[str]) -> str:
    def write(a: str, i: str) -> str:
        outside = f"{a} IS NOT NULL AND ({i} < 0 OR {i} >= len({a}))"
        found = f"list_extract({a}, CAST({i} AS BIGINT) + 1)"
        if call.mode is not EvalMode.ANSI:
            return case([(outside, "NULL")], found)
        return failing([(outside, "INVALID_ARRAY_INDEX", _OUTSIDE)], found)

    return bound(sql, write)


def _element_at(call: Call, sql: Sequence[str]) -> str:
    def write(a: str, i: str) -> str:
        faults = [(f"{a} IS NOT NULL AND {i} = 0", *_ZERO)]
        if call.mode is EvalMode.ANSI:
            outside = f"abs(CAST({i} AS BIGINT)) > len({a})"
            faults.append((outside, "INVALID_ARRAY_INDEX_IN_ELEMENT_AT", _OUTSIDE))
        return failing(faults, f"list_extract({a}, {i})")

    return bound(sql, write)


def _may_be_outside(call: Call) -> bool:
    return call.mode is EvalMode.ANSI or call.function == "element_at"


# ------------------------------------------------------------------------------------------------------ searching
def _contains(call: Call, sql: Sequence[str]) -> str:
    element = call.arguments[0].type.element
    return bound(
        sql,
        lambda a, v: case(
            [
                (f"{a} IS NULL OR {v} IS NULL", "NULL"),
                (f"list_position({a}, {v}) IS NOT NULL", "TRUE"),
                (has_null(a, element), "NULL"),
            ],
            "FALSE",
        ),
    )


def _position(call: Call, sql: Sequence[str]) -> str:
    return bound(
        sql,
        lambda a, v: case(
            [(f"{a} IS NULL OR {v} IS NULL", "NULL")],
            cast(f"coalesce(list_position({a}, {v}), 0)", call.type),
        ),
    )


def _overlap(call: Call, sql: Sequence[str]) -> str:
    first, second = (argument.type.element for argument in call.arguments)

    def write(a: str, b: str) -> str:
        common = f"list_filter({a}, lambda e: e IS NOT NULL AND list_position({b}, e) IS NOT NULL)"
        nulls = f"len({a}) > 0 AND len({b}) > 0 AND ({has_null(a, first)} OR {has_null(b, second)})"
        return case(
            [(f"{a} IS NULL OR {b} IS NULL", "NULL"), (f"len({common}) > 0", "TRUE"), (nulls, "NULL")],
            "FALSE",
        )

    return bound(sql, write)


# ---------------------------------------------------------------------------------------------------------- sets
def _first_of_each(array: str, among: str = "") -> str:
    return f"list_filter({array}, lambda e, i: list_position({array}, e) = i{among})"


def _distinct(call: Call, sql: Sequence[str]) -> str:
    """Of the two zeros Spark shows the positive one, here and in what follows."""
    return bound([normalized(sql[0], call.type)], _first_of_each)


def _union(call: Call, sql: Sequence[str]) -> str:
    both = case([(f"{sql[0]} IS NULL OR {sql[1]} IS NULL", "NULL")], f"list_concat({sql[0]}, {sql[1]})")
    return bound([normalized(both, call.type)], _first_of_each)


def _among(sign: str) -> Write:
    def write(call: Call, sql: Sequence[str]) -> str:
        return bound(
            [normalized(sql[0], call.type), sql[1]],
            lambda a, b: case(
                [(f"{b} IS NULL", "NULL")], _first_of_each(a, f" AND list_position({b}, e) {sign}")
            ),
        )

    return write


# ---------------------------------------------------------------------------------------------------- other arrays
def _join(call: Call, sql: Sequence[str]) -> str:
    """DuckDB joins by a constant only; else one text after the other."""
    constant = isinstance(call.arguments[1], Literal)

    def write(a: str, between: str, instead: str = "") -> str:
        shown = (
            f"list_transform({a}, lambda e: coalesce(e, {instead}))"
            if instead
            else f"list_filter({a}, lambda e: e IS NOT NULL)"
        )
        nulls = " OR ".join(f"{one} IS NULL" for one in (a, between, *([instead] if instead else [])))
        joined = (
            f"array_to_string({shown}, {sql[1]})"
            if constant
            else f"list_reduce({shown}, lambda x, y: x || {between} || y)"
        )
        return case([(nulls, "NULL"), (f"len({shown}) = 0", "''")], joined)

    return cast(bound(sql, write), call.type)


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
    made = f"list_transform(range(greatest({count}, 0)), lambda n: {value})"
    return cast(case([(f"{count} IS NULL", "NULL")], made), call.type)


def _sequence(call: Call, sql: Sequence[str]) -> str:
    """Up or down by 1, or by the step; dates are counted in days."""
    dates = call.type.element.kind is Kind.DATE
    ends = [f"({one} - DATE '1970-01-01')" if dates else one for one in sql[:2]]
    made = bound([f"CAST({one} AS BIGINT)" for one in (*ends, *sql[2:])], _series)
    if dates:
        made = f"list_transform({made}, lambda e: DATE '1970-01-01' + CAST(e AS INTEGER))"
    return cast(made, call.type)


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


def _remove(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return bound(
        sql,
        lambda a, v: case([(f"{v} IS NULL", "NULL")], f"list_filter({a}, lambda e: e IS DISTINCT FROM {v})"),
    )


def _insert(call: Call, sql: Sequence[str]) -> str:
    """Before a position; from the end, -1 is behind the last. What lies between is filled with NULL."""
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

    position = f"CAST({sql[1]} AS BIGINT)"
    return cast(bound([sql[0], position, sql[2]], write), call.type)


def _split(call: Call, sql: Sequence[str]) -> str:
    """By a constant that is no pattern to Java: what it is escaped with has been taken away by `split_text`."""
    return cast(f"string_split({sql[0]}, {sql[1]})", call.type)


# ----------------------------------------------------------------------------------------------------------- maps
def _keys(sql: str) -> str:
    return f"list_transform({sql}, lambda e: {field_sql('e', 0)})"


def _values(sql: str) -> str:
    return f"list_transform({sql}, lambda e: {field_sql('e', 1)})"


def checked_map(entries: str, type_: DataType) -> str:
    """Entries whose keys may be NULL, or the same twice, which is an error."""
    key = type_.children[0]

    def write(m: str) -> str:
        twice = f"len({m}) > 1 AND len(list_distinct({_keys(m)})) < len({m})"
        return failing(
            [
                (has_null(_keys(m), key), "NULL_MAP_KEY", "Cannot use null as map key."),
                (twice, "DUPLICATED_MAP_KEY", "Duplicate map key was found."),
            ],
            m,
        )

    return bound([cast(entries, type_)], write)


def _with_normal_keys(entries: str, type_: DataType) -> str:
    """Entries with one zero and one NaN among their keys; not where Spark has an array of the keys already."""
    key = field_sql("e", 0)
    normal = normalized(key, type_.children[0])
    pair = struct_sql([normal, field_sql("e", 1)])
    return entries if normal == key else f"list_transform({entries}, lambda e: {pair})"


def _map(call: Call, sql: Sequence[str]) -> str:
    key = call.type.children[0]
    keys = (normalized(one, key) for one in sql[0::2])
    entries = (struct_sql(pair) for pair in zip(keys, sql[1::2], strict=True))
    return checked_map(f"[{', '.join(entries)}]", call.type)


def _map_value(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return bound(sql, lambda m, k: f"list_extract({_values(m)}, list_position({_keys(m)}, {k}))")


def _map_of_arrays(call: Call, sql: Sequence[str]) -> str:
    def write(keys: str, values: str) -> str:
        pair = struct_sql([f"list_extract({keys}, n)", f"list_extract({values}, n)"])
        entries = f"list_transform(generate_series(1, len({keys})), lambda n: {pair})"
        nulls = f"{keys} IS NULL OR {values} IS NULL"
        lengths = error(
            "_LEGACY_ERROR_TEMP_2128", "The key array and value array of MapData must have the same length."
        )
        return case(
            [(nulls, "NULL"), (f"len({keys}) <> len({values})", lengths)], checked_map(entries, call.type)
        )

    return bound(sql, write)


def _map_of_entries(call: Call, sql: Sequence[str]) -> str:
    entry = entry_type(call.type)
    return bound(
        sql,
        lambda a: case(
            [(has_null(a, entry), "NULL")], checked_map(_with_normal_keys(a, call.type), call.type)
        ),
    )


def _map_of_text(call: Call, sql: Sequence[str]) -> str:
    """Pairs between one constant, keys and values between another; without that, the value is NULL."""
    text_, between, behind_key = sql
    found = f"instr(p, {behind_key})"
    key = case([(f"{found} > 0", f"substr(p, 1, {found} - 1)")], "p")
    value = case([(f"{found} > 0", f"substr(p, {found} + length({behind_key}))")])
    pairs = f"list_transform(string_split({text_}, {between}), lambda p: {struct_sql([key, value])})"
    return checked_map(pairs, call.type)


def _map_concat(call: Call, sql: Sequence[str]) -> str:
    nulls = " OR ".join(f"{one} IS NULL" for one in sql)
    entries = _with_normal_keys(f"list_concat({', '.join(sql)})", call.type)
    return case([(nulls, "NULL")], checked_map(entries, call.type))


# ------------------------------------------------------------------------------------------------------- reasons
def _comparable(call: Call) -> str | None:
    """What is searched for must have an equality."""
    odd = next((a.type for a in call.arguments if not is_comparable(a.type)), None)
    return None if odd is None else f"{call.function} of {odd} is not supported"


def _flat_elements(call: Call) -> str | None:
    element = call.arguments[0].type.element
    return None if element.kind in FLAT else f"{call.function} of {call.arguments[0].type} is not supported"


def _extreme(function: str) -> Write:
    """The least or greatest element; of both zeros, as on Spark, the one that stands first."""

    def write(call: Call, sql: Sequence[str]) -> str:
        found = f"{function}({sql[0]})"
        if call.type.is_floating:
            found = f"list_extract({sql[0]}, list_position({sql[0]}, {found}))"
        return cast(found, call.type)

    return write


def _same_arrays(call: Call) -> str | None:
    """Catalyst casts arrays to one type."""
    odd = next((a.type for a in call.arguments if a.type != call.type), None)
    return None if odd is None else f"{call.function} of {odd} as {call.type} is not supported"


def _searching(write: Write, reason: Reason = _comparable) -> Function:
    return Function((2, 2), write, reason)


FUNCTIONS: dict[str, Function] = {
    "field": Function((2, 2), _field),
    "fields": Function((2, 2), _fields),
    "array": Function((0, MANY), _array),
    "struct": Function((1, MANY), _struct),
    "item": Function((2, 2), _item, fine, _may_be_outside),
    "element_at": Function((2, 2), _element_at, fine, _may_be_outside),
    "size": Function((1, 1), template("len({0})", typed=True)),
    "array_contains": _searching(_contains),
    "array_position": _searching(_position),
    "arrays_overlap": _searching(_overlap),
    "array_distinct": Function((1, 1), _distinct, _comparable),
    "array_union": _searching(_union),
    "array_intersect": _searching(_among("IS NOT NULL")),
    "array_except": _searching(_among("IS NULL")),
    "array_remove": _searching(_remove),
    "array_join": Function((2, 3), _join),
    "array_min": Function((1, 1), _extreme("list_min"), _flat_elements),
    "array_max": Function((1, 1), _extreme("list_max"), _flat_elements),
    "sort_up": Function((1, 1), _sorted(ascending=True, nulls_first=True), _comparable),
    "sort_down": Function((1, 1), _sorted(ascending=False, nulls_first=False), _comparable),
    "sort_nulls_last": Function((1, 1), _sorted(ascending=True, nulls_first=False), _comparable),
    "slice": Function((3, 3), _slice, fine, always),
    "array_concat": Function((1, MANY), _concatenated, _same_arrays),
    "flatten": Function((1, 1), _flatten),
    "array_reverse": Function((1, 1), template("list_reverse({0})")),
    "array_repeat": Function((2, 2), _repeat),
    "sequence": Function((2, 3), _sequence, fine, _has_step),
    "arrays_zip": Function((1, MANY), _zip),
    "array_insert": Function((3, 3), _insert, fine, always),
    "split": Function((2, 2), _split),
    "map": Function((0, MANY), _map, fine, always),
    "map_value": Function((2, 2), _map_value),
    "map_keys": Function((1, 1), template(_keys("{0}"))),
    "map_values": Function((1, 1), template(_values("{0}"))),
    "map_entries": Function((1, 1), template("{0}")),
    "map_from_arrays": Function((2, 2), _map_of_arrays, fine, always),
    "map_from_entries": Function((1, 1), _map_of_entries, fine, always),
    "map_from_text": Function((3, 3), _map_of_text, fine, always),
    "map_concat": Function((1, MANY), _map_concat, fine, always),
}
