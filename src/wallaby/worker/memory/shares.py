"""How the one memory budget of a TaskManager is divided. The shares add up to the whole.

Everything that holds rows has a share, and a way to stay in it: kernels, backup and collected states spill, windows
and the sizes of tasks, reads and outputs are chosen so that they fit. What is shared by the kernel threads is
divided by their number. All of it depends on the budget and the number of threads alone, so it is the same for all
workers of a query, and for a retrace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from wallaby.errors import ConfigurationError
from wallaby.statements.connection import MEMORY_MIN_BYTES

MIB: Final = 1 << 20
#: What DuckDB holds for all kernel threads, before it spills.
KERNEL_SHARE: Final = 0.35
#: Outputs that are kept for others, before they go to segment files.
BACKUP_SHARE: Final = 0.20
#: What channels have collected, before it goes to mapped files.
STATE_SHARE: Final = 0.15
#: What has arrived and waits to be consumed.
WINDOW_SHARE: Final = 0.15
#: Arrow data of the tasks that run now: what was read or drawn, what comes out, and copies of it on the way.
TASK_SHARE: Final = 0.15
#: A read, a draw or an output is so small a part of a task's share that all of them and their copies fit.
TASK_PARTS: Final = 4
WINDOW_BYTES_MIN: Final = 64 << 10
TASK_BYTES_MIN: Final = 1 * MIB
#: A push of more would only be a longer one.
PUSH_BYTES_MAX: Final = 64 * MIB
#: A broadcast is kept by the inbox and by the kernel of every channel.
BROADCAST_PARTS: Final = 16


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The limits of one TaskManager."""

    memory_bytes: int
    threads: int

    def require_enough(self) -> None:
        """Refuse a budget in which kernels cannot work at all."""
        if self.kernel_bytes < MEMORY_MIN_BYTES:
            least = math.ceil(MEMORY_MIN_BYTES * self.threads / KERNEL_SHARE / MIB)
            raise ConfigurationError(
                f"{self.memory_bytes // MIB} MiB of memory are too little for the {self.threads} kernel threads of a "
                "TaskManager.",
                fix=f"Set spark.wallaby.memory to {least}m or more, or lower spark.wallaby.threads.",
                key="spark.wallaby.memory",
            )

    @property
    def kernel_bytes(self) -> int:
        """What DuckDB may hold for one kernel thread."""
        return int(self.memory_bytes * KERNEL_SHARE / self.threads)

    @property
    def backup_bytes(self) -> int:
        """What the backup may hold in memory."""
        return int(self.memory_bytes * BACKUP_SHARE)

    @property
    def state_bytes(self) -> int:
        """What all channels together may have collected in memory."""
        return int(self.memory_bytes * STATE_SHARE)

    @property
    def task_bytes(self) -> int:
        """What one task should draw at most, and what one output should hold at most."""
        share = self.memory_bytes * TASK_SHARE / self.threads / TASK_PARTS
        return max(int(share), TASK_BYTES_MIN)

    @property
    def broadcast_bytes(self) -> int:
        """The largest build side that may go to every channel."""
        return self.memory_bytes // (BROADCAST_PARTS * self.threads)

    @property
    def push_bytes(self) -> int:
        """What one push may send; there are a few at once."""
        return min(self.task_bytes, PUSH_BYTES_MAX)

    @property
    def incoming_bytes(self) -> int:
        """What may be on its way in over Flight, not handed over yet."""
        return self.task_bytes

    def window_bytes(self, edges: int) -> int:
        """What may wait at the end of each of the edges that lead to one TaskManager."""
        return max(int(self.memory_bytes * WINDOW_SHARE / max(edges, 1)), WINDOW_BYTES_MIN)
