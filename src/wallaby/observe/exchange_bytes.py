"""Compute how many bytes a query's stages exchanged, from the output of each stage.

Rows that pass through, channel by channel, stay where they are and do not count; a broadcast counts once for each
worker, because the channels of one worker share it. The result, on its way to the client, is no exchange. Like Spark's
shuffle bytes, these include what was exchanged within one machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.lineage.graph import Link, Routing, StageGraph, StageKind
from wallaby.observe.event_batch import StageTotals


def exchanged_bytes(graph: StageGraph, stages: Sequence[StageTotals], workers: int) -> int:
    """The bytes that went over all links between stages, as Arrow data in memory."""
    return sum(
        stages[link.producer].bytes * _copies(graph, link, workers)
        for link in graph.links
        if graph.stages[link.consumer].kind not in (StageKind.COLLECT, StageKind.KEEP)
    )


def _copies(graph: StageGraph, link: Link, workers: int) -> int:
    match link.routing:
        case Routing.HASH:
            return 1
        case Routing.BROADCAST:
            return min(workers, graph.stages[link.consumer].channels)
        case Routing.PASS_THROUGH:
            return 0
