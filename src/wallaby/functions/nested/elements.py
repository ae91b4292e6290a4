"""Create arrays and structs, and access their parts.

`field` and `fields` take the position of a field as a constant. Positions are Spark's: from 0 in `item`, from 1
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import ARRAYS, COMPARABLE, INTEGRAL, MAPS, STRUCTS
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import MANY, ScalarSql, fine, template
from wallaby.functions.size import VALUE_BYTES, WITHIN, at_most, by_call
from wallaby.functions.words import bound, failing
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.words import case, cast, field_sql, struct_sql


def split_part(node: Node) -> Node:
    """Read `split_part`, for which Catalyst has an element of a split text with a default; no array is needed."""
    parts = node.children[0]
    with_default = "defaultValueOutOfBound" not in (node.fields or {})
    if parts.name != "StringSplitSQL" or not with_default:
        return node
    return replace(
        node, class_name="org.apache.spark.sql.SplitPart", children=(*parts.children, node.children[1])
    )


_OUTSIDE: Final = "a position outside of the array is an error (ANSI) or NULL"


def _number(node: Node, name: str) -> Literal:
    found = node.field(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise UnreadablePlanError(f"{node.name}.{name} is not a number.")
    return Literal(found, INTEGER)


def _read_field(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read a field by its position, which Catalyst provides."""
    place = _number(node, "ordinal")
    return Call(entry.function, (arguments[0], place), kind, node.nullable)


def _read_struct(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read a struct, given as names and values in turn; the names are in the type."""
    return Call(entry.function, arguments[1::2], kind, node.nullable)


def _read_item(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    mode = EvalMode.ANSI if node.flag("failOnError") else EvalMode.TRY
    return Call(entry.function, arguments, kind, node.nullable, mode)


def _read_element_at(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if arguments[0].type.kind is Kind.MAP:
        return Call("map_value", arguments, kind, node.nullable)
    if node.field("defaultValueOutOfBound") is not None:
        return Refusal("it has a value for positions outside of the array")
    return _read_item(entry, node, arguments, kind)


def _size(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    made = Call(entry.function, arguments, kind, arguments[0].nullable)
    if not node.flag("legacySizeOfNull"):
        return made
    return Call("coalesce", (made, Literal(-1, INTEGER)), kind, nullable=False)


_ZERO = ("INVALID_INDEX_OF_ZERO", "The index 0 is invalid. Positions count from 1.")


def _place(call: Call) -> int:
    place = call.arguments[1]
    assert isinstance(place, Literal), "the reader puts a constant there"
    assert isinstance(place.value, int), "a place is a number"
    return place.value


def _write_field(call: Call, sql: Sequence[str]) -> str:
    return field_sql(sql[0], _place(call))


def _fields(call: Call, sql: Sequence[str]) -> str:
    return f"list_transform({sql[0]}, lambda e: {field_sql('e', _place(call))})"


def _array(call: Call, sql: Sequence[str]) -> str:
    return cast(f"[{', '.join(sql)}]", call.type)


def _elements(call: Call) -> tuple[Sequence[float], float]:
    count = len(call.arguments)
    return (1,) * count, VALUE_BYTES * count


def _write_struct(call: Call, sql: Sequence[str]) -> str:
    return cast(struct_sql(sql), call.type)


_OUT_OF_BOUNDS = "The index is out of bounds of the array."


def _write_item(call: Call, sql: Sequence[str]) -> str:
    def write(a: str, i: str) -> str:
        outside = f"{a} IS NOT NULL AND ({i} < 0 OR {i} >= len({a}))"
        found = f"list_extract({a}, CAST({i} AS BIGINT) + 1)"
        if call.mode is not EvalMode.ANSI:
            return case([(outside, "NULL")], found)
        return failing([(outside, "INVALID_ARRAY_INDEX", _OUT_OF_BOUNDS)], found)

    return bound(sql, write)


def _write_element_at(call: Call, sql: Sequence[str]) -> str:
    def write(a: str, i: str) -> str:
        faults = [(f"{a} IS NOT NULL AND {i} = 0", *_ZERO)]
        if call.mode is EvalMode.ANSI:
            outside = f"abs(CAST({i} AS BIGINT)) > len({a})"
            faults.append((outside, "INVALID_ARRAY_INDEX_IN_ELEMENT_AT", _OUT_OF_BOUNDS))
        return failing(faults, f"list_extract({a}, {i})")

    return bound(sql, write)


def _may_be_outside(call: Call) -> bool:
    return call.mode is EvalMode.ANSI or call.function == "element_at"


FAMILY: Final = Family(
    "Arrays, structs and maps",
    (
        exact(
            "GetStructField",
            "field",
            STRUCTS,
            build=_read_field,
            sql=ScalarSql(2, _write_field, reason=fine, size=WITHIN),
            examples=("{struct}.y", "array({struct}, null).x"),
        ),
        exact(
            "GetArrayStructFields",
            "fields",
            ARRAYS,
            build=_read_field,
            sql=ScalarSql(2, _fields, reason=fine, size=at_most(2)),
            examples=(
                "map_entries({map}).value",
                "map_entries({map}).key",
                "array_distinct(array({struct}, {struct}, null)).x",
            ),
        ),
        guarded(
            "GetArrayItem",
            "item",
            ARRAYS,
            INTEGRAL,
            guard=_OUTSIDE,
            build=_read_item,
            sql=ScalarSql(2, _write_item, reason=fine, fallible=_may_be_outside, size=WITHIN),
            examples=("{array}[{small} - 1]", "{array}[0]", "get({array}, {small} - 2)"),
        ),
        guarded(
            "ElementAt",
            "element_at",
            ARRAYS | MAPS,
            COMPARABLE,
            guard=_OUTSIDE,
            build=_read_element_at,
            rewrite=split_part,
            sql=ScalarSql(2, _write_element_at, reason=fine, fallible=_may_be_outside, size=WITHIN),
            examples=(
                "element_at({array}, {small})",
                "try_element_at({array}, {small})",
                "try_element_at({array}, -1)",
                "element_at({map}, 'a')",
                "try_element_at({map}, {string})",
            ),
        ),
        exact(
            "CreateArray",
            "array",
            sql=ScalarSql((0, MANY), _array, size=by_call(_elements)),
            examples=("array({any}, {any})", "array({int}, null, 3)", "array({array}, array())"),
        ),
        exact(
            "CreateNamedStruct",
            "struct",
            build=_read_struct,
            sql=ScalarSql((1, MANY), _write_struct, size=WITHIN),
            examples=("named_struct('a', {any}, 'b', {string})", "struct({array}, {map}, {struct})"),
        ),
        exact(
            "Size",
            "size",
            ARRAYS | MAPS,
            build=_size,
            sql=ScalarSql(1, template("len({0})", typed=True), reason=fine),
            examples=("size({array})", "cardinality({map})", "array_size({array})"),
        ),
    ),
)
