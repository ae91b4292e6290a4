"""Queries that are rolled back: after a loss they go on, under another name, from their last complete snapshot."""

from __future__ import annotations

from wallaby.errors import WorkerLostError
from wallaby.lineage.names import QueryId
from wallaby_lab.simulation.world.running import Running
from wallaby_lab.simulation.world.world import World


def go_on(world: World) -> bool:
    """Let every query go on that a loss has ended since the last call. False: one of them has not begun again yet."""
    for running in list(world.running.values()):
        lost = isinstance(running.query.error, WorkerLostError)
        if lost and running.query.is_whole:  # the client has all rows
            running.query.error, lost = None, False
        if lost and running.query.ended and not running.superseded:
            _roll_back(world, running)
    return all(
        not running.superseded or _next_of(running) in world.running for running in world.running.values()
    )


def _roll_back(world: World, running: Running) -> None:
    if running.query.cancelled:
        running.query.error, running.cancelled = running.query.cancelled_error, True
        return
    running.superseded = True
    world.tally.rolled_back += 1
    world.tally.rolled_back_to_start += running.covered is None
    world.submit_run(_next_of(running), running.workload, running)


def _next_of(running: Running) -> QueryId:
    """The name of the run that takes the place of another."""
    name, _, number = running.query.id.partition("-")
    return QueryId(f"{name}-{int(number or 1) + 1}")
