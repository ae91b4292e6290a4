"""Judge every effect of one query, beyond the audit of the invariants.

The audit checks what is stored and held. The scrutiny checks what is *done*: every effect is judged when it is
requested, against what its channel holds at that moment. A record must say what was executed, including the order of
side inputs; a draw must be as large as the policy says; a channel that can continue must not wait; a slice may be
refused only for lack of room; what a worker believes the store to know must be in the store. It shares no code with
what it judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.choose import Dynamic, Static
from wallaby.lineage.effects import (
    Acknowledge,
    Await,
    CommitTask,
    Execute,
    FailPoint,
    Output,
    Push,
    PushReply,
    Slice,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.lineage import Draw, LineageRecord
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, Upstream, WorkerId
from wallaby.node.actors import ActorKind
from wallaby.node.effects import Complain
from wallaby.node.session import QuerySession, QuerySessionSettings
from wallaby_lab.invariants.audit import InvariantViolation, decoded
from wallaby_lab.invariants.sighting import StoreState
from wallaby_lab.simulation.world.process import SimulatedActor, SimulatedQuery, channel_run_of
from wallaby_lab.simulation.world.waiting import Arrived

#: The effects that are judged when they are requested.
JUDGED = frozenset({Execute, CommitTask, Acknowledge, Push, Await})
_REPEATED = (FailPoint.RETRACE, FailPoint.REREAD)
#: Side inputs that runs have given up; see `beside`.
GivenUp = Set[tuple[ChannelName, int, int]]


class Scrutiny:
    """Everything that was done for one query, and the checks of what is done next."""

    def __init__(self, graph: StageGraph, settings: QuerySessionSettings) -> None:
        self._graph = graph
        self._settings = settings
        self._policy = settings.policy
        self._reserve = settings.policy.outputs if isinstance(settings.policy, Static) else 1
        self._ran: dict[tuple[WorkerId, TaskName], tuple[Execute, Output]] = {}
        #: For committed tasks: the record, whether the task should be the last, and whether it left a rest.
        self._records: dict[TaskName, LineageRecord] = {}
        self._last: dict[TaskName, bool] = {}
        self._rest: dict[TaskName, bool] = {}

    # --- what is asked for ---------------------------------------------------------------------------

    def yields(self, actor: SimulatedActor, effect: Any, state: StoreState | None) -> None:
        """A generator of a session requests an effect."""
        assert actor.worker_query is not None
        session = actor.worker_query.session
        match effect:
            case Execute():
                self._executes(session, effect, eager=actor.eager)
            case CommitTask():
                self._reports(session, effect.task.of, dict(effect.delivered), effect.epoch)
            case Acknowledge():
                self._acknowledges(session, effect)
            case Push(point=FailPoint.DELIVER):
                self._delivers(session, effect, state)
            case Await():
                self._waits(actor, session, state)
            case _:
                pass

    def _waits(self, actor: SimulatedActor, session: QuerySession, state: StoreState | None) -> None:
        if actor.name.kind is ActorKind.DELIVERY:
            if state is not None and state.gate_open and state.epoch == session.context.epoch:
                self._delivery_waits(actor, session, state)
            return
        run = channel_run_of(actor, session)
        if run is None:
            return  # it was stopped, or is a re-read
        arrived = Arrived(self._graph, run, self._policy, staged=session.context.tolerance.staged)
        if run.retracing:
            record = self._records.get(TaskName(*run.channel, run.seq))
            could = record is not None and arrived.has_all_of(record)
        else:
            could = not run.closed and arrived.allows_a_task(eager=actor.eager)
        if could:
            raise InvariantViolation(5, f"{run.channel} waits although it could go on")

    # --- executing -----------------------------------------------------------------------------------

    def _executes(self, session: QuerySession, effect: Execute, *, eager: bool) -> None:
        task = effect.task
        self._check_sides(effect)
        drawn = [piece.edge.producer for piece in effect.inputs]
        named = [channel for channel, n in (effect.draw.counts if effect.draw else ()) for _ in range(n)]
        if drawn != named or any(p.edge.link != effect.draw.link for p in effect.inputs if effect.draw):
            raise InvariantViolation(1, f"{task} runs on inputs from {drawn} where it draws {effect.draw}")
        if effect.point in _REPEATED:
            self._check_repeated(effect)
            return
        before = TaskName(task.stage, task.channel, task.seq - 1)
        nothing = effect.draw is None and effect.split is None
        last = self._last[before] if self._rest.get(before) else nothing
        if effect.last != last or (self._rest.get(before) and not nothing):
            raise InvariantViolation(1, f"{task} runs as last={effect.last} where it is last={last}")
        run = session.runs.get(task.of)
        if run is not None and run.retracing:
            raise InvariantViolation(4, f"{task} is new, and its channel counts as one that retraces")
        if effect.draw is not None and run is not None:
            self._check_size(effect, effect.draw, run, eager=eager)
            if session.context.tolerance.staged:
                self._check_begun(task, run)

    def _check_begun(self, task: TaskName, run: ChannelRun) -> None:
        """Check that a channel of a staged query had something of every main input before it drew (invariant 1)."""
        for upstream, lane in run.inbox.lanes().items():
            if lane.windowed and not (lane.consumed or 0 in lane.held):
                raise InvariantViolation(1, f"{task} draws before anything of {upstream} has arrived")

    def _check_sides(self, effect: Execute) -> None:
        """Check that side inputs are complete, in the order of their links, and each in the order of its channels."""
        links = self._graph.sides(effect.task.stage)
        if list(effect.sides) != [link for link in links if link in effect.sides]:
            raise InvariantViolation(1, f"{effect.task} uses side inputs in the order {list(effect.sides)}")
        for link in links:
            if link not in effect.sides and self._graph.links[link].required:
                raise InvariantViolation(1, f"{effect.task} runs without its side input {link}")
        for link, pieces in effect.sides.items():
            found = [(piece.edge.producer, piece.task.seq) for piece in pieces]
            ends = {piece.edge.producer: piece.task.seq + 1 for piece in pieces if piece.final}
            producers = range(self._graph.stages[self._graph.links[link].producer].channels)
            if found != [(p, seq) for p in producers for seq in range(ends.get(p, 0))] or len(ends) < len(
                producers
            ):
                raise InvariantViolation(1, f"{effect.task} uses of side input {link} the outputs {found}")

    def _bits(self, effect: Execute) -> int:
        links = self._graph.sides(effect.task.stage)
        return sum(1 << at for at, link in enumerate(links) if link in effect.sides)

    def _check_repeated(self, effect: Execute) -> None:
        record = self._records.get(effect.task)
        said = (record.split, record.draw, record.sides) if record is not None else None
        if said != (effect.split, effect.draw, self._bits(effect)):
            raise InvariantViolation(4, f"{effect.task} is repeated on something else than {record}")
        if effect.last != self._last[effect.task]:
            raise InvariantViolation(4, f"{effect.task} is repeated as last={effect.last}")

    def _check_size(self, effect: Execute, draw: Draw, run: ChannelRun, *, eager: bool) -> None:
        """Check that a draw is as large as its policy says."""
        sizes = [piece.size_bytes for piece in effect.inputs]
        arrived = Arrived(self._graph, run, self._policy)
        pool = arrived.pool(draw) if self._policy.several else [u for u, _ in draw.upstreams]
        left = [arrived.ready(upstream) for upstream in pool]
        at_end = all(map(arrived.is_exhausted, pool))
        wrong = not self._policy.several and len(draw.counts) > 1
        match self._policy:
            case Static(outputs):
                wrong |= len(sizes) > outputs or (len(sizes) < outputs and not at_end)
            case Dynamic(target):
                total = sum(sizes)
                wrong |= total > target and len(sizes) > 1
                wrong |= any(ready and total + ready[0] <= target for ready in left)
                wrong |= total < target and not (eager or at_end or any(left))
        if wrong:
            raise InvariantViolation(
                1, f"{effect.task} draws {draw}, {sum(sizes)} bytes, against {self._policy}"
            )

    def made(self, worker: WorkerId, effect: Execute, output: Output) -> None:
        """A task was executed."""
        self._ran[worker, effect.task] = (effect, output)

    def committed(self, worker: WorkerId, effect: CommitTask, saved: object) -> Output:
        """A commit was applied: check its record against what was executed and saved. Returns its output."""
        record, task = decoded(effect.record), effect.task
        ran, output = self._ran[worker, task]
        final = (ran.last and not output.rest) or output.satisfied
        said = LineageRecord(output.checksum, ran.split, ran.draw, self._bits(ran), final, record.saved)
        if said != record or effect.final != final:
            raise InvariantViolation(2, f"{task} is committed as {record}, but it was {said}")
        if record.saved and (final or output.rest or self._graph.is_reader(task.stage) or not saved):
            raise InvariantViolation(2, f"the record of {task} says that a state was saved")
        self._records[task], self._last[task], self._rest[task] = record, ran.last, output.rest
        return output

    # --- delivering ----------------------------------------------------------------------------------

    def _reports(self, session: QuerySession, name: ChannelName, said: dict[Edge, int], epoch: int) -> None:
        """Check that a commit reports all deliveries of its channel that the store does not know yet."""
        unsaid = _unsaid(session, self._graph.edges_from(name))
        if said != unsaid or epoch != session.context.epoch:
            raise InvariantViolation(3, f"a commit of {name} says {said} of deliveries, not {unsaid}")

    def _acknowledges(self, session: QuerySession, effect: Acknowledge) -> None:
        ended = [name for name, run in session.runs.items() if self._has_ended(session, run)]
        unsaid = _unsaid(session, tuple(edge for name in ended for edge in self._graph.edges_from(name)))
        if any(unsaid.get(edge) != count for edge, count in effect.delivered):
            raise InvariantViolation(3, f"deliveries {effect.delivered} are written down, not {unsaid}")

    def _delivers(self, session: QuerySession, effect: Push, state: StoreState | None) -> None:
        """Check a push: its target is a member, it continues every edge, it has only published outputs, and it fits."""
        current = state is not None and state.gate_open and state.epoch == effect.epoch
        if current and state is not None and effect.target not in state.members and effect.target != HEAD:
            raise InvariantViolation(5, f"{session.worker} sends to {effect.target}, which is no member")
        at: dict[Edge, int] = {}
        delivered, outbox = session.context.outbox.delivered(), session.context.outbox
        if len(effect.items) > self._settings.outputs_per_push:
            raise InvariantViolation(1, f"a push of {len(effect.items)} outputs")
        for edge, task in effect.items:
            producer, first = self._graph.producer(edge), at.get(edge, delivered[edge])
            run = session.runs.get(producer)
            if task.of != producer or task.seq != first or task.seq >= outbox.published(producer):
                raise InvariantViolation(1, f"{task} is sent over {edge}, where {first} is due")
            if run is not None and session.context.tolerance.staged and not self._has_ended(session, run):
                raise InvariantViolation(1, f"{task} is sent before its channel has ended")
            if edge in at and edge in outbox.refused():
                raise InvariantViolation(1, f"{edge}, which was refused, is sent more than one output")
            at[edge] = first + 1

    def _has_ended(self, session: QuerySession, run: ChannelRun) -> bool:
        """Will a channel publish no more?"""
        published = session.context.outbox.published(run.channel)
        last = self._records.get(TaskName(*run.channel, published - 1))
        return run.ended or (last is not None and last.final)

    def _delivery_waits(self, actor: SimulatedActor, session: QuerySession, state: StoreState) -> None:
        """Check a waiting delivery: only refused outputs are due, and ended channels' deliveries are reported."""
        if isinstance(actor.last, Push | Complain):
            return  # it made no progress
        assert actor.worker_query is not None
        due = self._nothing_left(actor, session, state)
        if isinstance(actor.last, Acknowledge) or _is_acknowledging(actor, actor.worker_query):
            return
        for name, run in session.runs.items():
            if not run.ended:
                continue
            edges = self._graph.edges_from(name)
            if due.isdisjoint(edges) and (unsaid := _unsaid(session, edges)):
                raise InvariantViolation(3, f"{name} has ended, and nobody writes {unsaid} down")

    def _nothing_left(self, actor: SimulatedActor, session: QuerySession, state: StoreState) -> set[Edge]:
        """Check that what is due to a target was refused. Returns the edges to any member with something due."""
        graph, outbox, tolerance = self._graph, session.context.outbox, session.context.tolerance
        target, sent, refused, channels = actor.name.of, outbox.delivered(), outbox.refused(), state.channels
        due: set[Edge] = set()
        for name, run in session.runs.items():
            if tolerance.staged and not self._has_ended(session, run):
                continue
            first, end = 0 if tolerance.durable else run.base, outbox.published(name)
            for edge in graph.edges_from(name):
                count = sent.get(edge, 0)
                if not first <= count < end or graph.stays(edge):
                    continue
                host = channels[graph.consumer(edge)].host
                if host not in state.members and host != HEAD:
                    continue
                due.add(edge)
                if host == target and edge not in refused:
                    raise InvariantViolation(
                        5, f"{session.worker} waits, and output {count} is due on {edge}"
                    )
        return due

    def check_worker(self, state: StoreState, session: QuerySession) -> None:
        """Check that the store has what a worker believes, which must forget nothing within an epoch."""
        if not state.gate_open or state.epoch != session.context.epoch:
            return
        channels = state.channels
        for name, run in session.runs.items():
            if run.since_epoch != channels[name].since_epoch:
                raise InvariantViolation(6, f"{session.worker} goes on with an old run of {name}")
        outbox = session.context.outbox
        stored, delivered = state.delivered, outbox.delivered()
        for edge, count in outbox.known_to_gcs().items():
            if count > stored[edge]:
                raise InvariantViolation(
                    3,
                    f"{session.worker} takes {count} of {edge} as written, which {state.delivered[edge]} is",
                )
            if delivered[edge] < stored[edge]:
                raise InvariantViolation(3, f"{session.worker} knows less of {edge} than the store")

    def _check_counts(self, session: QuerySession, known: list[bool], reply: PushReply, arrived: int) -> None:
        """Check that an inbox counts what it has accepted, so that its channel is woken, and what it holds."""
        new = sum(is_held and not was for is_held, was in zip(reply.held, known, strict=True))
        now = arrivals(session)
        if now - arrived != new:
            raise InvariantViolation(
                5, f"{new} slices are new at {session.worker}, and {now - arrived} count"
            )
        for name, run in session.runs.items():
            held = sum([p.size_bytes for lane in run.inbox.lanes().values() for p in lane.held.values()])
            if run.inbox.held_bytes != held:
                raise InvariantViolation(10, f"{name} holds {held} bytes, and counts {run.inbox.held_bytes}")

    def received(
        self,
        session: QuerySession,
        pieces: tuple[Slice, ...],
        asked: PushReply,
        known: list[bool],
        reply: PushReply,
        arrived: int,
        given_up: GivenUp = frozenset(),
    ) -> None:
        """Check a reply: held slices are held, refused ones had no room, and the preview gave the same answer."""
        if asked.accepted != reply.accepted or len(reply.held) != (len(pieces) if reply.accepted else 0):
            raise InvariantViolation(3, f"{session.worker} answers otherwise than it said it would")
        if not reply.accepted:
            return
        self._check_counts(session, known, reply, arrived)
        if asked != reply:
            raise InvariantViolation(3, f"{session.worker} holds {reply.held} and had said {asked.held}")
        for piece, is_held in zip(pieces, reply.held, strict=True):
            run = session.runs[self._graph.consumer(piece.edge)]
            lane = run.inbox.lanes()[Upstream(piece.edge.link, piece.edge.producer)]
            if run.ended and not self._graph.is_reader(run.channel.stage) and (lane.held or not is_held):
                raise InvariantViolation(
                    10, f"{run.channel} has ended, and does not take and drop {piece.task}"
                )
            if (run.channel, run.since_epoch, piece.edge.link) in given_up:
                continue  # it is accepted and dropped
            seq, window = piece.task.seq, self._settings.window_bytes
            held_bytes = sum(other.size_bytes for other in lane.held.values())
            if is_held and not (run.ended or seq < lane.consumed or seq in lane.held):
                raise InvariantViolation(3, f"{session.worker} says that it holds {piece.task}, and does not")
            room = not lane.windowed or held_bytes + piece.size_bytes <= window
            if not is_held and (room or seq < lane.consumed + self._reserve):
                raise InvariantViolation(5, f"{piece.task} is refused over {piece.edge}, and there is room")
            ahead = [p.size_bytes for s, p in lane.held.items() if s >= lane.consumed + self._reserve]
            if lane.windowed and not run.retracing and sum(ahead) > window:
                raise InvariantViolation(5, f"{sum(ahead)} bytes wait on {piece.edge}, beyond its window")


def _is_acknowledging(actor: SimulatedActor, worker_query: SimulatedQuery) -> bool:
    """Does another actor of the session write deliveries down?"""
    for other in worker_query.actors.values():
        if isinstance(other.last, Acknowledge) and other is not actor and other.alive:
            return True
    return False


def arrivals(session: QuerySession) -> int:
    """The number of slices that all channels of a session have accepted, by their own counts."""
    return sum(run.inbox.arrived for run in session.runs.values())


def known_before(
    session: QuerySession, pieces: tuple[Slice, ...], given_up: GivenUp = frozenset()
) -> list[bool]:
    """Which of these slices had arrived before, or are not needed."""
    found = []
    for piece in pieces:
        run = session.runs.get(session.graph.consumer(piece.edge))
        lane = run.inbox.lanes()[Upstream(piece.edge.link, piece.edge.producer)] if run else None
        seq = piece.task.seq
        dropped = run is not None and (
            (run.ended and not session.graph.is_reader(run.channel.stage))
            or (run.channel, run.since_epoch, piece.edge.link) in given_up
        )
        found.append(lane is not None and (dropped or seq < lane.consumed or seq in lane.held))
    return found


def _unsaid(session: QuerySession, edges: tuple[Edge, ...]) -> dict[Edge, int]:
    """The deliveries over some edges that a worker knows and does not know to be in the store."""
    delivered: Mapping[Edge, int] = session.context.outbox.delivered()
    reported: Mapping[Edge, int] = session.context.outbox.known_to_gcs()
    return {edge: delivered[edge] for edge in edges if edge in delivered and delivered[edge] > reported[edge]}
