"""Schedules with few preemptions are planned where two threads touch the same, and all of them."""

from __future__ import annotations

from wallaby_lab.simulation.interleavings.planning import ThreadPlan, plans_of
from wallaby_lab.simulation.interleavings.touching import Touch, touch_of


class _Holder:
    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.count = 0

    def change(self) -> None:
        self.rows[1] = self.count
        self.rows.pop(1)
        self.count += 1

    def look(self) -> int:
        return self.rows.get(1, self.count)


def _touches(name: str) -> list[Touch]:
    code = getattr(_Holder, name).__code__
    return [touch_of(code, line) for line in range(code.co_firstlineno + 1, code.co_firstlineno + 4)]


def test_lines_that_assign_store_or_change_a_container_write() -> None:
    assert [sorted(touch.writes) for touch in _touches("change")] == [["count", "rows"], ["rows"], ["count"]]


def test_a_line_that_looks_reads_and_methods_are_not_touched() -> None:
    assert _touches("look")[0] == Touch(reads=frozenset({"rows", "count"}))


def test_plans_stop_at_lines_that_touch_what_both_use() -> None:
    writer = [Touch(writes=frozenset({"own"})), Touch(writes=frozenset({"both"}))]
    reader = [Touch(), Touch(reads=frozenset({"both"})), Touch(reads=frozenset({"other"}))]
    traces = {"write": writer, "read": reader}
    assert set(plans_of("write", traces, "read", traces)) == {
        ThreadPlan("write", 2),
        ThreadPlan("read", 2),
        ThreadPlan("read", 2, 2),
    }


def test_what_only_one_order_shows_to_be_shared_counts() -> None:
    writer = [Touch(writes=frozenset({"place"}))]
    alone, after = [Touch()], [Touch(reads=frozenset({"place"}))]
    first, second = {"write": writer, "read": after}, {"write": writer, "read": alone}
    assert ThreadPlan("write", 1) in plans_of("write", first, "read", second)
