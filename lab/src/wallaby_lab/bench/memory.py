"""Sample the proportional set size of a process and its descendants, and its peak.

Reading it takes time in proportion to the memory, and pauses the process. So the pause after each sample is many times
as long as the sample.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.25
#: The pause after a sample, in multiples of its duration.
PAUSE_FACTOR = 15


def held_bytes(root: int, workers: Collection[int] = ()) -> tuple[int, int]:
    """The proportional set size of a process and its descendants, in bytes, and the share of the given workers in it.

    The keeper from which a TaskManager was forked, its parent, and its lease keeper, its child, count with it.
    """
    held = of_workers = 0
    with suppress(psutil.Error):
        parent = psutil.Process(root)
        counted = set(workers)
        for worker in map(psutil.Process, workers):
            counted |= {worker.ppid(), *(child.pid for child in worker.children())}
        for process in (parent, *parent.children(recursive=True)):
            with suppress(OSError, ValueError, StopIteration):
                lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
                size = int(next(line for line in lines if line.startswith("Pss:")).split()[1]) << 10
                held += size
                of_workers += size if process.pid in counted else 0
    return held, of_workers


class Peak:
    """Samples inside a block; `bytes` is the largest sample in total, `worker_bytes` that of the workers alone."""

    def __init__(
        self,
        root: int,
        workers: Collection[int] = (),
        sample_seconds: float = SAMPLE_SECONDS,
        pause_factor: float = PAUSE_FACTOR,
    ) -> None:
        self.bytes = 0
        self.worker_bytes = 0
        self._workers = frozenset(workers)
        self._sample_seconds = sample_seconds
        self._pause_factor = pause_factor
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            began = time.monotonic()
            held, of_workers = held_bytes(self._root, self._workers)
            self.bytes = max(self.bytes, held)
            self.worker_bytes = max(self.worker_bytes, of_workers)
            took = time.monotonic() - began
            if self._over.wait(max(self._sample_seconds, self._pause_factor * took)):
                return
