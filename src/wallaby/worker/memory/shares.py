"""Divide the memory budget of a TaskManager into shares that add up to the whole.

Everything that holds rows has a share, and a way to stay within it: kernels, backup and collected states spill; windows
and the sizes of tasks, reads and outputs are chosen to fit. A share of all kernel threads is divided by their number.
Shares depend only on the budget and the number of threads, so they are the same for all workers of a query, and for a
retrace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from wallaby.errors import ConfigurationError
from wallaby.statements.connection import MEMORY_MIN_BYTES

MIB: Final = 1 << 20
#: DuckDB's memory for all kernel threads, before it spills.
KERNEL_SHARE: Final = 0.35
#: Backed-up outputs, before they go to segment files.
BACKUP_SHARE: Final = 0.20
#: The collected states of channels, before they go to mapped files.
STATE_SHARE: Final = 0.15
#: Inputs that have arrived and wait to be consumed.
WINDOW_SHARE: Final = 0.15
#: Arrow data of running tasks: inputs, outputs, and copies on the way.
TASK_SHARE: Final = 0.15
#: The fraction of a task's share for a read, a draw or an output, so that all of them and their copies fit.
TASK_PARTS: Final = 4
WINDOW_BYTES_MIN: Final = 64 << 10
TASK_BYTES_MIN: Final = 1 * MIB
#: A larger push would only take longer.
PUSH_BYTES_MAX: Final = 64 * MIB
#: A broadcast is held by the inbox and by the kernel of every channel.
BROADCAST_PARTS: Final = 16


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The limits of one TaskManager."""

    memory_bytes: int
    threads: int

    def require_enough(self) -> None:
        """Refuse a budget that is too small for kernels to work."""
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
        """DuckDB's memory for one kernel thread."""
        return int(self.memory_bytes * KERNEL_SHARE / self.threads)

    @property
    def backup_bytes(self) -> int:
        """The backup's memory."""
        return int(self.memory_bytes * BACKUP_SHARE)

    @property
    def state_bytes(self) -> int:
        """The memory for the collected states of all channels together."""
        return int(self.memory_bytes * STATE_SHARE)

    @property
    def task_bytes(self) -> int:
        """The largest draw of one task, and the largest output."""
        share = self.memory_bytes * TASK_SHARE / self.threads / TASK_PARTS
        return max(int(share), TASK_BYTES_MIN)

    @property
    def broadcast_bytes(self) -> int:
        """The largest build side that may go to every channel."""
        return self.memory_bytes // (BROADCAST_PARTS * self.threads)

    @property
    def push_bytes(self) -> int:
        """The largest push; there are a few at once."""
        return min(self.task_bytes, PUSH_BYTES_MAX)

    @property
    def incoming_bytes(self) -> int:
        """The memory for data that arrives over Flight and is not handed over yet."""
        return self.task_bytes

    def window_bytes(self, edges: int) -> int:
        """The window of each of the edges that lead to one TaskManager."""
        return max(int(self.memory_bytes * WINDOW_SHARE / max(edges, 1)), WINDOW_BYTES_MIN)
