"""Nested values as JSON, as Spark's `to_json` writes them."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from tests.trees import BINARY, FLOAT, SETTINGS, column, map_of, named, rows_of, run

from wallaby.relations.expression import Call, Literal
from wallaby.relations.relation import Input, Project
from wallaby.relations.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
    array,
    decimal,
    struct,
)
from wallaby.sql.types import field_name
from wallaby.statements.connection import thread_session
from wallaby.statements.expression import supports

JAVA = Literal(17, INTEGER)
PAIR = struct(x=INTEGER, y=STRING)
WRITTEN = [
    (PAIR, {"x": 1, "y": "a"}, '{"x":1,"y":"a"}'),
    (PAIR, {"x": None, "y": None}, "{}"),
    (PAIR, None, None),
    (struct(b=BOOLEAN, f=FLOAT), {"b": True, "f": 0.1}, '{"b":true,"f":0.1}'),
    (struct(d=DOUBLE), {"d": math.nan}, '{"d":"NaN"}'),
    (struct(d=DOUBLE), {"d": -math.inf}, '{"d":"-Infinity"}'),
    (struct(d=DOUBLE), {"d": 1e7}, '{"d":1.0E7}'),
    (struct(d=DATE), {"d": date(1, 1, 1)}, '{"d":"0001-01-01"}'),
    (struct(d=decimal(2, 2)), {"d": Decimal("-0.05")}, '{"d":-0.05}'),
    (struct(y=STRING), {"y": 'ß😀"\\/\n\x1f\x7f'}, '{"y":"ß😀\\"\\\\/\\n\\u001F\x7f"}'),
    (array(INTEGER), [1, None, 2], "[1,null,2]"),
    (array(INTEGER), [], "[]"),
    (array(PAIR), [{"x": 1, "y": None}, None], '[{"x":1},null]'),
    (array(array(STRING)), [["a"], [], None], '[["a"],[],null]'),
    (map_of(STRING, INTEGER), [("a", 1), ('"', None)], '{"a":1,"\\"":null}'),
    (map_of(INTEGER, PAIR), [(7, {"x": 1, "y": "b"})], '{"7":{"x":1,"y":"b"}}'),
    (struct(m=map_of(STRING, array(PAIR))), {"m": [("k", [None])]}, '{"m":{"k":[null]}}'),
]


def stored(value: Any, type_: DataType) -> Any:
    """A value as batches have it: fields under their places."""
    if value is None:
        return None
    match type_.kind:
        case Kind.STRUCT:
            parts = zip(type_.names, type_.children, strict=True)
            return {field_name(at): stored(value[name], child) for at, (name, child) in enumerate(parts)}
        case Kind.ARRAY:
            return [stored(item, type_.element) for item in value]
        case Kind.MAP:
            return [(key, stored(item, type_.children[1])) for key, item in value]
        case _:
            return value


def to_json(type_: DataType) -> Call:
    return Call("to_json", (column(1, type_), JAVA), STRING, nullable=True)


@pytest.mark.parametrize(("type_", "value", "text"), WRITTEN)
def test_a_nested_value_has_sparks_text(type_: DataType, value: object, text: str | None) -> None:
    made = named(2, to_json(type_))
    x = column(1, type_)
    relation = Project(Input(0, (x,)), (made,))
    assert run(relation, thread_session(SETTINGS), i0=rows_of((x,), [(stored(value, type_),), (None,)])) == [
        (text,),
        (None,),
    ]


def test_names_of_fields_are_escaped() -> None:
    type_ = DataType(PAIR.kind, children=PAIR.children, names=('a"b', "ß\\"))
    x = column(1, type_)
    relation = Project(Input(0, (x,)), (named(2, to_json(type_)),))
    rows = rows_of((x,), [(stored({'a"b': 1, "ß\\": "c"}, type_),)])
    assert run(relation, thread_session(SETTINGS), i0=rows) == [('{"a\\"b":1,"ß\\\\":"c"}',)]


@pytest.mark.parametrize(
    "type_",
    [struct(b=BINARY), struct(t=TIMESTAMP), array(decimal(9, 7)), map_of(DOUBLE, INTEGER), STRING],
    ids=str,
)
def test_what_java_writes_otherwise_is_refused(type_: DataType) -> None:
    assert supports(to_json(type_)) is not None
