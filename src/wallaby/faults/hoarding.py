"""A task that takes uncounted memory: ordered on purpose, to test the watch over memory.

There are three ways, as in real queries: Arrow data that a step makes piece by piece, the result of a DuckDB statement,
which DuckDB's memory limit does not count, and native code that cannot be interrupted.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from wallaby.batches.stopping import check
from wallaby.faults.orders import FaultAct
from wallaby.lineage.effects import Execute, Executed
from wallaby.lineage.names import TaskName
from wallaby.statements.connection import DuckDbSession, KernelSettings

MIB: Final = 1 << 20
PIECE_BYTES: Final = 2 * MIB
#: A pause after each piece: kernels fill memory at some hundred megabytes per second.
PIECE_SECONDS: Final = 0.005
#: How long native code holds its memory.
HELD_SECONDS: Final = 30.0
_ROW_BYTES: Final = 1 << 10
#: Texts of 32 bytes that take DuckDB so long to make that a result does not grow faster than others do.
_SLOW_TEXT: Final = "md5(" * 8 + "range::VARCHAR" + ")" * 8
_REPEATED: Final = _ROW_BYTES // 32


class TaskWork(Protocol):
    """The computation of a query at a TaskManager; see `worker.execution`."""

    def running(self, task: TaskName) -> AbstractContextManager[None]:
        """Register what this thread does as work for a task."""

    def execute(self, effect: Execute) -> Executed:
        """Run one step of one channel."""


class Hoarding:
    """A query's work in which the next step of one task first takes this much memory."""

    def __init__(self, work: TaskWork, effect: Execute, act: FaultAct, size_bytes: int) -> None:
        self._work = work
        self._task = effect.task
        self._act = act
        self._size_bytes = size_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def execute(self, effect: Execute) -> Executed:
        """Run one step, and take memory beside it."""
        if effect.task == self._task:
            with self._work.running(effect.task):
                hoard(self._act, self._size_bytes)
        return self._work.execute(effect)


def hoard(act: FaultAct, size_bytes: int) -> None:
    """Take this much memory, and release it."""
    match act:
        case FaultAct.HOARD:
            held = []
            for _ in range(0, size_bytes, PIECE_BYTES):
                check()
                held.append(_piece())
        case FaultAct.HOARD_SQL:
            session = DuckDbSession(KernelSettings(memory_bytes=64 * MIB))
            sql = f"SELECT repeat({_SLOW_TEXT}, {_REPEATED}) AS t FROM range({size_bytes // _ROW_BYTES})"  # noqa: S608 - numbers
            try:
                session.query(sql, {})
            finally:
                session.close()
        case _:
            held = []
            for _ in range(0, size_bytes, PIECE_BYTES):
                held.append(_piece())
            time.sleep(HELD_SECONDS)


def _piece() -> pa.Buffer:
    time.sleep(PIECE_SECONDS)
    buffer = pa.allocate_buffer(PIECE_BYTES)
    np.frombuffer(buffer, np.uint8).fill(1)
    return buffer
