"""Which worker must complain about which, and what the store must hold: computed from the pushes and calls.

A worker that has pushed one output to another several times in a row, within one epoch, without an answer must complain
at once, whatever else has passed that wire. It withdraws a complaint once there is no reason for it. The age of a
complaint is the time from its first report to its latest, and it expires if nobody renews it. All of this is computed
independently of the code that is judged.
"""

from __future__ import annotations

from typing import Any

from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.effects import Await, Push, PushReply
from wallaby.lineage.names import HEAD, Edge, QueryId, TaskName, WorkerId
from wallaby.node.actors import ActorKind
from wallaby.node.effects import Complain
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.process import SimulatedActor

#: Unanswered pushes of one output before a complaint is due.
PUSHES = 3

_Item = tuple[WorkerId, Edge, TaskName]


class Complaining:
    """Unanswered pushes by worker, and the complaints in the store."""

    def __init__(self, lasts_ms: int) -> None:
        self._lasts_ms = lasts_ms
        #: Per worker and query: the epoch of the counts, and the unanswered pushes of each output.
        self._unanswered: dict[tuple[WorkerId, QueryId], tuple[int, dict[_Item, int]]] = {}
        #: Deliveries that have reported on their target since they last waited.
        self._spoke: set[SimulatedActor] = set()
        #: When each of them last reported that its target can be reached.
        self._taken_back: dict[SimulatedActor, int] = {}
        #: By accused, reporter and query: the first report of a complaint and the latest.
        self._standing: dict[tuple[WorkerId, WorkerId, QueryId], tuple[int, int]] = {}

    # --- at workers ----------------------------------------------------------------------------------

    def yields(self, actor: SimulatedActor, effect: Any, now_ms: int) -> None:
        """A generator requests an effect: check that it is the complaint, if one is due."""
        answered, actor.answered = actor.answered, None
        if isinstance(effect, Complain):
            self._spoke.add(actor)
            if effect.reachable:
                self._taken_back[actor] = now_ms
        if answered is not None and self._must_complain(actor, *answered):
            if not isinstance(effect, Complain) or effect.reachable:
                raise InvariantViolation(
                    7, f"{actor.process.id} does not complain of {answered[0].target}, which does not answer"
                )
        elif isinstance(effect, Await) and actor.name.kind is ActorKind.DELIVERY:
            self._waits(actor, now_ms)

    def _must_complain(self, actor: SimulatedActor, push: Push, reply: PushReply | None) -> bool:
        assert actor.serving is not None
        epoch = actor.serving.session.context.epoch
        key = actor.process.id, actor.serving.query.id
        counted_in, counts = self._unanswered.get(key, (0, {}))
        if counted_in != epoch:
            counts = {}
            self._unanswered[key] = epoch, counts
        if reply is not None:
            sent = push.items[: len(reply.held)] if reply.accepted else push.items
            for edge, task in sent:
                counts.pop((push.target, edge, task), None)
            return False
        if push.epoch != epoch:
            return False
        for edge, task in push.items:
            item = push.target, edge, task
            counts[item] = counts.get(item, 0) + 1
        return max(counts[push.target, edge, task] for edge, task in push.items) >= PUSHES

    def _waits(self, actor: SimulatedActor, now_ms: int) -> None:
        """Check that a complaint without a reason is withdrawn before its author waits."""
        assert actor.serving is not None
        target = WorkerId(str(actor.name.of))
        reaching = actor.serving.session.reaching
        spoke = actor in self._spoke
        self._spoke.discard(actor)
        if spoke or reaching.is_out_of_reach(target):
            return
        accused = actor.process.id if target == HEAD else target
        standing = self._standing.get((accused, actor.process.id, actor.serving.query.id))
        stands = standing is not None and standing[1] <= self._taken_back.get(actor, -1)
        if target in reaching.accused or (
            stands and standing is not None and now_ms <= standing[1] + self._lasts_ms
        ):
            raise InvariantViolation(8, f"{actor.process.id} still complains of {target}, without a reason")

    # --- in the store --------------------------------------------------------------------------------

    def said(
        self, reporter: WorkerId, accused: WorkerId, query: QueryId, reachable: bool, now_ms: int
    ) -> None:
        """The store has accepted a report."""
        since_ms, latest_ms = self._standing.pop((accused, reporter, query), (now_ms, now_ms))
        if not reachable:
            if latest_ms + self._lasts_ms < now_ms:
                since_ms = now_ms
            self._standing[accused, reporter, query] = since_ms, now_ms

    def expelled(self, worker: WorkerId) -> None:
        """A worker was expelled: forget the complaints by it and about it."""
        self._standing = {key: each for key, each in self._standing.items() if worker not in key[:2]}

    def check(self, leases: tuple[WorkerLease, ...], now_ms: int) -> None:
        """Check that the coordinator gets every present complaint with its age, and no other."""
        expected: dict[WorkerId, dict[WorkerId, int]] = {lease.worker: {} for lease in leases}
        for (accused, reporter, _), (since_ms, latest_ms) in self._standing.items():
            if latest_ms + self._lasts_ms >= now_ms and accused in expected:
                lasted = expected[accused]
                lasted[reporter] = max(latest_ms - since_ms, lasted.get(reporter, 0))
        for lease in leases:
            if dict(lease.complaints) != expected[lease.worker]:
                raise InvariantViolation(
                    8, f"the store tells of {lease.worker} {lease.complaints}, not {expected[lease.worker]}"
                )
