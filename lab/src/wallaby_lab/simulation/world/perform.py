"""Perform effects in the simulated world: with delays, and through a network, disk and store that fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.errors import GcsLostError, QueryError
from wallaby.errors.text import write_error
from wallaby.gcs.interface import Commit, Verdict
from wallaby.gcs.memory import MemoryGcs
from wallaby.lineage import effects as protocol
from wallaby.lineage.effects import Answer, Effect, PushReply, Slice
from wallaby.lineage.lineage import decode
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.node import effects as working
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.judges.applied import failing, registering
from wallaby_lab.simulation.judges.patience import is_refusal, require_closed
from wallaby_lab.simulation.world.arriving import taken_in
from wallaby_lab.simulation.world.brief import brief
from wallaby_lab.simulation.world.committing import GroupCommits, GroupTicket, note_commits
from wallaby_lab.simulation.world.coordinating import Coordinating, standings_in
from wallaby_lab.simulation.world.process import SimulatedActor, SimulatedQuery, worker_query_of
from wallaby_lab.simulation.world.reading import KeptReaders
from wallaby_lab.simulation.world.saving import Saving
from wallaby_lab.simulation.world.ticket import Ticket
from wallaby_lab.simulation.world.world import World

CALL_TIMEOUT_US = 250_000
PUSH_TIMEOUT_US = 300_000
PING_TIMEOUT_US = 100_000
#: The longest wait of an actor: the first time, the second time, and so on.
_WAITS_US = (40_000, 160_000, 640_000, 1_280_000)


class SimulatedPerformer:
    """Performs effects, each with its method."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._group_commits = GroupCommits(world, self._commit_group)
        keeping = Saving(world, self._answer_later)
        coordinator = Coordinating(world, self._call)
        readers = KeptReaders(world, self._call, self._is_cut)
        self._methods: dict[type[Effect[Any]], Callable[[SimulatedActor, Any], None]] = {
            protocol.Await: self._wait,
            protocol.Pause: self._pause,
            protocol.Execute: self._execute,
            protocol.BackUp: keeping.back_up,
            protocol.SaveState: keeping.save_state,
            protocol.RestoreState: keeping.restore_state,
            protocol.Advance: lambda actor, effect: self._answer_later(actor, effect, None, 10, 300),
            protocol.Push: self._push,
            protocol.Collect: self._collect,
            protocol.Leave: self._leave,
            protocol.ReadRecords: self._read_records,
            protocol.CommitTask: self._commit,
            protocol.CloseEarly: self._close_early,
            protocol.Acknowledge: self._acknowledge,
            protocol.ClaimReRead: self._claim,
            protocol.Fail: self._fail,
            working.Register: self._register,
            working.Renew: self._renew,
            working.Discover: self._discover,
            working.OpenSession: self._open_session,
            working.Look: self._look,
            working.Spawn: self._spawn,
            working.Stop: self._stop,
            working.Complain: self._complain,
            coordinating.Watch: coordinator.watch,
            coordinating.Ping: self._ping,
            coordinating.Inquire: self._inquire,
            coordinating.Expel: coordinator.expel,
            coordinating.ReadStatus: coordinator.status,
            coordinating.AddMember: coordinator.join,
            coordinating.Freeze: coordinator.freeze,
            coordinating.TakeSnapshot: coordinator.snapshot,
            coordinating.Resume: coordinator.resume,
            coordinating.Remove: coordinator.remove,
            coordinating.Submit: coordinator.act,
            coordinating.AskToDrain: coordinator.act,
            coordinating.ReadNeed: coordinator.act,
            **readers.methods,
        }

    def perform(self, actor: SimulatedActor, effect: Effect[Any]) -> None:
        """Perform an effect; its answer arrives later, unless the actor is gone by then."""
        if self._world.story is not None and not isinstance(effect, protocol.Await | protocol.Pause):
            self._world.tell(f"{actor.process.id} {actor.name}: {brief(effect)}")
        self._methods[type(effect)](actor, effect)

    def _answer_later(
        self,
        actor: SimulatedActor,
        effect: Effect[Answer],
        value: Answer | BaseException,
        low_us: int,
        high_us: int,
        more_ms: int = 0,
    ) -> None:
        world = self._world
        delay_us = world.delay_us(actor, low_us, high_us) + more_ms * 1000
        world.agenda.after(delay_us, world.answer, actor, effect, value)

    # --- waiting and computing -----------------------------------------------------------------------

    def _wait(self, actor: SimulatedActor, effect: protocol.Await) -> None:
        """Wait longer the longer nothing arrives: the limit is only for lost wakes."""
        actor.idle = min(actor.idle + 1, len(_WAITS_US))
        longest_us = _WAITS_US[actor.idle - 1]
        self._world.park(actor, self._world.soon_us(longest_us // 2, longest_us), patient=False)

    def _pause(self, actor: SimulatedActor, effect: protocol.Pause) -> None:
        limit_us = effect.limit_ms * 1000
        self._world.park(actor, self._world.soon_us(limit_us // 2, limit_us), patient=True)

    def _execute(self, actor: SimulatedActor, effect: protocol.Execute) -> None:
        running = self._world.running[worker_query_of(actor).query.id]
        running.audit.executing(
            effect.task, effect.inputs, [s for side in effect.sides.values() for s in side]
        )
        if effect.task == running.workload.poison:
            self._world.crash(actor.process, f"{effect.task} takes it down")
            return
        if effect.point is protocol.FailPoint.RETRACE:
            self._world.tally.retraced += 1
        try:
            answer: protocol.Executed | QueryError = running.workload.step(effect)
        except QueryError as error:
            answer = error
        if effect.task == running.workload.fickle and isinstance(answer, protocol.Executed):
            changed = replace(answer.output, checksum=answer.output.checksum ^ running.fickle_runs)
            answer = protocol.Executed(answer.state, changed)
            running.fickle_runs += 1
        if isinstance(answer, protocol.Executed):
            running.scrutiny.made(actor.process.id, effect, answer.output)
        self._answer_later(actor, effect, answer, 300, 6_000, self._world.lapses.execute_ms())

    def _collect(self, actor: SimulatedActor, effect: protocol.Collect) -> None:
        running = self._world.running[worker_query_of(actor).query.id]
        running.audit.collecting(effect.slices)
        for piece in effect.slices:
            running.collected.update(piece.body or ())  # type: ignore[call-overload]
        self._answer_later(actor, effect, None, 10, 300, self._world.lapses.collect_ms())

    def _leave(self, actor: SimulatedActor, effect: protocol.Leave) -> None:
        self._world.crash(actor.process, effect.reason)

    # --- the network ---------------------------------------------------------------------------------

    def _push(self, actor: SimulatedActor, effect: protocol.Push) -> None:
        world, worker_query = self._world, worker_query_of(actor)
        pieces = []
        for edge, task in effect.items:
            found = self._found(worker_query, task)
            if found is None:
                self._answer_later(actor, effect, PushReply(accepted=False), 200, 3_000)
                return
            output, final = found
            size_bytes, body = output.slices[edge]
            pieces.append(Slice(task, edge, final, size_bytes, body))
        pieces = list(world.scenario.flow.cut(tuple(pieces)))
        world.running[worker_query.query.id].audit.leaving(pieces)
        ticket = Ticket(world, actor, effect)
        if effect.target == actor.process.id:
            world.agenda.after(
                world.soon_us(5, 100), self._arrive, ticket, worker_query.query.id, tuple(pieces), True
            )
            return
        world.agenda.after(PUSH_TIMEOUT_US, ticket.settle, None)
        process = actor.process
        late_us = world.wires.late_us(effect.sender, effect.target)
        if process.disarm("drop"):
            return
        delay_us = world.soon_us(200, 3_000, process) + late_us
        if process.disarm("reorder"):
            delay_us += world.soon_us(50_000, 600_000)
        whole = not process.disarm("cut")
        sent = tuple(pieces if whole else pieces[: world.random.randrange(len(pieces))])
        world.agenda.after(delay_us, self._arrive, ticket, worker_query.query.id, sent, whole)
        if process.disarm("duplicate"):
            again_us = delay_us + world.soon_us(0, 900_000)
            world.agenda.after(again_us, self._arrive, ticket, worker_query.query.id, sent, whole)

    def _found(self, worker_query: SimulatedQuery, task: TaskName) -> tuple[protocol.Output, bool] | None:
        """Find an output in the worker's own backup, or by its record in the durable store."""
        if task in worker_query.backups:
            return worker_query.backups[task][:2]
        state = self._world.store.queries.get(worker_query.query.id)
        if state is None or task.seq >= len(state.records[task.of]):
            return None  # the query has ended, or its store was lost
        record = decode(state.records[task.of][task.seq])
        running = self._world.running[worker_query.query.id]
        self._world.tally.fetched += 1
        return running.spooled[task, record.checksum, record.final], record.final

    def _arrive(
        self, ticket: Ticket[protocol.Push], query: QueryId, pieces: tuple[Slice, ...], whole: bool
    ) -> None:
        """Slices reach their target, if it still exists; it accepts what fits and answers."""
        world, push = self._world, ticket.effect
        target = world.processes[push.target]
        if not target.alive or self._is_cut(push.sender, push.target):
            return
        size_bytes = sum(piece.size_bytes for piece in pieces)
        if world.wires.loses(push.sender, push.target, push.point, size_bytes):
            return
        if target.paused_until_us > world.agenda.now_us:
            wait_us = target.paused_until_us - world.agenda.now_us
            world.agenda.after(wait_us, self._arrive, ticket, query, pieces, whole)
            return
        world.tally.steps += 1
        reply = taken_in(world, target.worker_queries.get(query), push, pieces)
        world.check()
        local = push.sender == push.target
        if whole and (local or not target.disarm("drop")):
            delay_us = world.soon_us(5, 100) if local else world.soon_us(200, 3_000, target)
            delay_us += world.wires.late_us(push.target, push.sender)
            if not local and target.disarm("reorder"):
                delay_us += world.soon_us(20_000, 250_000)  # it may arrive in a later epoch than its push
            world.agenda.after(delay_us, self._reply_arrives, ticket, reply)

    def _reply_arrives(self, ticket: Ticket[protocol.Push], reply: PushReply) -> None:
        if not self._is_cut(ticket.effect.target, ticket.effect.sender):
            ticket.settle(reply)

    def _is_cut(self, one: WorkerId, other: WorkerId) -> bool:
        cuts = self._world.cuts_until_us
        if cuts and cuts.get(frozenset((one, other)), 0) > self._world.agenda.now_us:
            return True
        return self._world.wires.is_cut(one, other)

    def _ping(self, actor: SimulatedActor, effect: coordinating.Ping) -> None:
        world = self._world
        process = world.processes[effect.worker]
        silent = (
            not process.alive
            or process.paused_until_us > world.agenda.now_us + PING_TIMEOUT_US
            or self._is_cut(actor.process.id, effect.worker)
            or self._is_cut(effect.worker, actor.process.id)
            or process.disarm("drop")
        )
        delay_us = PING_TIMEOUT_US if silent else world.soon_us(300, 5_000, process)
        world.agenda.after(delay_us, world.answer, actor, effect, not silent)

    def _inquire(self, actor: SimulatedActor, effect: coordinating.Inquire) -> None:
        """Ask processes for their standing; one that is gone, paused or cut off does not answer."""
        cut = partial(self._is_cut, actor.process.id)
        self._answer_later(actor, effect, standings_in(self._world, effect, cut), 300, 5_000)
        if self._world.lost_answers is not None:
            self._world.lost_answers.inquired()

    # --- the store -----------------------------------------------------------------------------------

    def _call(
        self,
        actor: SimulatedActor,
        effect: Effect[Answer | None],
        action: Callable[[MemoryGcs], Answer | BaseException],
        ticket: Ticket[Any] | GroupTicket | None = None,
    ) -> None:
        """Call the store: the request may be lost, refused or late, and so may the reply.

        A delayed request, or one to a paused store, is applied long after the caller has given up.
        """
        world, process = self._world, actor.process
        now_us = world.agenda.now_us
        ticket = ticket or Ticket(world, actor, effect)
        if process.store_cut_until_us > now_us or process.disarm("refused"):
            world.agenda.after(CALL_TIMEOUT_US, ticket.settle, None)
            return
        delay_us = world.delay_us(actor, 100, 1_000)
        if process.disarm("reorder"):
            delay_us += world.soon_us(20_000, 1_500_000)
        reaches_us = max(now_us + delay_us, world.store_paused_until_us)
        replies_us = reaches_us + world.soon_us(100, 1_000, process)
        if replies_us > now_us + CALL_TIMEOUT_US or process.disarm("reply lost"):
            world.agenda.after(CALL_TIMEOUT_US, ticket.settle, None)
            replies_us = -1
        world.agenda.after(reaches_us - now_us, self._reach_store, ticket, action, replies_us)

    def _reach_store(
        self, ticket: Ticket[Any] | GroupTicket, action: Callable[[MemoryGcs], Any], replies_us: int
    ) -> None:
        world, process = self._world, ticket.actor.process
        try:
            value = action(process.gcs)
            if process.gcs.server.incarnation != world.incarnation:
                raise InvariantViolation(6, f"{process.id} goes on with a store that it did not begin with")
        except GcsLostError as lost:
            value = lost
        world.check()
        if replies_us >= 0:
            world.agenda.after(replies_us - world.agenda.now_us, ticket.settle, value)

    def _fenced(
        self,
        actor: SimulatedActor,
        effect: Any,
        action: Callable[[MemoryGcs, QueryId, WorkerId], Any],
        ticket: GroupTicket | None = None,
    ) -> None:
        """The same for a worker's write, whose fence is checked once more here (invariant 6)."""
        query, worker, store = worker_query_of(actor).query.id, actor.process.id, self._world.store

        def act(gcs: MemoryGcs) -> Any:
            state = store.queries.get(query)
            allowed = state is not None and state.gate_open and state.epoch == effect.epoch
            allowed = allowed and state is not None and (actor.process.is_head or worker in state.members)
            before = state.version if state is not None else None
            answer = action(gcs, query, worker)
            after = store.queries.get(query)
            if not allowed and (after.version if after is not None else None) != before:
                raise InvariantViolation(6, f"{brief(effect)} of {worker} took effect, against the fence")
            if allowed and is_refusal(answer):
                raise InvariantViolation(7, f"{brief(effect)} of {worker} was refused without a reason")
            return answer

        self._call(actor, effect, act, ticket)

    def _read_records(self, actor: SimulatedActor, effect: protocol.ReadRecords) -> None:
        self._fenced(actor, effect, lambda gcs, q, w: gcs.records(q, w, effect.epoch, effect.channel))

    def _commit(self, actor: SimulatedActor, effect: protocol.CommitTask) -> None:
        self._group_commits.add(actor, effect)

    def _commit_group(
        self, ticket: GroupTicket, group: list[tuple[SimulatedActor, protocol.CommitTask]]
    ) -> None:
        def commit(gcs: MemoryGcs, query: QueryId, worker: WorkerId) -> Any:
            requests = tuple(
                Commit(e.task, e.record, e.final, e.delivered, e.since_epoch, e.next_split) for _, e in group
            )
            replies = gcs.commit(query, worker, group[0][1].epoch, requests)
            note_commits(self._world, query, worker, group, replies)
            return replies

        self._fenced(*group[0], commit, ticket)

    def _close_early(self, actor: SimulatedActor, effect: protocol.CloseEarly) -> None:
        candidates = worker_query_of(actor).query.graph.closable_above(effect.channel)

        def close(gcs: MemoryGcs, query: QueryId, worker: WorkerId) -> Any:
            verdict = gcs.close_early(query, worker, effect.epoch, candidates)
            state = self._world.store.queries.get(query)
            if verdict is Verdict.DONE and state is not None:
                require_closed(state, effect.channel)
            return verdict

        self._fenced(actor, effect, close)

    def _acknowledge(self, actor: SimulatedActor, effect: protocol.Acknowledge) -> None:
        self._fenced(actor, effect, lambda gcs, q, w: gcs.acknowledge(q, w, effect.epoch, effect.delivered))

    def _claim(self, actor: SimulatedActor, effect: protocol.ClaimReRead) -> None:
        def claim(gcs: MemoryGcs, query: QueryId, worker: WorkerId) -> Any:
            claimed = gcs.claim(query, worker, effect.epoch, effect.slot, effect.completed)
            self._world.tally.reread += claimed.task is not None
            return claimed

        self._fenced(actor, effect, claim)

    def _fail(self, actor: SimulatedActor, effect: protocol.Fail) -> None:
        assert isinstance(effect.error, QueryError), "a session guards against nothing else"
        said = write_error(effect.error)
        self._fenced(actor, effect, lambda gcs, q, w: failing(gcs, q, w, effect.epoch, said))

    def _register(self, actor: SimulatedActor, effect: working.Register) -> None:
        worker, lease_ms = actor.process.id, self._world.scenario.coordinator.lease_ms
        self._call(actor, effect, registering(worker, lambda gcs: gcs.register(worker, worker, lease_ms)))

    def _renew(self, actor: SimulatedActor, effect: working.Renew) -> None:
        worker, lease_ms = actor.process.id, self._world.scenario.coordinator.lease_ms
        self._call(actor, effect, registering(worker, lambda gcs: gcs.renew(worker, lease_ms), renews=True))

    def _discover(self, actor: SimulatedActor, effect: working.Discover) -> None:
        self._call(actor, effect, lambda gcs: gcs.queries())

    def _open_session(self, actor: SimulatedActor, effect: working.OpenSession) -> None:
        if effect.query not in actor.process.worker_queries:  # else an earlier answer was lost
            self._world.open_session(actor.process, effect.query)
        self._answer_later(actor, effect, True, 10, 300)

    def _look(self, actor: SimulatedActor, effect: working.Look) -> None:
        query = worker_query_of(actor).query.id
        self._call(actor, effect, lambda gcs: gcs.look(query, actor.process.id))

    def _spawn(self, actor: SimulatedActor, effect: working.Spawn) -> None:
        self._world.spawn(actor.process, worker_query_of(actor), effect.name, effect.effects)
        self._answer_later(actor, effect, None, 0, 400)

    def _stop(self, actor: SimulatedActor, effect: working.Stop) -> None:
        """Stop an actor; it may be woken before that."""
        world, worker_query = self._world, worker_query_of(actor)
        longest_us = 60_000 if world.random.random() < 0.2 else 400

        def stop() -> None:
            world.stop(worker_query, effect.name)
            world.answer(actor, effect, None)

        world.agenda.after(world.delay_us(actor, 0, longest_us), stop)

    def _complain(self, actor: SimulatedActor, effect: working.Complain) -> None:
        query, worker = worker_query_of(actor).query.id, actor.process.id

        def complain(gcs: MemoryGcs) -> bool:
            taken = gcs.complain(
                worker, effect.accused, effect.reachable, query, self._world.scenario.complaint_ms
            )
            if taken and not self._world.store_is_lost:
                now_ms = self._world.agenda.now_ms()
                self._world.complaining.said(worker, effect.accused, query, effect.reachable, now_ms)
            return taken

        self._call(actor, effect, complain)
