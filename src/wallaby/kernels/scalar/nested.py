"""Arrays, maps and structs. A map is an array of pairs here; `types` says why.

`field` and `fields` take the place of a field as a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.kernels.scalar.function import MANY, Function
from wallaby.kernels.sql_text import cast, field_sql, struct_sql
from wallaby.plan.expression import Call, Literal


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


FUNCTIONS: dict[str, Function] = {
    "field": Function((2, 2), _field),
    "fields": Function((2, 2), _fields),
    "array": Function((0, MANY), _array),
    "struct": Function((1, MANY), _struct),
}
