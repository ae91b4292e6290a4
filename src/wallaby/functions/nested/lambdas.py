"""Higher-order functions. A `lambda` has its body and then its parameters, which are columns of its own.

Only the body of a lambda is written; the function around it binds the parameters. Indexes count from 0 in Spark and
from 1 in DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import ARRAYS, MAPS, READABLE
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded, plain
from wallaby.functions.family import Family
from wallaby.functions.nested.maps import checked_map
from wallaby.functions.scalar_sql import MANY, ScalarSql, Write, fallible, fine, template
from wallaby.functions.size import CHOICE, EACH, REDUCED, by_call, varies
from wallaby.functions.spread import grows
from wallaby.functions.within_limit import checked_step
from wallaby.functions.words import always, bound, has_null, let
from wallaby.relations.expression import Call, Column, Expression
from wallaby.relations.types import BOOLEAN, DataType
from wallaby.sql.words import case, cast, column_identifier, field_sql, struct_sql

_KEYS: Final = "a NULL or duplicate key is an error"
_CAN_FAIL: Final = "not with a condition that can fail: Spark stops at the first element that decides"
_ONE_KEY: Final = ("spark.sql.mapKeyDedupPolicy", "EXCEPTION")


def _exists(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not node.flag("followThreeValuedLogic"):
        return Refusal("it is not supported with two-valued logic")
    return plain(entry, node, arguments, kind)


def _parameters(function: Expression) -> list[str]:
    assert isinstance(function, Call), "the reader puts a lambda there"
    return [column_identifier(part.id) for part in function.arguments[1:] if isinstance(part, Column)]


def _applied(call: Call, sql: Sequence[str], word: str) -> str:
    """Write `list_transform` or `list_filter` with a lambda of the element, and perhaps of its index."""
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
    """Write exists or forall: one decisive answer decides; otherwise a NULL makes the result NULL."""

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
    """Refuse a condition that can fail: Spark stops at the first decisive element, but here all are computed."""
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
        body = cast(sql[2], merge.type)
        if varies(merge.type) and grows(call):
            body = checked_step(sofar, merge.type, body)
        step = f"lambda {sofar}, {element}: {body}"
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


def _of_body(call: Call) -> tuple[Sequence[float], float]:
    return (1, *(0,) * (len(call.arguments) - 1)), 0


FAMILY: Final = Family(
    "Arrays, structs and maps",
    (
        exact(
            "ArrayTransform",
            "transform",
            ARRAYS,
            READABLE,
            sql=ScalarSql(2, _transform, reason=fine, size=EACH),
            examples=(
                "transform({array}, x -> x is null)",
                "transform({array_int}, (x, i) -> i)",
                "transform({array_double}, x -> x + {double})",
                "transform({array}, x -> array(x, x))",
                "transform({array_int}, x -> transform({array_int}, y -> if(x < y, x, y)))",
            ),
        ),
        exact(
            "ArrayFilter",
            "filter",
            ARRAYS,
            READABLE,
            sql=ScalarSql(2, _filter, size=CHOICE),
            examples=(
                "filter({array_int}, x -> x > {int})",
                "filter({array}, (x, i) -> i > 0)",
                "array_compact({array})",
            ),
        ),
        guarded(
            "ArrayExists",
            "exists",
            ARRAYS,
            READABLE,
            guard=_CAN_FAIL,
            build=_exists,
            sql=ScalarSql(2, _decided("TRUE", "FALSE"), reason=_eager),
            examples=("exists({array_int}, x -> x > {int})", "exists({array_double}, x -> x > 0)"),
        ),
        guarded(
            "ArrayForAll",
            "forall",
            ARRAYS,
            READABLE,
            guard=_CAN_FAIL,
            sql=ScalarSql(2, _decided("FALSE", "TRUE"), reason=_eager),
            examples=("forall({array_int}, x -> x > {int})", "forall({array}, x -> x is null)"),
        ),
        exact(
            "ArrayAggregate",
            "aggregate",
            ARRAYS,
            READABLE,
            sql=ScalarSql(4, _aggregate, size=REDUCED),
            examples=(
                "aggregate({array_double}, 0D, (s, x) -> s + coalesce(x, 1), s -> s * 2)",
                "aggregate({array_string}, '', (s, x) -> concat(s, x))",
                "aggregate({array_int}, 0, (s, x) -> s + x)",
                "aggregate({array_int}, struct(0 n, {int} l), (s, x) -> struct(s.n + 1 n, x l), s -> s.l)",
            ),
        ),
        exact(
            "ZipWith",
            "zip_with",
            ARRAYS,
            ARRAYS,
            READABLE,
            sql=ScalarSql(3, _zip_with, size=EACH),
            examples=(
                "zip_with({array_int}, {array_double}, (x, y) -> x < y)",
                "zip_with({array}, {array_int}, (x, y) -> struct(x, y))",
            ),
        ),
        exact(
            "TransformValues",
            "transform_values",
            MAPS,
            READABLE,
            sql=ScalarSql(2, _transform_values, reason=fine, size=EACH),
            examples=(
                "transform_values({map}, (k, v) -> concat(k, k))",
                "transform_values({map}, (k, v) -> v is null)",
            ),
        ),
        guarded(
            "TransformKeys",
            "transform_keys",
            MAPS,
            READABLE,
            guard=_KEYS,
            requires=_ONE_KEY,
            sql=ScalarSql(2, _transform_keys, fallible=always, size=EACH),
            examples=(
                "transform_keys({map}, (k, v) -> concat(k, 'x'))",
                "transform_keys({map_int}, (k, v) -> v)",
                "transform_keys(map(1, {small}), (k, v) -> coalesce({double}, v))",
            ),
        ),
        exact(
            "MapFilter",
            "map_filter",
            MAPS,
            READABLE,
            sql=ScalarSql(2, _map_filter, size=CHOICE),
            examples=("map_filter({map_int}, (k, v) -> v > 1)", "map_filter({map}, (k, v) -> k <> 'a')"),
        ),
    ),
    also={"lambda": ScalarSql((1, MANY), template("{0}"), size=by_call(_of_body))},
)
