"""What a user holds: an engine attached to a SparkSession. DataFrames in, rows out.

`attach` starts a control store and the head in this process and TaskManagers in Spark's executors; `close`
leaves nothing of them. A query that cannot be run exactly as Spark would run it is run by Spark, and
`fallback_reasons` says why.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import uuid
from types import TracebackType
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from wallaby.catalyst import read_plan, warm_up
from wallaby.config import PREFIX, Settings, read_settings
from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.errors import AttachError
from wallaby.exchange.backup import Backup
from wallaby.exchange.client import PeerClient, new_token
from wallaby.exchange.memory import ByteBudget
from wallaby.gcs.connection import connect
from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.redis import RedisGcs
from wallaby.head.head import Head
from wallaby.kernels.footer import scan_reason, table_statistics
from wallaby.kernels.sql import relation_reason
from wallaby.plan.explain import explain as explain_plan
from wallaby.plan.physical import PhysicalPlan, trees_of
from wallaby.plan.planner import plan
from wallaby.plan.reason import Reason
from wallaby.plan.relation import Relation, Scan, children_of
from wallaby.plan.settings import PlanSettings
from wallaby.plan.statistics import Statistics
from wallaby.plan.unplannable import unplannable
from wallaby.result import Result
from wallaby.spark.hosting import Hosting
from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.main import DataServer
from wallaby.worker.payload import QueryPayload
from wallaby.worker.place import Place

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, Row

_log = logging.getLogger(__name__)
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
LOOPBACK = "127.0.0.1"
STOP_SECONDS = 5.0
#: Of the memory that the host has left, what all TaskManagers together take by default.
MEMORY_SHARE = 0.5
#: Of a TaskManager's memory, what each of its kernels may take.
KERNEL_SHARE = 0.4

_attached: dict[str, Engine] = {}


def attach(spark: SparkSession, **settings: object) -> Engine:
    """Attach an engine to a session.

    Settings come from the session's `spark.wallaby.*` entries and from keywords (`workers=3`), which come first.

    Raises:
        AttachError: the session is a Spark Connect one, is stopped, has an engine already, or has no room.
        ConfigurationError: a setting is unknown or impossible.
    """
    _check_session(spark)
    application = spark.sparkContext.applicationId
    if application in _attached:
        raise AttachError(
            "An engine is attached to this session already.", fix="Use it, or close() it first."
        )
    configured = {k: v for k, v in spark.sparkContext.getConf().getAll() if k.startswith(PREFIX)}
    engine = Engine(spark, read_settings(configured, settings))
    _attached[application] = engine
    return engine


def _check_session(spark: object) -> None:
    if not isinstance(spark, SparkSession):
        connect_session = type(spark).__module__.startswith("pyspark.sql.connect")
        what = "a Spark Connect session, which hides its plans" if connect_session else type(spark).__name__
        raise AttachError(f"Cannot attach to {what}.", fix="Use a classic SparkSession, without remote().")
    if spark.sparkContext._jsc is None:  # noqa: SLF001 - PySpark has no public word for it
        raise AttachError("Cannot attach to a stopped session.", fix="Start a new SparkSession.")


class Engine:
    """An engine on one Spark application. Also a context manager."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark = spark
        self.settings = settings
        self._closed = False
        self._count, self._threads = _size(spark, settings)
        memory_bytes = settings.memory or int(psutil.virtual_memory().available * MEMORY_SHARE / self._count)
        self._kernel_bytes = int(memory_bytes * KERNEL_SHARE / self._threads)
        token = new_token()
        self._redis = None if settings.gcs_url else EmbeddedRedis()
        url = settings.gcs_url or (self._redis.url if self._redis else "")
        password = settings.gcs_password or (self._redis.password if self._redis else "")
        self._connection = connect(url, password=password)
        self._gcs = RedisGcs(self._connection)
        self._peers = PeerClient(token)
        lease_ms = int(settings.lease * 1000)
        self._head = Head(
            self._gcs,
            Backup(ByteBudget(1), (), 0, owner="head"),
            self._peers,
            self._peers.ping,
            CoordinatorSettings(
                lease_ms=lease_ms,
                no_workers_ms=int(settings.no_workers_timeout * 1000),
                task_worker_losses_max=settings.max_task_worker_losses,
            ),
        )
        self._server = DataServer(LOOPBACK, token, self._head.node)
        self._head.start()
        bootstrap = Bootstrap(
            engine=f"e-{uuid.uuid4().hex[:8]}",
            gcs_url=url,
            gcs_password=password,
            token=token,
            head_address=self._server.address,
            bind=LOOPBACK,
            threads=self._threads,
            memory_bytes=memory_bytes,
            lease_ms=lease_ms,
            local_directory=settings.local_directory,
        )
        _use_this_python(spark)
        tag = f"wallaby-{bootstrap.engine}"
        self._hosting = Hosting(spark.sparkContext, bootstrap, self._count, tag)
        self._hosting.start()
        try:
            warm_up(spark)
            self._wait_for_workers()
        except BaseException:
            self.close()
            raise

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + self.settings.attach_timeout
        while len(self._gcs.workers()) < self._count:
            if time.monotonic() > deadline:
                raise AttachError(
                    f"Only {len(self._gcs.workers())} of {self._count} TaskManagers came up in time.",
                    fix="Look at the executors' logs, or raise spark.wallaby.attachTimeout.",
                )
            time.sleep(0.01)

    # --- running -------------------------------------------------------------------------------------

    def run(self, df: DataFrame) -> Result:
        """Run a query; the result streams in."""
        physical, reasons = self._plan(df)
        arrow_schema = to_arrow_schema(df.schema)
        if physical is None:
            _log.info("on Spark: %s", "; ".join(str(reason) for reason in reasons))
            table = df.toArrow()
            return Result(df.schema, table.schema, iter(table.to_batches()), lambda: None, native=False)
        payload = QueryPayload(physical, self.settings.window, self.settings.task_target, self._kernel_bytes)
        collected = self._head.submit(physical, payload)
        timeout = self.settings.timeout or None
        batches = (_as(batch, arrow_schema) for batch in collected.batches(timeout))
        return Result(df.schema, arrow_schema, batches, collected.cancel, native=True)

    def _plan(self, df: DataFrame) -> tuple[PhysicalPlan | None, tuple[Reason, ...]]:
        self._require_open()
        read = read_plan(df)
        if read.relation is None:
            return None, read.reasons
        scans = _scans(read.relation)
        reasons = tuple(Reason(scan.label or "scan", why) for scan in scans if (why := scan_reason(scan)))
        if reasons:
            return None, reasons
        statistics = Statistics(tuple(table_statistics(scan, self.settings.split) for scan in scans))
        reasons = unplannable(read.relation, statistics)
        if reasons:
            return None, reasons
        channels = self.settings.channels or self._count * self._threads
        settings = PlanSettings(channels=channels, broadcast_bytes=self.settings.broadcast)
        physical = plan(read.relation, statistics, settings)
        reasons = tuple(
            Reason("a stage", why)
            for fragment in physical.fragments
            for tree in trees_of(fragment)
            if (why := relation_reason(tree))
        )
        return (None, reasons) if reasons else (physical, ())

    def to_arrow(self, df: DataFrame) -> pa.Table:
        """Exactly `df.toArrow()`."""
        return self.run(df).arrow()

    def collect(self, df: DataFrame) -> list[Row]:
        """Exactly `df.collect()`."""
        return self.run(df).rows()

    def to_pandas(self, df: DataFrame) -> pd.DataFrame:
        """Exactly `df.toPandas()`."""
        return self.run(df).pandas()

    def count(self, df: DataFrame) -> int:
        """Exactly `df.count()`."""
        return int(self.run(df.groupBy().count()).arrow().column(0)[0].as_py())

    def take(self, df: DataFrame, num: int) -> list[Row]:
        """Exactly `df.take(num)`."""
        return self.run(df.limit(num)).rows()

    def first(self, df: DataFrame) -> Row | None:
        """Exactly `df.first()`."""
        rows = self.take(df, 1)
        return rows[0] if rows else None

    def show(self, df: DataFrame, n: int = 20, truncate: bool | int = True) -> None:
        """Exactly `df.show()`."""
        table = self.run(df.limit(n + 1)).arrow()
        self.spark.createDataFrame(table, df.schema).show(n, truncate)

    # --- asking --------------------------------------------------------------------------------------

    def explain(self, df: DataFrame) -> str:
        """Stages, channels and exchanges; or what stays on Spark and why."""
        physical, reasons = self._plan(df)
        if physical is None:
            return "runs on Spark:\n" + "\n".join(f"  {reason}" for reason in reasons)
        return explain_plan(physical)

    def fallback_reasons(self, df: DataFrame) -> list[str]:
        """Why Spark would run this query; empty if the whole of it runs here."""
        return [str(reason) for reason in self._plan(df)[1]]

    def workers(self) -> list[dict[str, Any]]:
        """Id, host, pid, address and state of every TaskManager."""
        self._require_open()
        found = []
        for lease in self._gcs.workers():
            place = Place.decode(lease.address)
            state = "draining" if lease.draining else "live" if lease.remaining_ms > 0 else "silent"
            found.append(
                {"id": lease.worker, "host": place.host, "pid": place.pid, "address": place.endpoint, "state": state}
            )
        return found

    # --- ending --------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything that attach has started. Running queries are cancelled."""
        if self._closed:
            return
        self._closed = True
        _attached.pop(self.spark.sparkContext.applicationId, None)
        for lease in self._gcs.workers():
            self._gcs.expel(lease.worker)
            self._peers.ping(Place.decode(lease.address).endpoint, 0.5)
        self._hosting.stop(STOP_SECONDS)
        self._head.stop(STOP_SECONDS)
        self._server.close(STOP_SECONDS)
        self._peers.close()
        self._connection.close()
        if self._redis is not None:
            self._redis.stop()

    def _require_open(self) -> None:
        if self._closed:
            raise AttachError("This engine is closed.", fix="Attach again.")

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _use_this_python(spark: SparkSession) -> None:
    """Under a local master, let executors run this interpreter unless another was asked for."""
    context = spark.sparkContext
    configured = context.getConf().contains("spark.pyspark.python") or "PYSPARK_PYTHON" in os.environ
    if _LOCAL.fullmatch(context.master) and not configured:
        context.pythonExec = sys.executable


def _scans(relation: Relation) -> list[Scan]:
    if isinstance(relation, Scan):
        return [relation]
    return [scan for child in children_of(relation) for scan in _scans(child)]


def _size(spark: SparkSession, settings: Settings) -> tuple[int, int]:
    """How many TaskManagers, and how many threads each; refused if they would leave Spark no slot."""
    master = spark.sparkContext.master
    local = _LOCAL.fullmatch(master)
    cores = os.cpu_count() or 1
    if local is None:
        count = settings.workers or max(spark.sparkContext.defaultParallelism // 2, 1)
        return count, settings.threads or 1
    slots = 1 if local[1] is None else cores if local[1] == "*" else int(local[1])
    count = settings.workers or 1
    if slots <= count and not settings.exclusive:
        raise AttachError(
            f"{count} TaskManagers under {master} leave no slot for ordinary Spark jobs.",
            fix=f"Use local[{count + 1}] or more, or set spark.wallaby.exclusive=true.",
        )
    return count, settings.threads or max(cores // count, 1)


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch under the names and types that Spark gives the result."""
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)], schema=schema
    )
