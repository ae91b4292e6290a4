"""The port for tests and measurements: what happened in a real engine. Fault orders go in by `faults`.

`engine.inspection` makes one. Programs have no use for it, and its form may change with every version. The lab reaches
a running engine only by the engine's API and this port; `make check` fails if it touches a private name. Only two
methods change anything: `reroute` puts a proxy before a worker, and `watch_coordinator` registers a listener.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wallaby.gcs.embedded import EmbeddedRedis
from wallaby.gcs.interface import QueryStatus
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.node.worker_address import WorkerAddress
from wallaby.plan.physical import PhysicalPlan
from wallaby.results.result import Result
from wallaby.spark.deployment import Deployment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Inspection:
    """The present deployment of an engine, and how the engine plans. A later deployment needs another inspection."""

    _deployment: Deployment
    _plan: Callable[[DataFrame], PhysicalPlan | None]

    # --- queries -------------------------------------------------------------------------------------

    def plan(self, df: DataFrame) -> PhysicalPlan | None:
        """Plan a query without running it; None if Spark would run it."""
        return self._plan(df)

    def query_of(self, result: Result) -> QueryId:
        """The present run of a result's query; another one if the query was restarted."""
        return result._collected.query

    def status(self, query: QueryId) -> QueryStatus:
        """How a query stands in the control store."""
        return self._deployment.gcs.status(query)

    def await_removed(self, result: Result, seconds: float) -> bool:
        """Wait until nothing is left of a result's query in the control store; False if that takes longer."""
        return result._collected.removed.wait(seconds)

    def queries_in_store(self) -> tuple[QueryId, ...]:
        """The queries that the control store holds."""
        return self._deployment.gcs.queries()

    def queries_at_head(self) -> tuple[QueryId, ...]:
        """The queries that the driver holds."""
        return self._deployment.head.queries()

    def watch_coordinator(self, listener: Callable[[Any, Any], None]) -> Callable[[], None]:
        """Call `listener` with every effect of the coordinator and its answer; returns a function that ends it."""
        return self._deployment.head.observer.watch(listener)

    # --- the control store ---------------------------------------------------------------------------

    @property
    def embedded_store(self) -> EmbeddedRedis | None:
        """The Redis that the driver started; None if the user gave an address."""
        return self._deployment.embedded_store

    def count_keys(self) -> int:
        """The number of Wallaby's keys in the control store, of all engines."""
        return self._deployment.gcs.count_keys()

    def reroute(self, worker: WorkerId, by: Callable[[WorkerAddress], WorkerAddress]) -> None:
        """Replace a worker's address, for all workers that have not read it yet. The driver keeps the real one."""
        self._deployment.head.directory.address_of(worker)
        self._deployment.gcs.replace_address(
            worker, lambda address: by(WorkerAddress.decode(address)).encode()
        )
