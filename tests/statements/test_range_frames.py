"""Frames of values: a row sees those whose keys lie within its frame, in either direction, and NULLs see each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trees import BYTE, FLOAT, SETTINGS, aggregation, column, rows_of, run

from wallaby.relations.expression import SortKey
from wallaby.relations.relation import Frame, FrameUnit, Input, Window, WindowCall
from wallaby.relations.types import DATE, DOUBLE, LONG, DataType
from wallaby.statements.connection import thread_session

N = column(9, LONG)
LEAST, MOST = -(2**63), 2**63 - 1
Keys = list[int | None]


def counted(keys: Keys, frame: Frame, *, ascending: bool) -> list[int]:
    """How many rows each row sees, by definition."""
    sign = 1 if ascending else -1

    def sees(key: int | None, other: int | None) -> bool:
        if key is None or other is None:
            return (key is None) == (other is None)
        distance = sign * (other - key)
        return (frame.begin is None or frame.begin <= distance) and (
            frame.end is None or distance <= frame.end
        )

    return [sum(sees(key, other) for other in keys) for key in keys]


def found(keys: Sequence[Any], type_: DataType, frame: Frame, *, ascending: bool) -> list[int]:
    key = column(1, type_)
    window = Window(
        Input(0, (N, key)),
        (),
        (SortKey(key, ascending, ascending),),
        (WindowCall(column(2, LONG), aggregation("count", LONG), frame),),
    )
    values = (
        keys if type_ is not DATE else [None if k is None else date(1970, 1, 1) + timedelta(k) for k in keys]
    )
    rows = run(window, thread_session(SETTINGS), i0=rows_of((N, key), list(enumerate(values))))
    by_number = {row[0]: row[2] for row in rows}
    return [int(str(by_number[number])) for number in range(len(keys))]


BOUNDS = st.tuples(st.integers(-5, 5), st.integers(0, 6)).map(
    lambda pair: Frame(FrameUnit.RANGE, pair[0], pair[0] + pair[1])
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.integers(-120, 120), min_size=1, max_size=12), BOUNDS, st.booleans())
def test_a_row_sees_the_keys_within_its_frame(keys: Keys, frame: Frame, ascending: bool) -> None:
    expected = counted(keys, frame, ascending=ascending)
    for type_ in (BYTE, LONG, DATE):
        assert found(keys, type_, frame, ascending=ascending) == expected


def test_floating_point_keys_are_added_to_in_their_own_type() -> None:
    far = float("inf")
    keys = [None, -far, -1e30, -0.2, -0.0, 0.0, 0.1, 0.3, 0.30000000000000004, 3e30, far, math.nan, None]
    for number, type_ in ((np.float64, DOUBLE), (np.float32, FLOAT)):
        for begin, end in ((-0.2, 0.2), (0.1, 0.2), (-1e30, 0.0), (None, -0.3), (0.2, None)):
            for sign in (1, -1):
                frame = Frame(FrameUnit.RANGE, begin, end)
                expected = [
                    sum(_sees(key, other, begin, end, sign=sign, number=number) for other in keys)
                    for key in keys
                ]
                assert found(keys, type_, frame, ascending=sign == 1) == expected


def _sees(
    key: float | None,
    other: float | None,
    begin: float | None,
    end: float | None,
    *,
    sign: int,
    number: Callable[[float], np.floating[Any]],
) -> bool:
    """Not a number is the greatest; NULL comes before all in an order, and after all in its reverse."""

    def place(value: float | None) -> tuple[int, float]:
        if value is None:
            return (0, 0.0)
        return (2, 0.0) if math.isnan(value) else (1, float(number(value)))

    def away(offset: float) -> tuple[int, float]:
        return place(None if key is None else float(number(key) + sign * number(offset)))

    low, high = (begin, end) if sign == 1 else (end, begin)
    return (low is None or away(low) <= place(other)) and (high is None or place(other) <= away(high))


def test_no_offset_leads_beyond_the_numbers() -> None:
    keys: Keys = [LEAST, LEAST + 2, 0, MOST - 2, MOST]
    for ascending in (True, False):
        assert found(keys, LONG, Frame(FrameUnit.RANGE, -2, 2), ascending=ascending) == [2, 2, 1, 2, 2]
