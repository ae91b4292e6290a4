"""TaskManagers inside Spark's executors: one single-task Spark job for each, restarted when it is lost.

A single job of N tasks would fail as a whole when one task fails too often, and barrier mode starts and fails as a
whole. So each TaskManager is its own job, with a tag by which all of them can be cancelled. Losing one is normal: Spark
itself, or the thread here, submits another, which is a new worker with a new id. Under `local[n]`, where TaskManagers
occupy slots, the job stays and starts another by itself (`worker.slot_keeper`).

On clusters a job names its preferred executor, the one with the fewest TaskManagers, and requests a hundredth of a CPU,
so that all TaskManagers of an executor together take at most one slot from Spark's own work. (They do take one: Spark
counts exactly, and with 1.99 CPUs left it runs one task that needs a whole one.) Spark need not honour the preference:
a TaskManager that finds its executor taken (see `worker.executor_slot`) reports that, and is submitted again.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import RDD, TaskContext
from pyspark.errors import PySparkException
from pyspark.resource import ResourceProfile, ResourceProfileBuilder, TaskResourceRequests
from pyspark.serializers import CPickleSerializer

from wallaby.catalyst.spark_versions import has_fractional_cpus
from wallaby.spark.cluster import PROFILE_CPUS, Cluster, Executor
from wallaby.worker.bootstrap import Bootstrap

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: The tag of every TaskManager's job, in addition to that of its engine: these jobs are spared when all are cancelled.
TASK_MANAGER_TAG = "wallaby-taskmanager"
#: The pause before a lost TaskManager is started again, doubled each time it lives only briefly.
RESTART_SECONDS = 0.05
RESTART_SECONDS_MAX = 5.0
#: A TaskManager that lives longer than this has started successfully.
LIVED_SECONDS = 10.0
#: How long cancelled jobs may take to end: Spark kills a Python worker that has not ended after 2 s.
CANCEL_SECONDS = 4.0
#: While all executors have their TaskManagers: how often to look for a new one, and when to submit anyway.
SEAT_POLL_SECONDS = 0.25
NO_SEAT_SECONDS = 5.0
#: How often to look for new executors.
FOLLOW_SECONDS = 1.0
_PYTHON_ERROR = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception|Exit): .*)$", re.MULTILINE)


class Hosting:
    """The TaskManagers of one engine."""

    def __init__(
        self,
        context: SparkContext,
        bootstrap: Bootstrap,
        count: int,
        tag: str,
        *,
        profile: ResourceProfile | None = None,
        grows: bool = False,
        lost: Callable[[int], None] = lambda _at: None,
        spark_gone: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare the TaskManagers; `start` submits their jobs.

        Args:
            context: Where the jobs run.
            bootstrap: The configuration of each TaskManager.
            count: How many places there are; each has one TaskManager at a time.
            tag: The tag of all jobs.
            profile: The resources that each job requests, if the master supports profiles.
            grows: Add a place for every new executor.
            lost: Called with a place whose TaskManager has ended before the engine closed.
            spark_gone: Called once if Spark is stopped or dies before the engine is closed.
        """
        self._context = context
        self._cluster = Cluster(context)
        self._bootstrap = bootstrap
        self._tag = tag
        self._profile = profile
        self._lost = lost
        self._spark_gone = spark_gone
        self._closing = threading.Event()
        self._gone = threading.Lock()
        self._lock = threading.Lock()
        self._wishes: dict[int, str] = {}
        #: Why a TaskManager could not start, if one could not; a line for the user.
        self.trouble = ""
        self._grows = grows and not self._cluster.is_local
        self._threads = [self._place(at) for at in range(count)]

    def _place(self, at: int) -> threading.Thread:
        return threading.Thread(target=self._keep_up, args=(at,), name=f"wallaby-host-{at}", daemon=True)

    def start(self) -> None:
        """Submit the jobs; they run until `stop`."""
        for thread in self._threads:
            thread.start()
        if self._grows:
            threading.Thread(target=self._follow, name="wallaby-host-follow", daemon=True).start()

    def _follow(self) -> None:
        """Give every new executor a TaskManager."""
        while not self._closing.wait(FOLLOW_SECONDS):
            try:
                executors = len(self._cluster.executors())
            except (Py4JError, OSError, AttributeError):
                return  # Spark is gone, which the threads of the places notice too
            with self._lock:
                if executors <= len(self._threads) or self._closing.is_set():
                    continue
                thread = self._place(len(self._threads))
                self._threads.append(thread)
                thread.start()

    def stop(self, wait_seconds: float) -> None:
        """Stop restarting TaskManagers, and cancel those that do not end by themselves."""
        with self._lock:
            self._closing.set()
        deadline = time.monotonic() + wait_seconds
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(max(deadline - time.monotonic(), 0.0))
        if any(thread.is_alive() for thread in started):
            self._cancel()
            deadline = time.monotonic() + CANCEL_SECONDS
            for thread in started:
                thread.join(max(deadline - time.monotonic(), 0.0))

    def _cancel(self) -> None:
        try:
            self._context.cancelJobsWithTag(self._tag)
        except (Py4JError, PySparkException, OSError, AttributeError) as error:
            _log.debug("cancelling the TaskManagers' jobs failed: %s", type(error).__name__)

    # --- one place -----------------------------------------------------------------------------------

    def _keep_up(self, at: int) -> None:
        """Run one TaskManager after the other in this place, until the engine is closed."""
        pause_seconds = RESTART_SECONDS
        again = False
        while not self._closing.is_set():
            started = time.monotonic()
            try:
                self._run_one(at, again=again)
            except (
                Py4JError,
                PySparkException,
                OSError,
                AttributeError,
            ) as error:  # the last: a stopped context
                if self._closing.is_set():
                    return
                if not self._spark_lives():
                    self._end_without_spark()
                    return
                self.trouble = _line(error)
                _log.debug("TaskManager %d was lost and is started again: %s", at, type(error).__name__)
            if self._closing.is_set():
                return
            again = True
            self._lost(at)
            lived = time.monotonic() - started > LIVED_SECONDS
            pause_seconds = RESTART_SECONDS if lived else min(2 * pause_seconds, RESTART_SECONDS_MAX)
            self._closing.wait(pause_seconds)

    def _run_one(self, at: int, *, again: bool) -> None:
        context, bootstrap = self._context, self._bootstrap
        context.addJobTag(self._tag)
        context.addJobTag(TASK_MANAGER_TAG)
        context.setLocalProperty("spark.job.description", f"Wallaby TaskManager {at}")
        context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type] # unsets it
        rdd = self._one_element(at).mapPartitions(_serving(bootstrap, at, again))
        if self._profile is not None:
            rdd = rdd.withResources(self._profile)
        if rdd.collect() == [False]:
            self.trouble = "Spark puts TaskManagers into executors that have one already."
            _log.debug("TaskManager %d found its executor taken", at)

    def _one_element(self, at: int) -> RDD[int]:
        """An RDD of one partition, preferably at the executor where this place's TaskManager should run."""
        wish = None if self._cluster.is_local else self._await_wish(at)
        if wish is None:
            return self._context.parallelize([at], 1)
        jvm: Any = self._context._jvm
        jsc: Any = self._context._jsc
        scala = jvm.scala.jdk.javaapi.CollectionConverters
        places = jvm.java.util.ArrayList()
        places.add(f"executor_{wish.host}_{wish.id}")
        data = bytearray(CPickleSerializer().dumps([at]))  # type: ignore[no-untyped-call]
        elements = jvm.java.util.ArrayList()
        elements.add(jvm.scala.Tuple2(data, scala.asScala(places).toSeq()))
        of_bytes = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
        return RDD(jsc.sc().makeRDD(scala.asScala(elements).toSeq(), of_bytes).toJavaRDD(), self._context)

    def _await_wish(self, at: int) -> Executor | None:
        """The executor to prefer; None if none has had a free slot for a while, or if the engine is closing."""
        deadline = time.monotonic() + NO_SEAT_SECONDS
        while (wish := self._wish(at)) is None and time.monotonic() < deadline:
            if self._closing.wait(SEAT_POLL_SECONDS):
                break
        return wish

    def _wish(self, at: int) -> Executor | None:
        """The executor with the fewest TaskManagers, not counting this place's, if it has a free slot."""
        executors = self._cluster.executors()
        with self._lock:
            self._wishes.pop(at, None)
            taken = Counter(self._wishes.values())
            free = [
                executor
                for executor in executors
                if taken[executor.id] < max(self._bootstrap.per_executor, 1)
            ]
            if not free:
                return None
            wish = min(free, key=lambda executor: (taken[executor.id], executor.id))
            self._wishes[at] = wish.id
            return wish

    # --- Spark's own end -----------------------------------------------------------------------------

    def _spark_lives(self) -> bool:
        jsc: Any = self._context._jsc
        try:
            return jsc is not None and not jsc.sc().isStopped()
        except (Py4JError, OSError):
            return False

    def _end_without_spark(self) -> None:
        if not self._closing.is_set() and self._gone.acquire(blocking=False):
            _log.info("Spark has ended, and the TaskManagers with it")
            threading.Thread(target=self._spark_gone, name="wallaby-spark-gone", daemon=True).start()


def fractional_profile(cluster: Cluster) -> ResourceProfile | None:
    """A profile that requests almost no CPU, if Spark and its master support that and it starts no executors."""
    if cluster.is_local or cluster.is_dynamic or not has_fractional_cpus():
        return None
    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(PROFILE_CPUS)).build


def _line(error: BaseException) -> str:
    """The most informative line of an error: Python's own, if it came from an executor's Python."""
    found = _PYTHON_ERROR.findall(str(error))
    return str(found[-1] if found else type(error).__name__)[:300]


def _serving(bootstrap: Bootstrap, at: int, again: bool) -> Callable[[object], list[bool]]:
    """Runs in the executor's Python process; `again` if it replaces a lost TaskManager."""

    def serve_here(_: object) -> list[bool]:
        # The input is not read, so Spark does not reuse this process for another task.
        from wallaby.worker.executor_slot import taking_slot  # noqa: PLC0415 - imported where it runs, in the executor

        with taking_slot(bootstrap.engine, bootstrap.per_executor) as taken:
            if not taken:
                return [False]
            from wallaby.worker.start import start  # noqa: PLC0415 - imported where it runs, in the executor

            task = TaskContext.get()
            start(bootstrap, at, again=again or (task is not None and bool(task.attemptNumber())))
            return [True]

    return serve_here
