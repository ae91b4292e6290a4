"""TaskManagers inside Spark's executors: one single-task Spark job for each, restarted when it is lost.

One job of N tasks would die as a whole when one task fails too often, and barrier mode starts and dies all
or nothing; so each TaskManager is a job of its own, under a tag by which all of them can be cancelled. Losing
one is normal: its thread here submits another, which is a new worker with a new id.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from wallaby.worker.bootstrap import Bootstrap

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: The pause before a lost TaskManager is started again, doubled each time it lives only briefly.
RESTART_SECONDS = 0.05
RESTART_SECONDS_MAX = 5.0
#: A TaskManager that lives longer than this has started well.
LIVED_SECONDS = 10.0


class Hosting:
    """The TaskManagers of one engine."""

    def __init__(self, context: SparkContext, bootstrap: Bootstrap, count: int, tag: str) -> None:
        self._context = context
        self._bootstrap = bootstrap
        self._tag = tag
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep_up, args=(at,), name=f"wallaby-host-{at}", daemon=True)
            for at in range(count)
        ]

    def start(self) -> None:
        """Submit the jobs; they run until `stop`."""
        for thread in self._threads:
            thread.start()

    def stop(self, wait_seconds: float) -> None:
        """Let no TaskManager be started again; cancel those that do not end by themselves."""
        self._closing.set()
        deadline = time.monotonic() + wait_seconds
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        if any(thread.is_alive() for thread in self._threads):
            self._cancel()
            for thread in self._threads:
                thread.join(1.0)

    def _cancel(self) -> None:
        try:
            self._context.cancelJobsWithTag(self._tag)
        except (Py4JError, PySparkException, OSError) as error:
            _log.debug("cancelling the TaskManagers' jobs failed: %s", error)

    def _keep_up(self, at: int) -> None:
        """Run one TaskManager after the other in this place, until the engine closes."""
        pause_seconds = RESTART_SECONDS
        while not self._closing.is_set():
            started = time.monotonic()
            try:
                self._run_one(at)
            except (Py4JError, PySparkException, OSError) as error:
                if not self._closing.is_set():
                    _log.info("TaskManager %d was lost and is started again: %s", at, type(error).__name__)
            lived = time.monotonic() - started > LIVED_SECONDS
            pause_seconds = RESTART_SECONDS if lived else min(2 * pause_seconds, RESTART_SECONDS_MAX)
            self._closing.wait(pause_seconds)

    def _run_one(self, at: int) -> None:
        context, bootstrap = self._context, self._bootstrap
        context.addJobTag(self._tag)
        context.setLocalProperty("spark.job.description", f"Wallaby TaskManager {at}")
        context.setLocalProperty("spark.scheduler.pool", None)
        context.parallelize([at], 1).mapPartitions(_serving(bootstrap)).collect()


def _serving(bootstrap: Bootstrap) -> Callable[[object], list[int]]:
    """What runs in the executor's Python process."""

    def serve_here(_: object) -> list[int]:
        from wallaby.worker.main import serve  # noqa: PLC0415 - imported where it runs, in the executor

        serve(bootstrap)
        return []

    return serve_here
