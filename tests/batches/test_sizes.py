"""Small batches are put together by a rule of the batches alone, with their rows in order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wallaby.batches.sizes import merged


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([5], [5]),
        ([5, 7], [12]),
        ([100_000, 20_000], [100_000, 20_000]),
        ([1000] * 200, [131_000, 69_000]),
        ([10_000, 130_000, *[1] * 20], [10_000, 130_020]),
    ],
)
def test_small_neighbours_are_put_together(given: list[int], expected: list[int]) -> None:
    begin, batches = 0, []
    for rows in given:
        batches.append(pa.record_batch({"a": pa.array(range(begin, begin + rows), pa.int64())}))
        begin += rows
    made = merged(batches)
    assert [batch.num_rows for batch in made] == expected
    assert [value for batch in made for value in batch.column(0).to_pylist()] == list(range(begin))
