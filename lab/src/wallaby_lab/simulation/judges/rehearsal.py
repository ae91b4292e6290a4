"""Rehearse losses: what plan would be made if this worker were lost now?

A plan is a pure function of a snapshot, and a worker may be lost at any moment. So plans can be judged for many more
losses than a run has: most of all while re-reads are waiting, because a real second loss seldom comes just then. The
store is not touched.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from wallaby.gcs.memory import MemoryGcs
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.recoverable import recoverable
from wallaby_lab.simulation.world.running import Running

#: The share of changes of the store after which a loss is rehearsed: always, and while re-reads are waiting.
SHARE, SHARE_REREADING = 0.004, 0.15


class Rehearsal:
    """Losses that do not happen; their choice comes from a generator of its own."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"rehearsal {seed}")

    def maybe(self, gcs: MemoryGcs, running: Running) -> None:
        """The store has changed: perhaps judge the plan for another loss."""
        state = gcs.server.queries.get(running.query.id)
        if state is None or not state.gate_open or len(state.members) < 2:
            return
        rereading = bool(state.rereads or state.claims)
        if self._random.random() >= (SHARE_REREADING if rereading else SHARE):
            return
        before = gcs.snapshot(running.query.id)
        assert before is not None
        lost = self._random.choice(sorted(state.members))
        members = tuple(worker for worker in before.members if worker != lost)
        if not members:
            return
        frozen = replace(
            before,
            epoch=before.epoch + 1,
            gate_open=False,
            members=members,
            draining=tuple(worker for worker in before.draining if worker != lost),
            departed={**before.departed, lost: state.members[lost]},
        )
        left = recoverable(running.query.tolerance, gcs.history(running.query.id))
        running.audit.planned(frozen, reconcile(running.query.graph, frozen, left), left)
