"""Who is missing in leases that are older than the status may just have come; only younger ones can tell."""

from __future__ import annotations

from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings
from wallaby.coordinator.effects import Freeze, Watch
from wallaby.coordinator.query import Query
from wallaby.gcs.interface import QueryStatus, WorkerLease
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.verdict import Verdict

A, B = WorkerId("a"), WorkerId("b")
GRAPH = StageGraph((Stage(StageKind.READ, 1, 1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
STATUS = QueryStatus(Verdict.DONE, epoch=1, gate_open=True, members=(A, B))
OLD = (WorkerLease(A, "here", 100),)


def asked_for_younger_leases(younger: tuple[WorkerLease, ...]) -> object:
    """What the coordinator does after it has read the leases once more: an effect, or None if nothing."""
    query = Query(QueryId("q"), GRAPH)
    coordinator = Coordinator(CoordinatorSettings(), {query.id: query}, lambda: 0)
    effects = coordinator._tend_members(query, STATUS, OLD)
    assert isinstance(next(effects), Watch)
    try:
        return effects.send(younger)
    except StopIteration:
        return None


def test_a_worker_that_came_after_the_leases_were_read_is_not_lost() -> None:
    assert asked_for_younger_leases((*OLD, WorkerLease(B, "there", 100))) is None


def test_a_worker_that_is_missing_in_younger_leases_is_lost() -> None:
    effect = asked_for_younger_leases(OLD)
    assert isinstance(effect, Freeze)
    assert effect.lost == (B,)
