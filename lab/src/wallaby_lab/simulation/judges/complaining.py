"""Which worker must complain about which, and what the store must hold: computed from the pushes and calls.

A worker that has pushed one output to another several times in a row, within one epoch, without an answer must complain
at once, whatever else has passed that wire. It withdraws a complaint once there is no reason for it. The age of a
complaint is the time from its first report to its latest, and it expires if nobody renews it. All of this is computed
independently of the code that is judged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
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
        #: Per worker and query: whom it accuses and has not excused.
        self._accused: dict[tuple[WorkerId, QueryId], set[WorkerId]] = {}
        #: Deliveries that have reported on their target since they last waited.
        self._spoke: set[SimulatedActor] = set()
        #: When each of them last reported that its target can be reached.
        self._taken_back: dict[SimulatedActor, int] = {}
        #: By accused, reporter and query: the first report of a complaint and the latest.
        self._standing: dict[tuple[WorkerId, WorkerId, QueryId], tuple[int, int]] = {}
        #: What the coordinator was told of complaints when it last looked, the latest last.
        self._told: deque[tuple[WorkerLease, ...]] = deque(maxlen=4)

    # --- at workers ----------------------------------------------------------------------------------

    def yields(self, actor: SimulatedActor, effect: Any, now: Callable[[], int]) -> None:
        """A generator requests an effect: check that it is the complaint, if one is due."""
        answered, kind = actor.answered, type(effect)
        if answered is None and kind is not Complain and kind is not Await:
            return  # as most often: nothing was answered, and nothing is said
        now_ms, actor.answered = now(), None
        self._count(actor, answered)
        self._judge(actor, answered, effect)
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

    def answers(self, actor: SimulatedActor, asked: Complain, taken: Any) -> None:
        """A complaint, or a withdrawal, is answered; None: it is not, and the withdrawal has to be repeated."""
        key, target = _key_of(actor), _target(actor, asked)
        out_of_reach = self._counts_now(actor) and self._is_out_of_reach(key, target)
        if asked.reachable and taken is not None and not out_of_reach:
            self._accused.get(key, set()).discard(target)

    def _counts_now(self, actor: SimulatedActor) -> bool:
        """Are the counts those of the present epoch, in which nothing may have been pushed yet?"""
        counted_in, _ = self._unanswered.get(_key_of(actor), (0, {}))
        return actor.worker_query is not None and actor.worker_query.session.context.epoch == counted_in

    def _count(self, actor: SimulatedActor, answered: tuple[Push, Any] | None) -> None:
        """Count an unanswered push, or an answer; those of an epoch that has ended say nothing."""
        if actor.worker_query is None or answered is None:
            return
        push, reply = answered
        epoch, key = actor.worker_query.session.context.epoch, _key_of(actor)
        counted_in, counts = self._unanswered.get(key, (0, {}))
        if counted_in != epoch:
            counts = {}
            self._unanswered[key] = epoch, counts
        if push.epoch != epoch:
            return
        sent = push.items if reply is None or not reply.accepted else push.items[: len(reply.held)]
        for edge, task in sent:
            item = push.target, edge, task
            if reply is None:
                counts[item] = counts.get(item, 0) + 1
            else:
                counts.pop(item, None)

    def _is_out_of_reach(self, key: tuple[WorkerId, QueryId], target: WorkerId) -> bool:
        _, counts = self._unanswered.get(key, (0, {}))
        return any(count >= PUSHES for (to, _, _), count in counts.items() if to == target)

    def _judge(self, actor: SimulatedActor, answered: tuple[Push, Any] | None, effect: Any) -> None:
        """A complaint needs a reason, and an answer that takes the last reason away is followed by its withdrawal."""
        if actor.worker_query is None:
            return
        key = _key_of(actor)
        if isinstance(effect, Complain) and not effect.reachable:
            target = _target(actor, effect)
            self._accused.setdefault(key, set()).add(target)
            if not self._is_out_of_reach(key, target):
                raise InvariantViolation(8, f"{actor.process.id} complains of {target}, which has answered")
        if answered is None or answered[1] is None or answered[0].epoch != self._unanswered[key][0]:
            return
        target = answered[0].target
        excused = target in self._accused.get(key, ()) and not self._is_out_of_reach(key, target)
        if excused and not (isinstance(effect, Complain) and effect.reachable):
            raise InvariantViolation(8, f"{actor.process.id} does not take its complaint of {target} back")

    def _must_complain(self, actor: SimulatedActor, push: Push, reply: PushReply | None) -> bool:
        epoch, counts = self._unanswered[_key_of(actor)]
        if reply is not None or push.epoch != epoch:
            return False
        return max(counts[push.target, edge, task] for edge, task in push.items) >= PUSHES

    def _waits(self, actor: SimulatedActor, now_ms: int) -> None:
        """Check that a complaint without a reason is withdrawn before its author waits."""
        assert actor.worker_query is not None
        target = WorkerId(str(actor.name.of))
        reaching = actor.worker_query.session.reaching
        spoke = actor in self._spoke
        self._spoke.discard(actor)
        if spoke or reaching.is_out_of_reach(target):
            return
        accused = actor.process.id if target == HEAD else target
        standing = self._standing.get((accused, actor.process.id, actor.worker_query.query.id))
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

    def is_known_to_leave(self, worker: WorkerId) -> bool:
        """Has the coordinator been told, each of the last times that it looked, that a worker wants to leave?"""
        told = [lease.draining for leases in self._told for lease in leases if lease.worker == worker]
        return len(told) == self._told.maxlen and all(told)

    def require_most_wires(
        self, worker: WorkerId, live: Container[WorkerId], lease_ms: int, unreachable_ms: int
    ) -> None:
        """Check that nobody else is at the end of more reported wires than a worker that is expelled for one.

        Workers that are gone, or did not renew their leases, are expelled for that, and do not count.
        """
        told = [
            [
                each
                for each in leases
                if each.worker == worker or (each.worker in live and 0 < each.remaining_ms <= lease_ms)
            ]
            for leases in self._told
        ]
        if told and not any(_has_most_wires(worker, leases, unreachable_ms) for leases in told):
            raise InvariantViolation(8, f"{worker} is given up, and others are at the end of more wires")

    def accuses_itself_alone(self, worker: WorkerId, unreachable_ms: int) -> bool:
        """Is there no old complaint of a wire between a worker and another worker?"""
        told = [
            (lease.worker, reporter)
            for leases in self._told
            for lease in leases
            for reporter, lasted_ms in lease.complaints
            if lasted_ms >= unreachable_ms
        ]
        return not any(accused != reporter and worker in (accused, reporter) for accused, reporter in told)

    def check(self, leases: tuple[WorkerLease, ...], now_ms: int) -> None:
        """Check that the coordinator gets every present complaint with its age, and no other."""
        self._told.append(leases)
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


def _key_of(actor: SimulatedActor) -> tuple[WorkerId, QueryId]:
    assert actor.worker_query is not None
    return actor.process.id, actor.worker_query.query.id


def _target(actor: SimulatedActor, effect: Complain) -> WorkerId:
    """Whom a complaint is about: a worker that does not reach the head accuses itself."""
    return HEAD if effect.accused == actor.process.id else effect.accused


def _has_most_wires(worker: WorkerId, leases: list[WorkerLease], unreachable_ms: int) -> bool:
    """Is no end of an old complaint at the end of more reported wires, or of as many and accused more often?"""
    live = {lease.worker for lease in leases}
    said = [
        (lease.worker, reporter, lasted_ms)
        for lease in leases
        for reporter, lasted_ms in lease.complaints
        if reporter in live
    ]

    def wires(of: WorkerId) -> int:
        return len({frozenset(each[:2]) for each in said if of in each[:2]})

    old = [tuple(ends) for *ends, lasted_ms in said if lasted_ms >= unreachable_ms and ends[0] != ends[1]]

    def rank(of: WorkerId) -> tuple[int, int]:
        return wires(of), sum(accused == of for accused, _ in old)

    return worker in live and all(rank(other) <= rank(worker) for ends in old for other in ends)
