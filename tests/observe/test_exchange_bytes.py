"""What counts as exchanged: hashed rows once, broadcast rows per worker, rows that stay and the result not at all."""

from __future__ import annotations

from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.observe.event_batch import StageTotals
from wallaby.observe.exchange_bytes import exchanged_bytes

GRAPH = StageGraph(
    (
        Stage(StageKind.READ, 1, 1),
        Stage(StageKind.READ, 4, 9),
        Stage(StageKind.EXECUTE, 4),
        Stage(StageKind.EXECUTE, 4),
        Stage(StageKind.COLLECT, 1),
    ),
    (
        Link(0, 1, LinkKind.SIDE, routing=Routing.BROADCAST),
        Link(1, 2),
        Link(2, 3, routing=Routing.PASS_THROUGH),
        Link(1, 3),
        Link(3, 4),
    ),
)
TOTALS = tuple(StageTotals(bytes=each) for each in (1, 10, 100, 1000, 0))


def test_each_link_counts_by_its_routing() -> None:
    assert exchanged_bytes(GRAPH, TOTALS, workers=2) == 2 * 1 + 10 + 0 + 10


def test_a_broadcast_goes_to_no_more_workers_than_there_are_channels() -> None:
    assert exchanged_bytes(GRAPH, TOTALS, workers=9) == 4 * 1 + 10 + 0 + 10
