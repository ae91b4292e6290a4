"""The shares of the memory budget: together the whole, the same for every worker, refused if too small."""

from __future__ import annotations

import pytest

from wallaby.errors import ConfigurationError
from wallaby.worker.memory import shares
from wallaby.worker.memory.shares import MemoryShares

MIB = 1 << 20
EDGES = 40


def test_the_shares_are_the_whole() -> None:
    parts = (
        shares.KERNEL_SHARE,
        shares.BACKUP_SHARE,
        shares.STATE_SHARE,
        shares.WINDOW_SHARE,
        shares.TASK_SHARE,
    )
    assert sum(parts) == pytest.approx(1)


@pytest.mark.parametrize("memory_mib", [100, 256, 4096])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_limits_together_stay_within_the_budget(memory_mib: int, threads: int) -> None:
    given = MemoryShares(memory_mib * MIB, threads)
    tasks = threads * shares.TASK_PARTS * given.task_bytes
    fixed = given.backup_bytes + given.state_bytes + threads * given.kernel_bytes
    assert fixed + tasks + EDGES * given.window_bytes(EDGES) <= given.memory_bytes


def test_a_budget_in_which_kernels_cannot_work_is_refused_with_one_that_will_do() -> None:
    with pytest.raises(ConfigurationError) as caught:
        MemoryShares(64 * MIB, 2).require_enough()
    (least,) = [
        int(word[:-1]) for word in caught.value.fix.split() if word.endswith("m") and word[:-1].isdigit()
    ]
    MemoryShares(least * MIB, 2).require_enough()
