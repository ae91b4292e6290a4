"""What workers are told of a query: its plan, with the settings that shape its execution and what memory allows."""

from __future__ import annotations

from wallaby.config.settings import Settings
from wallaby.config.values import static_outputs
from wallaby.lineage.tolerance import Tolerance
from wallaby.node.payload import QueryPayload
from wallaby.plan.physical import PhysicalPlan
from wallaby.tables.file_systems import storages_of
from wallaby.worker.memory.shares import MemoryShares


def payload_of(
    physical: PhysicalPlan,
    settings: Settings,
    shares: MemoryShares,
    workers: int,
    tolerance: Tolerance,
    *,
    observed: bool,
) -> QueryPayload:
    """The payload of a plan for so many TaskManagers, each of which has these shares of memory."""
    return QueryPayload(
        physical,
        _window_bytes(physical, settings, shares, workers),
        min(settings.task_target, shares.task_bytes),
        shares.kernel_bytes,
        observed=observed,
        tolerance=tolerance,
        static_outputs=static_outputs(settings.execution_dependencies),
        several=settings.execution_draw == "several",
        storages=storages_of(physical.fragments),
    )


def _window_bytes(physical: PhysicalPlan, settings: Settings, shares: MemoryShares, workers: int) -> int:
    """The setting, or less where all the windows of a TaskManager would be more than their share of memory."""
    edges = sum(len(physical.graph.edges_from(channel)) for channel in physical.graph.channels)
    return min(settings.window, shares.window_bytes(-(-edges // workers)))
