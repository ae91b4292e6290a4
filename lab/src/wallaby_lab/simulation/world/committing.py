"""Group commits in the simulated world: a worker's commits of about the same time share one call.

A group has one query, one epoch and one outcome: it reaches the store as a whole or not at all, and so does the answer.
`interleavings` tests the real code that makes groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaby.gcs.interface import CommitReply, Verdict
from wallaby.lineage.effects import CommitTask
from wallaby.lineage.lineage import key_of
from wallaby.lineage.names import QueryId, WorkerId
from wallaby_lab.invariants.audit import InvariantViolation, decoded
from wallaby_lab.simulation.world.process import SimulatedActor
from wallaby_lab.simulation.world.world import World

_Group = list[tuple[SimulatedActor, CommitTask]]
_Key = tuple[WorkerId, QueryId, int]


class GroupTicket:
    """One request for several actors: each gets its own part of the answer."""

    def __init__(self, world: World, group: _Group) -> None:
        self._world = world
        self._group = group
        self._settled = False

    @property
    def actor(self) -> SimulatedActor:
        """One of the requesting actors."""
        return self._group[0][0]

    def settle(self, value: Any) -> None:
        """Answer all actors, unless that has been done."""
        if self._settled:
            return
        self._settled = True
        for at, (actor, effect) in enumerate(self._group):
            self._world.answer(actor, effect, value[at] if isinstance(value, tuple) else value)


class GroupCommits:
    """Collects commits for a short while, and sends them."""

    def __init__(self, world: World, send: Callable[[GroupTicket, _Group], None]) -> None:
        self._world = world
        self._send = send
        self._waiting: dict[_Key, _Group] = {}

    def add(self, actor: SimulatedActor, effect: CommitTask) -> None:
        """Add a commit to the group of its worker, query and epoch that has not been sent yet."""
        assert actor.worker_query is not None
        key = (actor.process.id, actor.worker_query.query.id, effect.epoch)
        if key in self._waiting:
            self._waiting[key].append((actor, effect))
            return
        self._waiting[key] = [(actor, effect)]
        longest_us = 4_000 if self._world.random.random() < 0.3 else 200
        self._world.agenda.after(self._world.soon_us(0, longest_us, actor.process), self._leave, key)

    def _leave(self, key: _Key) -> None:
        process = self._world.processes[key[0]]
        wait_us = process.paused_until_us - self._world.agenda.now_us
        if process.alive and wait_us > 0:
            self._world.agenda.after(wait_us, self._leave, key)
            return
        group = self._waiting.pop(key)
        if process.alive:
            self._send(GroupTicket(self._world, group), group)


def note_commits(
    world: World, query: QueryId, worker: WorkerId, group: _Group, replies: tuple[CommitReply, ...]
) -> None:
    """Count the accepted commits of a group, and compare each record with what was executed."""
    running, state = world.running[query], world.store.queries.get(query)
    world.tally.commits_together += len(group) > 1
    for (_, effect), reply in zip(group, replies, strict=True):
        if reply.verdict is Verdict.DONE:
            if state is not None and state.channels[effect.task.of].since_epoch != effect.since_epoch:
                raise InvariantViolation(6, f"an attempt of an old run of {effect.task.of} is committed")
            world.tally.commits += 1
            world.tally.lineage_bytes += len(effect.record)
            saved = bool(running.saved) and (effect.task, key_of(decoded(effect.record))) in running.saved
            output = running.scrutiny.committed(worker, effect, saved)
            running.audit.committing(effect.task, output, final=effect.final)
