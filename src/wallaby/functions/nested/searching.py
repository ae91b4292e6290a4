"""Search arrays, and compare them as sets.

DuckDB's equality in lists is Spark's: NULL equals NULL, NaN itself, and the two zeros each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import ARRAYS, COMPARABLE
from wallaby.functions.entry import exact
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import Reason, ScalarSql, Write
from wallaby.functions.size import WITHIN
from wallaby.functions.words import bound, has_null
from wallaby.relations.expression import Call
from wallaby.sql.types import FLAT, is_comparable
from wallaby.sql.words import case, cast, normalized


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


def _first_of_each(array: str, among: str = "") -> str:
    return f"list_filter({array}, lambda e, i: list_position({array}, e) = i{among})"


def _distinct(call: Call, sql: Sequence[str]) -> str:
    """Distinct elements; Spark returns the positive one of the two zeros, here and in the functions below."""
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


def _remove(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return bound(
        sql,
        lambda a, v: case([(f"{v} IS NULL", "NULL")], f"list_filter({a}, lambda e: e IS DISTINCT FROM {v})"),
    )


def comparable(call: Call) -> str | None:
    """Refuse elements whose type has no equality."""
    odd = next((a.type for a in call.arguments if not is_comparable(a.type)), None)
    return None if odd is None else f"{call.function} of {odd} is not supported"


def _flat_elements(call: Call) -> str | None:
    element = call.arguments[0].type.element
    return None if element.kind in FLAT else f"{call.function} of {call.arguments[0].type} is not supported"


def _extreme(function: str) -> Write:
    """The least or greatest element; of both zeros, as on Spark, the first one."""

    def write(call: Call, sql: Sequence[str]) -> str:
        found = f"{function}({sql[0]})"
        if call.type.is_floating:
            found = f"list_extract({sql[0]}, list_position({sql[0]}, {found}))"
        return cast(found, call.type)

    return write


def _searching(write: Write, reason: Reason = comparable) -> ScalarSql:
    return ScalarSql(2, write, reason, size=WITHIN)


FAMILY: Final = Family(
    "Arrays, structs and maps",
    (
        exact(
            "ArrayContains",
            "array_contains",
            ARRAYS,
            COMPARABLE,
            sql=_searching(_contains),
            examples=(
                "array_contains({array_int}, {int})",
                "array_contains({array_double}, {double})",
                "array_contains({array_string}, {string})",
                "array_contains(array({struct}, null), {struct})",
                "map_contains_key({map}, {string})",
            ),
        ),
        exact(
            "ArrayPosition",
            "array_position",
            ARRAYS,
            COMPARABLE,
            sql=_searching(_position),
            examples=("array_position({array_int}, {int})", "array_position({array_double}, {double})"),
        ),
        exact(
            "ArraysOverlap",
            "arrays_overlap",
            ARRAYS,
            sql=_searching(_overlap),
            examples=("arrays_overlap({array}, {array})", "arrays_overlap({array}, array(null))"),
        ),
        exact(
            "ArrayDistinct",
            "array_distinct",
            ARRAYS,
            sql=ScalarSql(1, _distinct, reason=comparable, size=WITHIN),
            examples=(
                "array_distinct({array})",
                "array_distinct(concat({array}, {array}))",
                "array_distinct(array({struct}, {struct}, null))",
            ),
        ),
        exact(
            "ArrayUnion",
            "array_union",
            ARRAYS,
            sql=_searching(_union),
            examples=("array_union({array}, {array})",),
        ),
        exact(
            "ArrayIntersect",
            "array_intersect",
            ARRAYS,
            sql=_searching(_among("IS NOT NULL")),
            examples=("array_intersect({array}, {array})",),
        ),
        exact(
            "ArrayExcept",
            "array_except",
            ARRAYS,
            sql=_searching(_among("IS NULL")),
            examples=("array_except({array}, {array})",),
        ),
        exact(
            "ArrayRemove",
            "array_remove",
            ARRAYS,
            COMPARABLE,
            sql=_searching(_remove),
            examples=(
                "array_remove({array_int}, {int})",
                "array_remove({array_double}, {double})",
                "array_remove({array_string}, {string})",
            ),
        ),
        exact(
            "ArrayMin",
            "array_min",
            ARRAYS,
            sql=ScalarSql(1, _extreme("list_min"), reason=_flat_elements, size=WITHIN),
            examples=("array_min({array})",),
        ),
        exact(
            "ArrayMax",
            "array_max",
            ARRAYS,
            sql=ScalarSql(1, _extreme("list_max"), reason=_flat_elements, size=WITHIN),
            examples=("array_max({array})",),
        ),
    ),
)
