"""Joins by an index: the pairs of a nested loop, in its order, whatever the keys are like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from wallaby.operators.joins.index import (
    JoinIndex,
    PlaceArray,
    Ranks,
    cut_by_partners,
    find,
    make_index,
    pairs,
)
from wallaby.operators.joins.key_set import KeySet
from wallaby.operators.joins.probing import joined_batches
from wallaby.relations.join_kind import JoinKind

LEAST, MOST = -(1 << 63), (1 << 63) - 1
PROBED = [None, LEAST, -8, -7, 0, 3, 3, 5, 7, 10, 2996, 2997, 1 << 22, MOST]
BUILDS: dict[str, list[int | None]] = {
    "empty": [],
    "only null": [None, None],
    "one": [5],
    "least": [LEAST],
    "most": [MOST],
    "dense and unique": list(range(3000)),
    "dense, shuffled": [(n * 7) % 3000 for n in range(3000)],
    "dense with repetitions": [n % 11 for n in range(500)],
    "with null": [3, None, 3, 10, None, -7],
    "sparse and unique": [*(n * 300 for n in range(20_000)), 3, 7],
    "sparse with repetitions": [*((n % 9000) * 300 for n in range(20_000)), 1 << 22],
}


def nested_loop(keys: list[int | None], kind: JoinKind) -> list[tuple[int, int | None]]:
    by_key: dict[int | None, list[int]] = {}
    for row, key in enumerate(keys):
        by_key.setdefault(key, []).append(row)
    by_key.pop(None, None)
    alone: list[int | None] = [None] if kind is JoinKind.LEFT else []
    return [(at, row) for at, key in enumerate(PROBED) for row in by_key.get(key) or alone]


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
@pytest.mark.parametrize("name", BUILDS)
def test_the_pairs_are_those_of_a_nested_loop(name: str, kind: JoinKind) -> None:
    keys = BUILDS[name]
    index = make_index(pa.table({"k": pa.array(keys, pa.int64())}), ["k"], 1 << 30, kind)
    assert isinstance(index, JoinIndex)
    found = find(index, pa.array(PROBED, pa.int64()), kind)
    for rows_max in (1, 3, 1000):
        given: list[tuple[int, int | None]] = []
        begin = 0
        for end in cut_by_partners(found, rows_max):
            some = found.piece(begin, end)
            chosen, partners = pairs(index, some, kind)
            numbers = range(end - begin) if chosen is None else chosen.tolist()
            first = begin if some.rows is None else 0
            given += zip((first + number for number in numbers), partners.to_pylist(), strict=True)
            begin = end
        assert given == nested_loop(keys, kind)


def test_dense_keys_have_an_array_of_places_and_sparse_ones_ranks() -> None:
    made = {
        name: make_index(pa.table({"k": pa.array(keys, pa.int64())}), ["k"], 1 << 30)
        for name, keys in BUILDS.items()
    }
    kinds = {name: type(index.where) for name, index in made.items() if isinstance(index, JoinIndex)}
    assert kinds["dense with repetitions"] is kinds["dense and unique"] is PlaceArray
    assert kinds["sparse with repetitions"] is kinds["sparse and unique"] is Ranks


def test_no_index_for_keys_that_are_too_far_apart_or_too_much_for_the_memory() -> None:
    far = pa.table({"k": pa.array([0, 1 << 40], pa.int64())})
    assert make_index(far, ["k"], 1 << 30) is None
    wide = pa.table({"k": pa.array(np.arange(0, 1 << 24, 1 << 4))})
    assert isinstance(make_index(wide, ["k"], 1 << 24), JoinIndex)
    assert make_index(wide, ["k"], 1 << 22) is None


def test_dates_are_keys_like_numbers() -> None:
    build = pa.table({"k": pa.array([10, 20, 30], pa.date32())})
    index = make_index(build, ["k"], 1 << 30)
    assert isinstance(index, JoinIndex)
    chosen, partners = pairs(
        index, find(index, pa.array([30, None, 10], pa.date32()), JoinKind.INNER), JoinKind.INNER
    )
    assert chosen is not None
    assert (chosen.tolist(), partners.to_pylist()) == ([0, 2], [2, 0])


def test_a_set_of_keys_is_enough_where_nothing_is_shown_and_keys_are_there_once() -> None:
    once, twice = (pa.table({"k": pa.array(keys, pa.int64())}) for keys in ([4, 9, 2], [4, 9, 4]))
    assert isinstance(make_index(once, ["k"], 1 << 30, shown=False), KeySet)
    assert isinstance(make_index(once, ["k"], 1 << 30, JoinKind.LEFT, shown=False), JoinIndex)
    assert isinstance(make_index(once, ["k"], 1 << 30), JoinIndex)
    assert isinstance(make_index(twice, ["k"], 1 << 30, shown=False), JoinIndex)


BUILD = pa.table(
    {
        "c1": pa.array([1, 1, 1, 2, None, 3], pa.int64()),
        "c2": pa.array(["a", "b", None, "a", "a", "c"]),
        "c3": pa.array([10, 20, 30, 40, 50, 50], pa.int32()),
        "c4": pa.array(range(6), pa.int64()),
    }
)
PROBE = pa.table(
    {
        "c11": pa.array([1, 1, 2, 3, None, 1, 9], pa.int64()),
        "c12": pa.array(["a", None, "a", "x", "a", "b", "a"]),
        "c13": pa.array([10, 30, 40, 50, 50, 20, 10], pa.int32()),
    }
)


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1), (1, 3), (3, 1), (1, 2, 3), (2, 3)])
def test_several_keys_are_compared_like_one(numbers: tuple[int, ...]) -> None:
    keys = [(f"c1{number}", f"c{number}") for number in numbers]
    index = make_index(BUILD, [theirs for _, theirs in keys], 1 << 30)
    assert isinstance(index, JoinIndex)
    schema = pa.schema([("c11", pa.int64()), ("c4", pa.int64())])
    joined = [
        (row["c11"], row["c4"])
        for batch in joined_batches(index, PROBE.to_batches(), keys, JoinKind.INNER, schema, 1 << 20)
        for row in batch.to_pylist()
    ]
    expected = [
        (ours["c11"], theirs["c4"])
        for ours in PROBE.to_pylist()
        for theirs in BUILD.to_pylist()
        if all(ours[left] is not None and ours[left] == theirs[right] for left, right in keys)
    ]
    assert joined == expected
    assert expected


def test_the_key_with_most_values_is_indexed() -> None:
    index = make_index(BUILD, ["c2", "c1", "c3"], 1 << 30)
    assert isinstance(index, JoinIndex)
    assert index.key == 2


def test_keys_that_say_too_little_are_left_to_sql() -> None:
    same = pa.table({"a": pa.array([7] * 100, pa.int64()), "b": pa.array(map(str, range(100)))})
    assert make_index(same, ["a", "b"], 1 << 30) is None
    assert isinstance(make_index(same, ["a"], 1 << 30), JoinIndex)
