"""The steps on the way to the limit: each in its turn, at once if there is no time, and taken back when all is well."""

from __future__ import annotations

import pytest

from wallaby.worker.memory.floor import (
    AGAIN_SECONDS,
    CALM_SECONDS,
    LET_GO_SECONDS,
    MIB,
    RESERVE_BYTES,
    SETTLE_SECONDS,
    MemoryAct,
    MemoryFloor,
    MemoryLimits,
)

LIMITS = MemoryLimits(1000 * MIB, 300 * MIB)
MANY = 1 << 40


def at(part: float) -> int:
    """What is used when so much of the allowance is."""
    return LIMITS.budget_bytes + int(LIMITS.allowance_bytes * part)


def decide(
    floor: MemoryFloor,
    now: float,
    part: float,
    room: int | None = MANY,
    *,
    at_work: bool = False,
    growing: int = 0,
) -> MemoryAct:
    return floor.decide(now, at(part), room, at_work=at_work, growing_bytes=growing)


def test_each_step_comes_after_the_one_before_it_has_been_tried() -> None:
    floor = MemoryFloor(LIMITS)
    assert decide(floor, 0.0, 0.55) is MemoryAct.NOTHING
    assert decide(floor, 0.1, 0.92) is MemoryAct.SHED
    assert decide(floor, 0.2, 0.92, at_work=True) is MemoryAct.NOTHING
    floor.took(MemoryAct.SHED, 0.3)
    assert decide(floor, 0.3, 0.92) is MemoryAct.SPILL
    floor.took(MemoryAct.SPILL, 0.4)
    assert decide(floor, 0.4, 0.92) is MemoryAct.NOTHING
    assert decide(floor, 0.4 + SETTLE_SECONDS, 0.92) is MemoryAct.END


def test_where_shedding_helps_nothing_else_is_done() -> None:
    floor = MemoryFloor(LIMITS)
    assert decide(floor, 0.0, 0.65) is MemoryAct.SHED
    floor.took(MemoryAct.SHED, 0.1)
    assert decide(floor, 0.2, 0.7) is MemoryAct.NOTHING
    assert decide(floor, 0.3, 0.55) is MemoryAct.NOTHING
    assert decide(floor, 0.4, 0.45) is MemoryAct.NOTHING, "it may be a pause between two tasks"
    assert decide(floor, 1.0, 0.52) is MemoryAct.NOTHING
    assert decide(floor, 1.1, 0.45) is MemoryAct.NOTHING
    assert decide(floor, 1.1 + CALM_SECONDS, 0.45) is MemoryAct.RELAX
    floor.took(MemoryAct.RELAX, 3.2)
    assert decide(floor, 3.3, 0.45) is MemoryAct.NOTHING
    assert decide(floor, 3.4, 0.65) is MemoryAct.SHED


def test_a_step_is_repeated_but_not_all_the_time() -> None:
    floor = MemoryFloor(LIMITS)
    floor.took(MemoryAct.SHED, 0.0)
    floor.took(MemoryAct.SPILL, 0.0)
    assert decide(floor, AGAIN_SECONDS / 2, 0.85) is MemoryAct.NOTHING
    assert decide(floor, AGAIN_SECONDS, 0.85) is MemoryAct.SPILL


@pytest.mark.parametrize(("part", "growing"), [(0.96, 0), (0.91, 30 * MIB)])
def test_without_time_for_steps_a_query_ends_at_once(part: float, growing: int) -> None:
    assert decide(MemoryFloor(LIMITS), 0.0, part, at_work=True, growing=growing) is MemoryAct.END
    assert decide(MemoryFloor(LIMITS), 0.0, 0.91, growing=20 * MIB) is MemoryAct.SHED
    assert decide(MemoryFloor(LIMITS), 0.0, 0.85, growing=60 * MIB) is MemoryAct.SHED


def test_one_query_ends_at_a_time_and_what_it_held_has_a_moment_to_go() -> None:
    floor = MemoryFloor(LIMITS)
    floor.took(MemoryAct.END, 1.0)
    assert decide(floor, 1.1, 1.2) is MemoryAct.NOTHING
    floor.query_gone(1.2)
    assert decide(floor, 1.25, 1.2) is MemoryAct.SHED
    assert decide(floor, 2.0, 1.2) is MemoryAct.END


def test_a_worker_leaves_only_because_of_a_query_that_does_not_end() -> None:
    assert decide(MemoryFloor(LIMITS), 0.0, 3.0) is MemoryAct.END
    floor = MemoryFloor(LIMITS)
    floor.took(MemoryAct.END, 0.0)
    assert decide(floor, 0.1, 1.9) is MemoryAct.NOTHING
    assert decide(floor, 0.2, 2.0) is MemoryAct.LEAVE
    assert decide(floor, LET_GO_SECONDS + 1, 0.5) is MemoryAct.NOTHING
    assert decide(floor, LET_GO_SECONDS + 1, 0.91) is MemoryAct.LEAVE


def test_what_the_kernel_leaves_counts_however_small_the_process_is() -> None:
    floor = MemoryFloor(LIMITS)
    room = RESERVE_BYTES + 100 * MIB
    assert floor.decide(0.0, 0, room, at_work=False) is MemoryAct.SHED
    assert floor.decide(0.0, 0, RESERVE_BYTES, at_work=False) is MemoryAct.END
    floor.took(MemoryAct.END, 0.0)
    assert floor.decide(0.1, 0, RESERVE_BYTES, at_work=False) is MemoryAct.NOTHING
    assert floor.decide(0.1, 0, RESERVE_BYTES // 2 - 1, at_work=False) is MemoryAct.LEAVE
    assert floor.decide(0.1, 0, None, at_work=False) is MemoryAct.NOTHING


def test_a_query_that_takes_little_is_not_ended_for_what_nobody_holds() -> None:
    assert not LIMITS.is_greedy(100 * MIB, at(1.0), MANY)
    assert LIMITS.is_greedy(250 * MIB, at(1.0), MANY)
    assert LIMITS.is_greedy(1, at(1.3), MANY)
