"""A step that takes long, on its kernel thread, as one that computes for long does: ordered on purpose."""

from __future__ import annotations

import time
from typing import Any

from wallaby.faults.hoarding import TaskWork
from wallaby.lineage.effects import Execute, Output


class Lingering:
    """A query's work in which the next step of one task begins late."""

    def __init__(self, work: TaskWork, effect: Execute, seconds: float) -> None:
        self._work = work
        self._effect: Execute | None = effect
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def execute(self, effect: Execute) -> tuple[Any, Output]:
        """One step."""
        if effect is self._effect:
            self._effect = None
            time.sleep(self._seconds)
        return self._work.execute(effect)
