"""The status of an engine: its queries, its TaskManagers, and the live page about both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape

from pyspark.sql import SparkSession

from wallaby.config.settings import Settings
from wallaby.engine_parts import EngineParts
from wallaby.errors import InvalidArgumentError
from wallaby.lineage.names import WorkerId
from wallaby.results.record import QueryHistory
from wallaby.results.worker_info import WorkerInfo, worker_info
from wallaby.spark.cluster import Cluster
from wallaby.spark.live_tab import LiveTab
from wallaby.ui.engine_source import EngineSource
from wallaby.ui.live_page import LivePage, in_notebook


class EngineStatus(ABC):
    """The methods of `Engine` that report its status."""

    spark: SparkSession
    settings: Settings
    _parts: EngineParts
    _page: LivePage | None = None
    _tab: LiveTab | None = None

    @abstractmethod
    def _require_open(self) -> None:
        """Refuse if the engine is closed."""

    @property
    def ui(self) -> LivePage:
        """The live page: queries while they run, TaskManagers, losses. It prints as a link that carries its token.

        The first use starts it, if the setting `spark.wallaby.ui.enabled` has not; queries are observed from then on.
        It listens on 127.0.0.1 only.

        Example:
            >>> engine.ui
            http://127.0.0.1:41235/x8Wk…/?token=…

        Raises:
            AttachError: the engine is closed.
            ConfigurationError: the port of `spark.wallaby.ui.port` is taken.
        """
        self._require_open()
        if self._page is None:
            self._page = LivePage(self._source(), self.settings.ui_port)
            self._tab = LiveTab(self.spark.sparkContext, self._page.address)
            self._parts.runner.is_watched = True
        return self._page

    def _source(self) -> EngineSource:
        """What the live page shows."""
        parts = self._parts
        return EngineSource(
            f"Wallaby on {parts.application}",
            self.settings.fault_tolerance_policy,
            parts.recording,
            lambda: parts.gcs,
            lambda: parts.deployment.size.memory_bytes,
            lambda: list(parts.subplans.kept),
        )

    def _wants_page(self) -> bool:
        """Does the page start with the engine? By default in notebooks on one machine."""
        if self.settings.ui_enabled == "auto":
            return in_notebook() and Cluster(self.spark.sparkContext).is_local
        return self.settings.ui_enabled == "true"

    def _close_page(self) -> None:
        if self._page is not None and self._tab is not None:
            self._tab.remove()
            self._page.close()
            self._page = self._tab = None

    def _repr_html_(self) -> str:
        page = "" if self._page is None else f" · {self._page._repr_html_()}"
        return f"<p>{escape(repr(self))}{page}</p>"

    def history(self) -> QueryHistory:
        """List the queries of this engine, oldest first: what they were, where they ran and why, and how long.

        It has the queries that went through the engine, and Spark's own queries if parts of them ran in the
        TaskManagers; the latest thousand. A notebook shows it as a table.

        Example:
            >>> engine.history()
            1. native: 5 rows in 412 ms: select o_orderpriority, count(*) from orders group by 1
            2. Spark: 1 row in 88 ms (Sin(x#3): the last bit of Java's result …): select sin(x) from t
            >>> engine.history()[-1].findings
        """
        return self._parts.recording.history()

    def workers(self) -> list[WorkerInfo]:
        """List every TaskManager: its id, host, process, address and state.

        Raises:
            AttachError: the engine is closed.

        Example:
            >>> engine.workers()
            [WorkerInfo(id='w0-3fa1', host='node7', pid=4711, address='grpc://10.0.0.7:43121', state='live')]
        """
        self._require_open()
        return [worker_info(lease) for lease in self._parts.gcs.workers()]

    def drain(self, worker: str | WorkerInfo, timeout: float = 60.0) -> bool:
        """Move a TaskManager's work to others while it still serves its outputs, then end it.

        This is cheaper than a loss: outputs that others still need are not computed again. Spark starts another
        TaskManager in its place.

        Args:
            worker: One of `workers()`, or its id.
            timeout: How many seconds to wait for its end.

        Returns:
            False if it has not ended in time, for example because no other can take over its work. It then gets no new
            queries, and leaves when it can.

        Raises:
            InvalidArgumentError: there is no such TaskManager, or the timeout is negative.
            AttachError: the engine is closed.

        Example:
            >>> engine.drain(engine.workers()[0])
            True
        """
        self._require_open()
        known = WorkerId(worker.id if isinstance(worker, WorkerInfo) else worker)
        if known not in {lease.worker for lease in self._parts.gcs.workers()}:
            raise InvalidArgumentError(
                f"There is no TaskManager {known}.", fix="engine.workers() lists them."
            )
        if timeout < 0:
            raise InvalidArgumentError(f"The timeout {timeout} is negative.", fix="Give seconds to wait.")
        return self._parts.head.drain(known, timeout)
