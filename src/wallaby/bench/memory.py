"""What a process and all below it hold in memory: proportional set sizes, sampled, and their peak."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.25


def held_bytes(root: int) -> int:
    """The proportional set size of a process and its descendants, in bytes."""
    held = 0
    with suppress(psutil.Error):
        parent = psutil.Process(root)
        for process in (parent, *parent.children(recursive=True)):
            with suppress(OSError, ValueError, StopIteration):
                lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
                held += int(next(line for line in lines if line.startswith("Pss:")).split()[1]) << 10
    return held


class Peak:
    """Samples until it is left; `bytes` is the largest sample."""

    def __init__(self, root: int, sample_seconds: float = SAMPLE_SECONDS) -> None:
        self.bytes = 0
        self._sample_seconds = sample_seconds
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
            self.bytes = max(self.bytes, held_bytes(self._root))
            if self._over.wait(self._sample_seconds):
                return
