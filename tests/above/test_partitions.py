"""A result divided between tasks: in order, an output never in two of them, about the same bytes in each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaby.above.partitions import TASK_BYTES, TASK_BYTES_MIN, divided
from wallaby.lineage.kept import KeptRange
from wallaby.lineage.names import ChannelName, Edge
from wallaby.results.kept import KeptOutput


def outputs(*sizes: int, channel: int = 0) -> list[KeptOutput]:
    name, edge = ChannelName(3, channel), Edge(2, channel, 0)
    return [
        KeptOutput(KeptRange(name, edge, seq, seq + 1), size // 8, size) for seq, size in enumerate(sizes)
    ]


def flat(parts: object) -> list[tuple[ChannelName, int]]:
    return [(r.channel, seq) for part in parts for r in part.ranges for seq in range(r.first, r.end)]  # type: ignore[attr-defined]


def test_nothing_is_one_partition_without_rows() -> None:
    (only,) = divided((), 8)
    assert only.ranges == ()


def test_little_is_one_partition_however_many_slots_there_are() -> None:
    (only,) = divided(outputs(1000, 0, 1000), 8)
    assert only.ranges == (KeptRange(ChannelName(3, 0), Edge(2, 0, 0), 0, 3),), "in one range"


def test_slots_share_what_is_worth_sharing() -> None:
    each = TASK_BYTES_MIN
    assert len(divided(outputs(*[each] * 12), 4)) == 4
    assert len(divided(outputs(*[each] * 3), 8)) == 3


def test_much_has_more_partitions_than_slots() -> None:
    assert len(divided(outputs(*[TASK_BYTES // 4] * 40), 2)) == 10


def test_there_are_no_more_partitions_than_slots_if_so_wished() -> None:
    much = outputs(*[TASK_BYTES] * 9)
    assert len(divided(much, 2)) == 9
    assert len(divided(much, 2, no_more=True)) == 2


def test_outputs_of_unknown_size_are_read_too() -> None:
    parts = divided([*outputs(0, 0), *outputs(0, channel=1)], 4)
    assert len(flat(parts)) == 3


@given(st.lists(st.integers(0, 3 * TASK_BYTES), max_size=40), st.integers(1, 16), st.integers(0, 40))
def test_whatever_the_sizes_all_is_there_once_and_in_order(sizes: list[int], slots: int, cut: int) -> None:
    found = [*outputs(*sizes[:cut]), *outputs(*sizes[cut:], channel=1)]
    parts = divided(found, slots)
    assert flat(parts) == [(output.range.channel, output.range.first) for output in found]
    total = sum(sizes)
    assert 1 <= len(parts) <= max(-(-total // TASK_BYTES), min(slots, -(-total // TASK_BYTES_MIN)), 1)


@pytest.mark.parametrize("count", [2, 5])
def test_no_partition_has_much_more_than_its_share(count: int) -> None:
    sizes = [TASK_BYTES // 10] * (10 * count)
    parts = divided(outputs(*sizes), 1)
    taken = [sum(r.end - r.first for r in part.ranges) for part in parts]
    assert taken == [10] * count
