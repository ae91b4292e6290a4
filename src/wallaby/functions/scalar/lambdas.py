"""Functions of functions. A `lambda` has its body and then its parameters, which are columns of its own.

A lambda is written as its body only; the function around it binds the parameters. Indexes count from 0 in Spark and
from 1 in DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.functions.scalar.function import MANY, Function, Write, fallible, fine, template
from wallaby.functions.scalar.nested import checked_map
from wallaby.functions.scalar.words import always, bound, has_null, let
from wallaby.relations.expression import Call, Column, Expression
from wallaby.relations.types import BOOLEAN
from wallaby.sql.words import case, cast, column_identifier, field_sql, struct_sql


def _parameters(function: Expression) -> list[str]:
    assert isinstance(function, Call), "the reader puts a lambda there"
    return [column_identifier(part.id) for part in function.arguments[1:] if isinstance(part, Column)]


def _applied(call: Call, sql: Sequence[str], word: str) -> str:
    """`list_transform` or `list_filter` by a lambda of the element, and perhaps of its index."""
    array, body = sql
    element, *index = _parameters(call.arguments[1])
    if not index:
        return f"{word}({array}, lambda {element}: {body})"
    return f"{word}({array}, lambda {element}, n: {let('CAST(n - 1 AS INTEGER)', index[0], body)})"


def _transform(call: Call, sql: Sequence[str]) -> str:
    return cast(_applied(call, sql, "list_transform"), call.type)


def _filter(call: Call, sql: Sequence[str]) -> str:
    return _applied(call, sql, "list_filter")


def _decided(decisive: str, otherwise: str) -> Write:
    """One decisive answer decides; else an unknown one makes all unknown."""

    def write(call: Call, sql: Sequence[str]) -> str:
        answers = _applied(call, sql, "list_transform")
        return bound(
            [answers],
            lambda found: case(
                [
                    (f"{found} IS NULL", "NULL"),
                    (f"list_position({found}, {decisive}) IS NOT NULL", decisive),
                    (has_null(found, BOOLEAN), "NULL"),
                ],
                otherwise,
            ),
        )

    return write


def _eager(call: Call) -> str | None:
    """Spark stops at the first decisive element; here all are computed, so none may fail."""
    return (
        f"{call.function} with a condition that can fail is not supported"
        if fallible(call.arguments[1])
        else None
    )


def _aggregate(call: Call, sql: Sequence[str]) -> str:
    _, _, merge, finish = call.arguments
    sofar, element = _parameters(merge)
    (result,) = _parameters(finish)

    def write(array: str) -> str:
        step = f"lambda {sofar}, {element}: {cast(sql[2], merge.type)}"
        reduced = f"list_reduce({array}, {step}, {cast(sql[1], merge.type)})"
        return case([(f"{array} IS NULL", "NULL")], let(reduced, result, sql[3]))

    return cast(bound(sql[:1], write), call.type)


def _zip_with(call: Call, sql: Sequence[str]) -> str:
    first, second = _parameters(call.arguments[2])

    def write(a: str, b: str) -> str:
        body = let(f"list_extract({a}, n)", first, let(f"list_extract({b}, n)", second, sql[2]))
        made = f"list_transform(generate_series(1, greatest(len({a}), len({b}))), lambda n: {body})"
        return case([(f"{a} IS NULL OR {b} IS NULL", "NULL")], made)

    return cast(bound(sql[:2], write), call.type)


def _of_entry(call: Call, body: str) -> str:
    key, value = _parameters(call.arguments[1])
    return let(field_sql("e", 0), key, let(field_sql("e", 1), value, body))


def _transform_values(call: Call, sql: Sequence[str]) -> str:
    entry = struct_sql([field_sql("e", 0), _of_entry(call, sql[1])])
    return cast(f"list_transform({sql[0]}, lambda e: {entry})", call.type)


def _transform_keys(call: Call, sql: Sequence[str]) -> str:
    entry = struct_sql([_of_entry(call, sql[1]), field_sql("e", 1)])
    return checked_map(f"list_transform({sql[0]}, lambda e: {entry})", call.type)


def _map_filter(call: Call, sql: Sequence[str]) -> str:
    return f"list_filter({sql[0]}, lambda e: {_of_entry(call, sql[1])})"


FUNCTIONS: dict[str, Function] = {
    "lambda": Function((1, MANY), template("{0}")),
    "transform": Function((2, 2), _transform),
    "filter": Function((2, 2), _filter),
    "exists": Function((2, 2), _decided("TRUE", "FALSE"), _eager),
    "forall": Function((2, 2), _decided("FALSE", "TRUE"), _eager),
    "aggregate": Function((4, 4), _aggregate),
    "zip_with": Function((3, 3), _zip_with),
    "transform_values": Function((2, 2), _transform_values),
    "transform_keys": Function((2, 2), _transform_keys, fine, always),
    "map_filter": Function((2, 2), _map_filter),
}
