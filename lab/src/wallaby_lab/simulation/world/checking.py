"""Check all invariants after a step; what has not changed since the last time still holds."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from wallaby.gcs.memory import StoredQuery
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby_lab.invariants.sighting import WorkerState
from wallaby_lab.simulation.world.running import BackedUp, Running

if TYPE_CHECKING:
    from wallaby_lab.simulation.world.world import World


def check_queries(world: World) -> None:
    """Check all queries of a world."""
    queries = world.store.queries
    for query_id, running in world.running.items():
        state = queries.get(query_id)
        if state is None:
            continue
        is_same = state.version == running.checked_version
        if (is_same and not running.changed and not running.arrived_at) or world.store_is_lost:
            continue
        if state.version != running.checked_version:
            running.checked_version = state.version
            running.changed = True
            running.audit.check_store(state)
            world.rehearsal.maybe(world.head.gcs, running)
        if running.changed or running.arrived_at:
            _check_workers(world, query_id, running, state)


def _check_workers(world: World, query_id: QueryId, running: Running, state: StoredQuery) -> None:
    """Check what workers hold: all of it, or what concerns those at which something has arrived."""
    only = None if running.changed else frozenset(running.arrived_at)
    running.changed = False
    running.arrived_at.clear()
    workers = _worker_states(world, query_id)
    for worker, seen in workers.items():
        if only is None or worker in only:
            running.audit.check_worker(state, worker, seen)
            running.scrutiny.check_worker(state, world.processes[worker].worker_queries[query_id].session)
    running.audit.check_reachable(state, workers, only)


def _worker_states(world: World, query_id: QueryId) -> dict[WorkerId, WorkerState]:
    states = {}
    for worker, process in world.processes.items():
        if process.alive:
            worker_query = process.worker_queries.get(query_id)
            if worker_query is not None:
                session = worker_query.session
                backups: Container[TaskName] = worker_query.backups
                if worker_query.query.tolerance.durable:
                    backups = BackedUp(worker_query.backups, world.running[query_id].spooled_tasks)
                states[worker] = WorkerState(
                    session.context.epoch,
                    session.runs,
                    session.context.outbox,
                    backups,
                    worker_query.given_up,
                )
    return states
