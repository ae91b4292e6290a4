"""Make the payload of a query for the workers: its plan, and the settings and memory limits of its execution."""

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
    """The payload of a plan for a number of TaskManagers, each with these shares of memory."""
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
    """The setting, or less if all windows of a TaskManager would exceed their share of memory."""
    edges = sum(len(physical.graph.edges_from(channel)) for channel in physical.graph.channels)
    return min(settings.window, shares.window_bytes(-(-edges // workers)))
