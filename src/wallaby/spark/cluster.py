"""The cluster behind a Spark session: its master, executors and addresses, and how many TaskManagers fit.

Executors are read from Spark's own status store, which knows their ids, hosts and cores, with or without a user
interface.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import socket
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from wallaby.config.settings import Settings
from wallaby.errors import AttachError
from wallaby.observe.units import counted
from wallaby.spark.memory.host import left_bytes
from wallaby.spark.memory.pods import PodMemory, spark_bytes, spark_bytes_without_unit

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,.*\]")
#: The default share of all TaskManagers together in the memory that the JVMs leave on the host.
MEMORY_SHARE = 0.5
#: How many executors Spark starts on Kubernetes unless it is told.
KUBERNETES_EXECUTORS = 2
#: If the number of executors is unknown: the cluster counts as complete when no executor has come for this long.
STEADY_SECONDS = 1.0
_POLL_SECONDS = 0.05
#: How long the job that requested an executor may take to end.
ASK_END_SECONDS = 5.0
#: The fraction of a CPU that a TaskManager requests where Spark supports fractions.
PROFILE_CPUS = 0.01
#: The setting that enables decommissioning in Spark.
DECOMMISSION = "spark.decommission.enabled"


@dataclass(frozen=True, slots=True)
class Executor:
    """One running executor."""

    id: str
    host: str
    cores: int


@dataclass(frozen=True, slots=True)
class Size:
    """How many TaskManagers an engine has, and what each of them gets."""

    count: int
    threads: int
    memory_bytes: int
    #: How many of them one executor hosts; 0: any number, under `local[n]`.
    per_executor: int
    #: Do they leave a slot for Spark's own tasks? With `spark.wallaby.exclusive` they need not.
    leaves_slot: bool = True


class Cluster:
    """The cluster of a Spark application, as far as Wallaby needs to know it."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._conf = context.getConf()
        self.master = context.master or ""
        self._local = _LOCAL.fullmatch(self.master)

    @property
    def is_local(self) -> bool:
        """Is the driver the only executor?"""
        return self._local is not None

    @property
    def is_one_host(self) -> bool:
        """Is everything certainly on this host, so that nothing needs to listen to other hosts?"""
        return self.is_local or _LOCAL_CLUSTER.fullmatch(self.master) is not None

    @property
    def is_kubernetes(self) -> bool:
        """Are executors pods of Kubernetes?"""
        return self.master.startswith("k8s://")

    @property
    def is_dynamic(self) -> bool:
        """Do executors come and go with the load?"""
        return self.is_on("spark.dynamicAllocation.enabled")

    def is_on(self, key: str) -> bool:
        """Is a setting of Spark true?"""
        return (self._conf.get(key) or "false").strip().lower() == "true"

    def setting(self, key: str) -> str | None:
        """A Spark setting, if it is set."""
        return self._conf.get(key)

    # --- executors -----------------------------------------------------------------------------------

    def executors(self) -> tuple[Executor, ...]:
        """The running executors that will stay, as far as Spark knows; none under `local[n]`."""
        jsc: Any = self._context._jsc
        found = jsc.sc().statusStore().executorList(True)
        summaries = [found.apply(at) for at in range(found.size())]
        return tuple(
            Executor(
                summary.id(),
                summary.hostPort().rpartition(":")[0] or summary.hostPort(),
                summary.totalCores(),
            )
            for summary in summaries
            if summary.id() != "driver" and summary.isActive() and not self.is_decommissioned(summary.id())
        )

    def is_decommissioned(self, executor: str) -> bool:
        """Is Spark decommissioning this executor? No event tells, so this asks Spark."""
        if not self.is_on(DECOMMISSION):
            return False
        jsc: Any = self._context._jsc
        return bool(jsc.sc().taskScheduler().isExecutorDecommissioned(executor))

    def await_executors(self, limit_seconds: float, wanted: int = 0) -> tuple[Executor, ...]:
        """Wait until the expected number of executors is there, or no more have come for a moment.

        With dynamic allocation there may be none while Spark is idle: then a small job makes Spark start one.
        """
        if self.is_dynamic and not self.executors():
            with _asking_for_an_executor(self._context):
                return self._await_executors(limit_seconds, wanted)
        return self._await_executors(limit_seconds, wanted)

    def _await_executors(self, limit_seconds: float, wanted: int) -> tuple[Executor, ...]:
        expected = self._expected_executors() or wanted
        deadline = time.monotonic() + limit_seconds
        found: tuple[Executor, ...] = ()
        steady_until = deadline
        while time.monotonic() < min(deadline, steady_until):
            before, found = len(found), self.executors()
            if expected and len(found) >= expected:
                break
            if len(found) > before:
                # Fewer than expected may come, if the cluster has no room for more.
                steady_until = time.monotonic() + (3 * STEADY_SECONDS if expected else STEADY_SECONDS)
            time.sleep(_POLL_SECONDS)
        if not found:
            asked = ", although dynamic allocation had a task waiting for one" if self.is_dynamic else ""
            where = (
                "Look why the executors' pods do not start (kubectl describe pods -l spark-role=executor)"
                if self.is_kubernetes
                else "Check the master's page for free cores and memory"
            )
            raise AttachError(
                f"No executor of {self.master} started within {limit_seconds:g} s{asked}.",
                fix=f"{where}, or raise spark.wallaby.attachTimeout.",
            )
        return found

    def _expected_executors(self) -> int:
        """The number of executors that will come; 0 if unknown."""
        cluster = _LOCAL_CLUSTER.fullmatch(self.master)
        if cluster is not None:
            return int(cluster[1])
        cores, each = self._conf.get("spark.cores.max"), self._conf.get("spark.executor.cores")
        by_cores = int(cores) // int(each) if cores and each else 0
        by_default = KUBERNETES_EXECUTORS if self.is_kubernetes and not self.is_dynamic else 0
        return int(self._conf.get("spark.executor.instances") or "0") or by_cores or by_default

    # --- size ----------------------------------------------------------------------------------------

    def size(self, settings: Settings, *, profiles: bool) -> Size:
        """The number of TaskManagers, and what each gets; an error if they would leave Spark no slot."""
        if self._local is not None:
            return self._size_local(settings, self._local[1])
        executors = self.await_executors(settings.attach_timeout, settings.workers)
        count = settings.workers or len(executors)
        per_executor = -(-count // len(executors))
        cores = min(executor.cores for executor in executors)
        task_cpus = int(self._conf.get("spark.task.cpus") or "1")
        left = cores - per_executor * (PROFILE_CPUS if profiles else task_cpus)
        if left < task_cpus and not settings.exclusive:
            raise AttachError(
                f"No slot is left for ordinary Spark jobs: {counted(per_executor, 'TaskManager')} in an executor of "
                f"{counted(cores, 'core')}.",
                fix="Give executors more cores (spark.executor.cores), or set spark.wallaby.exclusive=true.",
                setting="spark.executor.cores",
            )
        threads = settings.threads or max(cores // per_executor, 1)
        memory = self._memory(settings, executors, count, per_executor)
        return Size(count, threads, memory, per_executor, leaves_slot=left >= task_cpus)

    def _size_local(self, settings: Settings, slots_text: str | None) -> Size:
        cores = os.cpu_count() or 1
        slots = 1 if slots_text is None else cores if slots_text == "*" else int(slots_text)
        count = settings.workers or 1
        if slots <= count and not settings.exclusive:
            raise AttachError(
                f"No slot is left for ordinary Spark jobs: {counted(count, 'TaskManager')} under {self.master}.",
                fix=f"Use local[{count + 1}] or more, or set spark.wallaby.exclusive=true.",
            )
        memory = settings.memory or int(left_bytes(self._jvm_bytes("driver")) * MEMORY_SHARE / count)
        threads = settings.threads or max(cores // count, 1)
        return Size(count, threads, memory, 0, leaves_slot=slots > count)

    def _memory(
        self, settings: Settings, executors: tuple[Executor, ...], count: int, per_executor: int
    ) -> int:
        """The given budget, or Spark's memory for Python, or a share of what a host like this one or a pod has left."""
        if self.is_kubernetes:
            pod = PodMemory.of(self.setting)
            return pod.budget(settings.memory, settings.memory_allowance, per_executor, MEMORY_SHARE)
        if settings.memory:
            return settings.memory
        allotted = spark_bytes(self._conf.get("spark.executor.pyspark.memory") or "")
        if allotted:
            return allotted // per_executor
        hosts = Counter(executor.host for executor in executors)
        jvms = self._jvm_bytes("driver") + max(hosts.values()) * self._jvm_bytes("executor")
        on_one_host = -(-count // len(hosts))
        return int(left_bytes(jvms) * MEMORY_SHARE / on_one_host)

    def result_bytes_max(self) -> int:
        """How much of one result the driver may hold, according to Spark's setting; 0: no limit."""
        text = self._conf.get("spark.driver.maxResultSize") or "1g"
        return spark_bytes_without_unit(text)

    def _jvm_bytes(self, of: str) -> int:
        """The maximum heap of a JVM, the driver's or an executor's."""
        return spark_bytes(self._conf.get(f"spark.{of}.memory") or "1g")

    # --- addresses and interpreters ------------------------------------------------------------------

    def driver_address(self) -> str:
        """The address of this host to listen on: loopback if everything is on this host, otherwise Spark's own."""
        if self.is_one_host:
            return LOOPBACK
        of_pod = self._pod_address()
        key = "spark.driver.bindAddress" if of_pod else "spark.driver.host"
        name = of_pod or self._conf.get(key) or socket.gethostname()
        try:
            address = socket.gethostbyname(name.strip("[]")) if ":" not in name else name.strip("[]")
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind((address, 0))
            unspecified = ipaddress.ip_address(address).is_unspecified
        except (OSError, ValueError) as error:
            raise AttachError(
                f"Cannot listen on {name}, the driver's address for executors: {error}.",
                fix=f"Set {key} to an address of the driver's host that executors can reach.",
                setting=key,
            ) from error
        if unspecified:
            raise AttachError(
                f"spark.driver.host is {name}, which is not one particular address.",
                fix="Set it to the one address of the driver's host that executors can reach.",
                setting="spark.driver.host",
            )
        return address

    def _pod_address(self) -> str:
        """The address of the driver's pod, if Spark has its executors use that instead of the name of a service.

        The name may not be known yet while the pod starts.
        """
        uses_it = (self._conf.get("spark.kubernetes.executor.useDriverPodIP") or "true").lower() == "true"
        address = self._conf.get("spark.driver.bindAddress") or ""
        try:
            is_one = not ipaddress.ip_address(address.strip("[]")).is_unspecified
        except ValueError:
            return ""
        return address if self.is_kubernetes and uses_it and is_one else ""

    def local_directories(self) -> str:
        """Spark's local directories on this host, separated by commas."""
        return (
            os.environ.get("SPARK_LOCAL_DIRS") or self._conf.get("spark.local.dir") or tempfile.gettempdir()
        )

    def choose_python(self) -> None:
        """Let executors run the configured interpreter; by default, if everything is on this host, this one.

        PySpark takes `spark.pyspark.python` from spark-submit only, not from a session's builder.
        """
        if "PYSPARK_PYTHON" in os.environ:
            return
        asked_for = self._conf.get("spark.pyspark.python")
        if asked_for or self.is_one_host:
            self._context.pythonExec = asked_for or sys.executable


@contextmanager
def _asking_for_an_executor(context: SparkContext) -> Iterator[None]:
    """Run a small job that waits for an executor, so that dynamic allocation starts one."""
    tag = f"wallaby-executor-{uuid.uuid4().hex[:12]}"

    def ask() -> None:
        try:
            context.addJobTag(tag)
            context.setLocalProperty("spark.job.description", "Wallaby waits for an executor")
            context.parallelize([0], 1).count()
        except (Py4JError, PySparkException, OSError, AttributeError) as error:
            _log.debug("no executor came for the job that asked for one: %s", type(error).__name__)

    asking = threading.Thread(target=ask, name="wallaby-executor", daemon=True)
    asking.start()
    try:
        yield
    finally:
        context.cancelJobsWithTag(tag)
        asking.join(ASK_END_SECONDS)
