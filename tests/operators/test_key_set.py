"""Sets of keys as bits: exact for every key, NULL or far outside, and only where keys lie near enough."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from wallaby.operators.joins.index import make_index, rows_in
from wallaby.operators.joins.key_set import KeySet, make_key_set
from wallaby.relations.join_kind import JoinKind

LEAST, MOST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize("keys", [[], [5], [3, 3, 10, -7, None], list(range(0, 3000, 7)), [LEAST], [MOST]])
def test_semi_and_anti_joins_find_exactly_the_keys(keys: list[int | None]) -> None:
    build = pa.table({"k": pa.array(keys, pa.int64())})
    probed = [None, LEAST, -8, -7, 0, 3, 5, 7, 10, 2996, 2997, MOST]
    batch = pa.record_batch({"p": pa.array(probed, pa.int64())})
    for kind in (JoinKind.SEMI, JoinKind.ANTI):
        index = make_index(build, ["k"], 1 << 30, kind)
        assert isinstance(index, KeySet)
        chosen = rows_in(index, batch.column("p"), kind)
        there = set(keys) - {None}
        found = [row for row, key in enumerate(probed) if (key in there) is (kind is JoinKind.SEMI)]
        assert (list(range(len(probed))) if chosen is None else chosen.tolist()) == found


def test_a_bit_is_a_thirty_second_of_a_slot() -> None:
    keys = make_key_set(np.arange(0, 1 << 20, 4, dtype=np.int64))
    assert keys is not None
    assert keys.bits.nbytes == (1 << 20) // 8


def test_many_possible_keys_make_the_same_set() -> None:
    keys = np.random.default_rng(1).integers(-(1 << 27), 1 << 27, 1 << 19)
    made = make_key_set(keys)
    assert made is not None
    there = np.zeros(made.high - made.low + 1, np.bool_)
    there[keys - made.low] = True
    assert np.array_equal(np.unpackbits(made.bits, count=len(there), bitorder="little"), there)


def test_keys_too_far_apart_make_no_set() -> None:
    assert make_key_set(np.array([0, 1 << 40])) is None
