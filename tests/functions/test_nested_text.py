"""Arrays, structs and maps as text, as Spark's casts write them."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pytest
from tests.functions.test_json_text import JAVA, PAIR, stored
from tests.trees import BINARY, FLOAT, SETTINGS, column, map_of, named, rows_of, run

from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.relation import Input, Project
from wallaby.relations.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    DataType,
    array,
    decimal,
    struct,
)
from wallaby.statements.connection import thread_session
from wallaby.statements.expression import supports

WRITTEN = [
    (array(INTEGER), [1, None, -2], "[1, null, -2]"),
    (array(INTEGER), [], "[]"),
    (array(INTEGER), None, None),
    (array(STRING), ["a", "", "b, c", "null"], "[a, , b, c, null]"),
    (array(array(BOOLEAN)), [[True, None], [], None], "[[true, null], [], null]"),
    (array(DOUBLE), [1e7, math.nan, -0.0], "[1.0E7, NaN, -0.0]"),
    (struct(f=FLOAT, d=DATE), {"f": 0.1, "d": date(1, 1, 1)}, "{0.1, 0001-01-01}"),
    (struct(d=decimal(2, 2)), {"d": Decimal("-0.05")}, "{-0.05}"),
    (PAIR, {"x": 1, "y": "a"}, "{1, a}"),
    (PAIR, {"x": None, "y": None}, "{null, null}"),
    (PAIR, None, None),
    (map_of(STRING, INTEGER), [("a", 1), ("b", None)], "{a -> 1, b -> null}"),
    (map_of(STRING, INTEGER), [], "{}"),
    (struct(m=map_of(INTEGER, array(PAIR))), {"m": [(7, [None])]}, "{{7 -> [null]}}"),
]


def as_text(type_: DataType, mode: EvalMode = EvalMode.ANSI) -> Call:
    return Call("nested_to_text", (column(1, type_), JAVA), STRING, nullable=True, mode=mode)


@pytest.mark.parametrize(("type_", "value", "text"), WRITTEN)
def test_a_nested_value_has_sparks_text(type_: DataType, value: object, text: str | None) -> None:
    x = column(1, type_)
    relation = Project(Input(0, (x,)), (named(2, as_text(type_)),))
    rows = rows_of((x,), [(stored(value, type_),), (None,)])
    assert run(relation, thread_session(SETTINGS), i0=rows) == [(text,), (None,)]


@pytest.mark.parametrize(
    "type_", [struct(b=BINARY), array(TIMESTAMP), map_of(STRING, BINARY), STRING], ids=str
)
def test_what_is_written_otherwise_is_refused(type_: DataType) -> None:
    assert supports(as_text(type_)) is not None


def test_small_decimals_are_written_without_an_exponent_in_ansi_mode_only() -> None:
    small = array(decimal(9, 7))
    assert supports(as_text(small)) is None
    assert supports(as_text(small, EvalMode.LEGACY)) is not None
