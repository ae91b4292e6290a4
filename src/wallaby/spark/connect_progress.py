"""Tell the clients of Spark Connect how far their queries are, by `ConnectProgress.java`.

A thread reads the progress of their queries from the control store, as the progress bar does (`observe.progress`). It
lives as long as there are such queries. Queries that end soon are not reported.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from wallaby.catalyst.janino import load_class, new_object
from wallaby.errors import GcsError
from wallaby.gcs.interface import Gcs
from wallaby.head.collected import Collected
from wallaby.observe.progress import POLL_SHARE, standing
from wallaby.spark.query_jobs import QueryJob

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
POLL_SECONDS: Final = 0.5
#: A client is told of this many tasks at most; each is a call in the JVM.
TASKS_MAX: Final = 1000


@dataclass(slots=True)
class _Reported:
    job: QueryJob
    collected: Collected
    #: The stage that Spark Connect counts, once it was told of it.
    stage: int | None = None
    tasks: int = 0
    done: int = 0
    is_over: bool = False


class ConnectProgress:
    """The queries of Spark Connect's clients that run now, and what their clients were told."""

    def __init__(self, context: SparkContext, gcs: Callable[[], Gcs]) -> None:
        gateway: Any = context._gateway
        jsc: Any = context._jsc
        made = load_class(gateway.jvm, "wallaby.spark", "ConnectProgress")
        self._java = new_object(gateway, gateway.jvm, made, jsc.sc())
        self._gcs = gcs
        self._lock = threading.Lock()
        self._reported: list[_Reported] = []
        self._thread: threading.Thread | None = None

    def follow(self, job: QueryJob, collected: Collected) -> None:
        """Report a query to its client until it ends, if it is one of Spark Connect's."""
        if not job.connect_tag:
            return
        reported = _Reported(job, collected)
        with self._lock:
            self._reported.append(reported)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wallaby-connect", daemon=True)
                self._thread.start()

        def over(_error: BaseException | None) -> None:
            reported.is_over = True

        collected.when_over(over)

    def _run(self) -> None:
        pause_seconds = POLL_SECONDS
        while True:
            time.sleep(pause_seconds)
            began = time.monotonic()
            with self._lock:
                if not self._reported:
                    self._thread = None
                    return
                now = list(self._reported)
            for reported in now:
                try:
                    self._report(reported)
                except (Py4JError, OSError) as error:
                    _log.debug("Spark Connect takes no progress: %s", type(error).__name__)
                    reported.is_over = True
            with self._lock:
                self._reported = [each for each in self._reported if not each.is_over]
            pause_seconds = max(POLL_SECONDS, (time.monotonic() - began) / POLL_SHARE)

    def _report(self, reported: _Reported) -> None:
        if reported.is_over:
            if reported.stage is not None:
                self._advance(reported, reported.tasks)
                self._java.end(reported.stage, reported.tasks)
            return
        try:
            snapshot = self._gcs().snapshot(reported.collected.query)
        except (GcsError, OSError):
            return
        if snapshot is None:
            return
        stands = standing(reported.collected.graph, snapshot)
        if reported.stage is None:
            reported.tasks = min(max(stands.splits, 1), TASKS_MAX)
            reported.stage = int(
                self._java.begin(reported.job.number, reported.job.connect_tag, reported.tasks)
            )
        self._advance(reported, int(reported.tasks * stands.splits_read / max(stands.splits, 1)))

    def _advance(self, reported: _Reported, done: int) -> None:
        """Report how many tasks have ended, unless that is fewer than before because of a recovery."""
        if done > reported.done:
            assert reported.stage is not None, "it has begun"
            self._java.advance(reported.stage, done - reported.done)
            reported.done = done
