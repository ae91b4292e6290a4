"""Checksums: of values and boundaries, not of memory."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaby.batches.checksum import checksum

ARRAYS = {
    "int": pa.array([1, None, 3, -4] * 5, pa.int64()),
    "small": pa.array([1, None, 3, -4] * 5, pa.int8()),
    "bool": pa.array([True, None, False, True, False] * 4),
    "string": pa.array(["a", None, "", "wallaby"] * 5),
    "binary": pa.array([b"a", None, b"", b"\x00"] * 5, pa.binary()),
    "date": pa.array([datetime.date(2020, 1, 1), None] * 10),
    "decimal": pa.array([Decimal("1.25"), None] * 10, pa.decimal128(15, 2)),
    "instant": pa.array(
        [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), None] * 10, pa.timestamp("us", "UTC")
    ),
    "double": pa.array([1.5, None, float("nan"), -0.0] * 5),
    "null": pa.nulls(20),
    "list": pa.array([[1, None], None, [], [3]] * 5, pa.list_(pa.int32())),
    "struct": pa.array([{"a": 1, "b": "x"}, None] * 10),
    "map": pa.array([[("a", 1)], None] * 10, pa.map_(pa.string(), pa.int64())),
    "full": pa.array(range(20)),
}


def of(*arrays: pa.Array) -> int:
    return checksum([[pa.record_batch(list(arrays), names=[str(i) for i in range(len(arrays))])]])


@pytest.mark.parametrize("name", ARRAYS)
def test_where_and_how_values_lie_makes_no_difference(name: str) -> None:
    array = ARRAYS[name]
    shifted = pa.concat_arrays([array[:7], array])[7:]
    assert shifted.offset
    assert of(shifted) == of(array)
    assert of(array[3:9]) == of(pa.concat_arrays([array[3:5], array[5:9]]))
    restored = pa.ipc.open_stream(_written(pa.record_batch([array], names=["0"]))).read_all()
    assert of(restored.column(0).chunk(0)) == of(array)


def _written(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "null"])
def test_another_value_is_another_checksum(name: str) -> None:
    array = ARRAYS[name]
    swapped = pa.concat_arrays([array[1:2], array[0:1], array[2:]])
    assert of(swapped) != of(array)
    assert of(array[:-1]) != of(array)


def test_what_lies_under_a_null_makes_no_difference() -> None:
    bitmap = pa.py_buffer(b"\x05")
    one = pa.Array.from_buffers(pa.int64(), 3, [bitmap, pa.py_buffer(np.array([1, 77, 3]).tobytes())])
    two = pa.Array.from_buffers(pa.int64(), 3, [bitmap, pa.py_buffer(np.array([1, 88, 3]).tobytes())])
    assert of(one) == of(two) == of(pa.array([1, None, 3]))


def test_a_bitmap_without_nulls_makes_no_difference() -> None:
    values = pa.py_buffer(np.array([1, 2, 3]).tobytes())
    assert of(pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\xff"), values])) == of(
        pa.array([1, 2, 3])
    )


def test_boundaries_count() -> None:
    batch = pa.record_batch([pa.array(range(10))], names=["a"])
    cut = [batch.slice(0, 5), batch.slice(5)]
    found = {
        checksum([[batch]]),
        checksum([cut]),
        checksum([[cut[0]], [cut[1]]]),
        checksum([[], [batch]]),
        checksum([]),
    }
    assert len(found) == 5


def test_texts_that_run_together_are_told_apart() -> None:
    assert of(pa.array(["ab", "c"])) != of(pa.array(["a", "bc"]))
    assert of(pa.array(["", None])) != of(pa.array([None, ""]))
    assert of(pa.array([1], pa.int32())) != of(pa.array([1], pa.int64()))


@given(st.lists(st.one_of(st.none(), st.text()), max_size=30), st.integers(0, 30))
def test_the_same_values_have_the_same_checksum(values: list[str | None], skip: int) -> None:
    padded = pa.array([*["x"] * skip, *values, "y"], pa.string())
    assert of(padded[skip : skip + len(values)]) == of(pa.array(values, pa.string()))
