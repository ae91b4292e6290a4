"""Judge a query's recoveries from outside: whether one is under way, and whether anyone waits too long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wallaby.coordinator.effects import AddMember
from wallaby.gcs.memory import MemoryGcs, StoredQuery
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.lineage.recoverable import recoverable
from wallaby.lineage.verdict import Verdict
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.invariants.smallest import SmallestRecovery
from wallaby_lab.simulation.drawn.faults import DISTURBS_CALLS, FaultKind
from wallaby_lab.simulation.world.world import World

#: How often a coordinator may look, with lost answers, at a query that is past its limit.
LOOKS_TOO_LATE_MAX = 10
#: Faults after which a coordinator may act on an old snapshot.
_DISTURBING = {*DISTURBS_CALLS, FaultKind.COORDINATOR_RESTART}
_REFUSALS = (Verdict.FROZEN, Verdict.STALE, Verdict.EXPELLED, Verdict.GONE)


def is_recovering(world: World, query: QueryId) -> bool:
    """Is an earlier recovery still under way: is the gate closed, or are channels being rewound?"""
    state = world.store.queries.get(query)
    if state is None:
        return False
    sessions = [p.worker_queries[query].session for p in world.live_workers() if query in p.worker_queries]
    retracing = any(t.retracing for s in sessions for t in s.runs.values())
    return not state.gate_open or retracing or bool(state.rereads or state.claims)


def check_patience(world: World, query: QueryId, *, without_worker: bool) -> None:
    """A query without a worker fails at its time limit, not later (invariant 7)."""
    running, now_ms = world.running[query], world.agenda.now_ms()
    if not without_worker:
        running.without_worker_since_ms, running.looks_too_late = None, 0
        return
    if running.without_worker_since_ms is None:
        running.without_worker_since_ms = now_ms
    limit_ms = world.scenario.coordinator.no_workers_ms
    running.looks_too_late += now_ms - running.without_worker_since_ms > limit_ms
    if running.looks_too_late > LOOKS_TOO_LATE_MAX:
        raise InvariantViolation(7, f"{query} waits for a worker beyond its limit of {limit_ms} ms")


def require_lost(world: World, query: QueryId, lost: tuple[WorkerId, ...]) -> None:
    """A query removes only workers that have been expelled, or that want to leave and are not needed (invariant 8)."""
    state = world.store.queries.get(query)
    _require_free(world, query, lost)
    for worker in lost if state is not None and not world.store_is_lost else ():
        if worker in world.store.workers and state is not None and state.members.get(worker) is False:
            raise InvariantViolation(8, f"{query} takes {worker} as lost, which nobody has expelled")


def joined(world: World, gcs: MemoryGcs, effect: AddMember) -> Verdict:
    """A worker that becomes a member is not one that the query has lost (invariant 6)."""
    verdict = gcs.join(effect.query, effect.worker)
    state = world.store.queries.get(effect.query)
    if verdict is Verdict.DONE and state is not None and effect.worker in state.departed:
        raise InvariantViolation(6, f"{effect.worker} joins {effect.query}, which has lost it")
    return verdict


def require_staying(world: World, effect: AddMember) -> None:
    """A worker that wants to leave is not given to a query that does not have it (invariant 8)."""
    if world.complaining.is_known_to_leave(effect.worker):
        raise InvariantViolation(8, f"{effect.worker} joins {effect.query}, and is about to leave")


def _require_free(world: World, query: QueryId, lost: tuple[WorkerId, ...]) -> None:
    """Check that a worker that asked to leave is let go only when nothing that it holds is needed."""
    running, state = world.running[query], world.store.queries.get(query)
    if state is None or world.store_is_lost or {kind for _, kind in world.tally.fired} & _DISTURBING:
        return
    leaving = [w for w in lost if w in world.store.workers and state.members.get(w) is True]
    found = world.head.gcs.snapshot(query) if leaving else None
    if found is None:
        return
    found = replace(found, draining=tuple(w for w in found.draining if w not in leaving))
    left = recoverable(running.query.tolerance, world.head.gcs.history(query))
    needed = SmallestRecovery(running.query.graph, found, left).emptied
    if kept := sorted(name for name in needed if found.channels[name].host in leaving):
        raise InvariantViolation(8, f"{leaving} may leave {query}, and {kept} have to be made again")


def is_refusal(answer: Any) -> bool:
    """Has the store refused an action, or one commit of a group, by a fence?"""
    if isinstance(answer, tuple):
        return any(map(is_refusal, answer[:1] if isinstance(answer[0], Verdict) else answer))
    return getattr(answer, "verdict", answer) in _REFUSALS


def require_closed(state: StoredQuery, channel: ChannelName) -> None:
    """After an early end, no upstream channel continues if all its consumers have ended (invariant 8)."""
    graph = state.graph
    above = {channel}
    for name in reversed(graph.channels):
        consumers = {graph.consumer(edge) for edge in graph.edges_from(name)}
        if consumers & above:
            above.add(name)
            if not state.channels[name].ended and all(state.channels[c].ended for c in consumers):
                raise InvariantViolation(8, f"{name} goes on, and all that it feeds has ended")
