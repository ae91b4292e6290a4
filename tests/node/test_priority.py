"""The order in which a TaskManager's kernels take what waits: repairs first, then what empties inboxes, then reads."""

from __future__ import annotations

from wallaby.lineage.effects import Execute, FailPoint
from wallaby.lineage.names import TaskName
from wallaby.node.perform import priority


def waiting(point: FailPoint, stage: int, split: int | None = None) -> tuple[int, ...]:
    return priority(Execute(point, TaskName(stage, 0, 0), None, split, None, (), {}, last=False))


def test_what_repairs_a_loss_comes_before_anything_else() -> None:
    usual = min(waiting(FailPoint.EXECUTE, 9), waiting(FailPoint.EXECUTE, 0, split=0))
    assert waiting(FailPoint.RETRACE, 0) < usual
    assert waiting(FailPoint.REREAD, 5, split=3) < usual


def test_later_stages_come_first_and_of_reads_the_earlier() -> None:
    assert waiting(FailPoint.EXECUTE, 4) < waiting(FailPoint.EXECUTE, 2)
    assert waiting(FailPoint.EXECUTE, 0) < waiting(FailPoint.EXECUTE, 0, split=0)
    assert waiting(FailPoint.EXECUTE, 0, split=0) < waiting(FailPoint.EXECUTE, 1, split=0)
