"""How the simulated world performs each effect: with delays, and through a network, disk and store that fail."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.errors import GcsLostError, QueryError
from wallaby.gcs.interface import Commit, Verdict
from wallaby.gcs.memory import MemoryGcs
from wallaby.lineage import effects as protocol
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.invariants import InvariantViolation
from wallaby.lineage.kept import kept
from wallaby.lineage.lineage import decode
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.simulation.process import Actor, Serving
from wallaby.simulation.world import World
from wallaby.worker import effects as working

#: What a backed-up output takes beside its rows.
OUTPUT_BYTES = 16
#: Of the states that could be saved.
SAVED_SHARE = 0.4
CALL_TIMEOUT_US = 250_000
PUSH_TIMEOUT_US = 300_000
PING_TIMEOUT_US = 100_000
#: So often a coordinator may see, without the answer reaching it, that a query is past its limit.
LOOKS_TOO_LATE_MAX = 10


class Performer:
    """Performs effects, each by the method that is named for it here."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._methods: dict[type, Callable[[Actor, Any], None]] = {
            protocol.Await: self._wait,
            protocol.Pause: self._pause,
            protocol.Execute: self._execute,
            protocol.BackUp: self._back_up,
            protocol.SaveState: self._save_state,
            protocol.RestoreState: self._restore_state,
            protocol.Advance: self._advance,
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
            coordinating.Watch: self._watch,
            coordinating.Ping: self._ping,
            coordinating.Expel: self._expel,
            coordinating.ReadStatus: self._status,
            coordinating.Join: self._join,
            coordinating.Freeze: self._freeze,
            coordinating.TakeSnapshot: self._snapshot,
            coordinating.Resume: self._resume,
            coordinating.Remove: self._remove,
        }

    def perform(self, actor: Actor, effect: Any) -> None:
        """Perform an effect; its answer comes in later, unless the actor is gone by then."""
        if self._world.story is not None and not isinstance(effect, (protocol.Await, protocol.Pause)):
            self._world.tell(f"{actor.process.id} {actor.name}: {_brief(effect)}")
        self._methods[type(effect)](actor, effect)

    def _answer_later(self, actor: Actor, effect: Any, value: Any, low_us: int, high_us: int) -> None:
        world = self._world
        world.agenda.after(world.soon_us(low_us, high_us, actor.process), world.answer, actor, effect, value)

    # --- waiting and computing -----------------------------------------------------------------------

    def _wait(self, actor: Actor, effect: protocol.Await) -> None:
        """The longer nothing comes, the longer the wait: it is only there in case a wake was lost."""
        actor.idle = min(actor.idle + 1, 6)
        self._world.park(actor, self._world.soon_us(10_000, 20_000) << actor.idle, patient=False)

    def _pause(self, actor: Actor, effect: protocol.Pause) -> None:
        limit_us = effect.limit_ms * 1000
        self._world.park(actor, self._world.soon_us(limit_us // 2, limit_us), patient=True)

    def _execute(self, actor: Actor, effect: protocol.Execute) -> None:
        running = self._world.running[_serving(actor).query.id]
        running.audit.executing(
            effect.task, effect.inputs, [s for side in effect.sides.values() for s in side]
        )
        if effect.task == running.workload.poison:
            self._world.crash(actor.process, f"{effect.task} takes it down")
            return
        if effect.point is protocol.FailPoint.RETRACE:
            self._world.tally.retraced += 1
        try:
            answer: Any = running.workload.step(effect)
        except QueryError as error:
            answer = error
        if effect.task == running.workload.fickle:
            state, output = answer
            answer = state, replace(output, checksum=output.checksum ^ running.fickle_runs)
            running.fickle_runs += 1
        self._answer_later(actor, effect, answer, 300, 6_000)

    def _back_up(self, actor: Actor, effect: protocol.BackUp) -> None:
        serving = _serving(actor)
        running = self._world.running[serving.query.id]
        if serving.query.tolerance.durable:
            running.spooled[effect.task, effect.output.checksum, effect.final] = effect.output
        size_bytes = OUTPUT_BYTES + sum(size for size, _ in effect.output.slices.values())
        fits = size_bytes <= actor.process.room_bytes
        if fits:
            actor.process.room_bytes -= size_bytes
            serving.bytes_kept += size_bytes
            serving.backups[effect.task] = (effect.output, effect.final)
            if effect.point is not protocol.FailPoint.BACK_UP:
                running.audit.made(effect.task, effect.output.checksum)
        self._answer_later(actor, effect, fits, 50, 800)

    def _save_state(self, actor: Actor, effect: protocol.SaveState) -> None:
        """It is time for that now and then. States are changed in place, so a copy is saved."""
        saved = self._world.random.random() < SAVED_SHARE
        if saved:
            states = self._world.running[_serving(actor).query.id].saved
            states[effect.task, effect.key] = (copy.deepcopy(effect.state), dict(effect.totals))
        self._answer_later(actor, effect, saved, 50, 2_000)

    def _restore_state(self, actor: Actor, effect: protocol.RestoreState) -> None:
        state, totals = self._world.running[_serving(actor).query.id].saved[effect.task, effect.key]
        self._world.tally.restored += 1
        self._answer_later(actor, effect, (copy.deepcopy(state), totals), 50, 2_000)

    def _advance(self, actor: Actor, effect: protocol.Advance) -> None:
        self._answer_later(actor, effect, None, 10, 300)

    def _collect(self, actor: Actor, effect: protocol.Collect) -> None:
        running = self._world.running[_serving(actor).query.id]
        running.audit.collecting(effect.slices)
        for piece in effect.slices:
            running.collected.update(piece.body or ())  # type: ignore[call-overload]
        self._answer_later(actor, effect, None, 10, 300)

    def _leave(self, actor: Actor, effect: protocol.Leave) -> None:
        self._world.crash(actor.process, effect.reason)

    # --- the network ---------------------------------------------------------------------------------

    def _push(self, actor: Actor, effect: protocol.Push) -> None:
        world, serving = self._world, _serving(actor)
        pieces = []
        for edge, task in effect.items:
            found = self._found(serving, task)
            if found is None:
                self._answer_later(actor, effect, PushReply(accepted=False), 200, 3_000)
                return
            output, final = found
            size_bytes, body = output.slices[edge]
            pieces.append(Slice(task, edge, final, size_bytes, body))
        world.running[serving.query.id].audit.leaving(pieces)
        ticket = Ticket(world, actor, effect)
        if effect.target == actor.process.id:
            world.agenda.after(
                world.soon_us(5, 100), self._arrive, ticket, serving.query.id, tuple(pieces), True
            )
            return
        world.agenda.after(PUSH_TIMEOUT_US, ticket.settle, None)
        process = actor.process
        if process.disarm("drop"):
            return
        delay_us = world.soon_us(200, 3_000, process)
        if process.disarm("reorder"):
            delay_us += world.soon_us(50_000, 600_000)
        whole = not process.disarm("cut")
        sent = tuple(pieces if whole else pieces[: world.random.randrange(len(pieces))])
        world.agenda.after(delay_us, self._arrive, ticket, serving.query.id, sent, whole)
        if process.disarm("duplicate"):
            again_us = delay_us + world.soon_us(0, 900_000)
            world.agenda.after(again_us, self._arrive, ticket, serving.query.id, sent, whole)

    def _found(self, serving: Serving, task: TaskName) -> tuple[protocol.Output, bool] | None:
        """An output: in the worker's own backup, or, as its record says, in the durable store."""
        if task in serving.backups:
            return serving.backups[task]
        state = self._world.store.queries.get(serving.query.id)
        if state is None or task.seq >= len(state.records[task.of]):
            return None  # the query is over, or its store was lost
        record = decode(state.records[task.of][task.seq])
        running = self._world.running[serving.query.id]
        self._world.tally.fetched += 1
        return running.spooled[task, record.checksum, record.final], record.final

    def _arrive(self, ticket: Ticket, query: QueryId, pieces: tuple[Slice, ...], whole: bool) -> None:
        """Slices reach their target, if it is still there; it takes what fits and answers."""
        world, push = self._world, ticket.effect
        target = world.processes[push.target]
        if not target.alive or self._is_cut(push.sender, push.target):
            return
        if target.paused_until_us > world.agenda.now_us:
            wait_us = target.paused_until_us - world.agenda.now_us
            world.agenda.after(wait_us, self._arrive, ticket, query, pieces, whole)
            return
        world.tally.steps += 1
        serving = target.servings.get(query)
        reply = PushReply(accepted=False)
        if serving is not None:
            session = serving.session
            before = {name: tenure.inbox.arrived for name, tenure in session.tenures.items()}
            reply = session.receive(push.epoch, push.target, pieces)
            for name, tenure in session.tenures.items():
                if tenure.inbox.arrived > before[name]:
                    world.wake(serving.actors.get(str(name)), arrival=True)
            if session.host.look_wanted:
                world.wake(serving.actors.get("session"))
            world.mark_changed()
        world.check()
        local = push.sender == push.target
        if whole and (local or not target.disarm("drop")):
            delay_us = world.soon_us(5, 100) if local else world.soon_us(200, 3_000, target)
            if not local and target.disarm("reorder"):
                delay_us += world.soon_us(20_000, 250_000)  # it may come in a later epoch than its push
            world.agenda.after(delay_us, self._reply_arrives, ticket, reply)

    def _reply_arrives(self, ticket: Ticket, reply: PushReply) -> None:
        if not self._is_cut(ticket.effect.sender, ticket.effect.target):
            ticket.settle(reply)

    def _is_cut(self, one: WorkerId, other: WorkerId) -> bool:
        return self._world.cuts_until_us.get(frozenset((one, other)), 0) > self._world.agenda.now_us

    def _ping(self, actor: Actor, effect: coordinating.Ping) -> None:
        world = self._world
        process = world.processes[effect.worker]
        silent = (
            not process.alive
            or process.paused_until_us > world.agenda.now_us + PING_TIMEOUT_US
            or self._is_cut(actor.process.id, effect.worker)
            or process.disarm("drop")
        )
        delay_us = PING_TIMEOUT_US if silent else world.soon_us(300, 5_000, process)
        world.agenda.after(delay_us, world.answer, actor, effect, not silent)

    # --- the store -----------------------------------------------------------------------------------

    def _call(self, actor: Actor, effect: Any, action: Callable[[MemoryGcs], Any]) -> None:
        """Ask the store: the request may be lost, refused or late, and so may the reply.

        A request that is delayed, or that a paused store gets, is applied long after the caller has given up.
        """
        world, process = self._world, actor.process
        now_us = world.agenda.now_us
        if process.store_cut_until_us > now_us or process.disarm("refused"):
            world.agenda.after(CALL_TIMEOUT_US, world.answer, actor, effect, None)
            return
        delay_us = world.soon_us(100, 1_000, process)
        if process.disarm("reorder"):
            delay_us += world.soon_us(20_000, 1_500_000)
        reaches_us = max(now_us + delay_us, world.store_paused_until_us)
        replies_us = reaches_us + world.soon_us(100, 1_000, process)
        ticket = Ticket(world, actor, effect)
        if replies_us > now_us + CALL_TIMEOUT_US or process.disarm("reply lost"):
            world.agenda.after(CALL_TIMEOUT_US, ticket.settle, None)
            replies_us = -1
        world.agenda.after(reaches_us - now_us, self._reach_store, ticket, action, replies_us)

    def _reach_store(self, ticket: Ticket, action: Callable[[MemoryGcs], Any], replies_us: int) -> None:
        world = self._world
        try:
            value = action(ticket.actor.process.gcs)
        except GcsLostError as lost:
            value = lost
        world.check()
        if replies_us >= 0:
            world.agenda.after(replies_us - world.agenda.now_us, ticket.settle, value)

    def _fenced(
        self, actor: Actor, effect: Any, action: Callable[[MemoryGcs, QueryId, WorkerId], Any]
    ) -> None:
        """The same for a worker's write, whose fence is checked here once more (invariant 6)."""
        query, worker, store = _serving(actor).query.id, actor.process.id, self._world.store

        def act(gcs: MemoryGcs) -> Any:
            state = store.queries.get(query)
            allowed = state is not None and state.gate_open and state.epoch == effect.epoch
            allowed = allowed and state is not None and (actor.process.is_head or worker in state.members)
            before = state.version if state is not None else None
            answer = action(gcs, query, worker)
            after = store.queries.get(query)
            if not allowed and (after.version if after is not None else None) != before:
                raise InvariantViolation(6, f"{_brief(effect)} of {worker} took effect, against the fence")
            return answer

        self._call(actor, effect, act)

    def _read_records(self, actor: Actor, effect: protocol.ReadRecords) -> None:
        self._fenced(actor, effect, lambda gcs, q, w: gcs.records(q, w, effect.epoch, effect.channel))

    def _commit(self, actor: Actor, effect: protocol.CommitTask) -> None:
        def commit(gcs: MemoryGcs, query: QueryId, worker: WorkerId) -> Any:
            request = Commit(effect.task, effect.record, effect.final, effect.delivered)
            (reply,) = gcs.commit(query, worker, effect.epoch, (request,))
            if reply.verdict is Verdict.DONE:
                self._world.tally.commits += 1
                self._world.tally.lineage_bytes += len(effect.record)
            return reply

        self._fenced(actor, effect, commit)

    def _close_early(self, actor: Actor, effect: protocol.CloseEarly) -> None:
        candidates = _serving(actor).query.graph.closable_above(effect.channel)
        self._fenced(actor, effect, lambda gcs, q, w: gcs.close_early(q, w, effect.epoch, candidates))

    def _acknowledge(self, actor: Actor, effect: protocol.Acknowledge) -> None:
        self._fenced(actor, effect, lambda gcs, q, w: gcs.acknowledge(q, w, effect.epoch, effect.delivered))

    def _claim(self, actor: Actor, effect: protocol.ClaimReRead) -> None:
        def claim(gcs: MemoryGcs, query: QueryId, worker: WorkerId) -> Any:
            claimed = gcs.claim(query, worker, effect.epoch, effect.slot, effect.completed)
            self._world.tally.reread += claimed.task is not None
            return claimed

        self._fenced(actor, effect, claim)

    def _fail(self, actor: Actor, effect: protocol.Fail) -> None:
        self._fenced(actor, effect, lambda gcs, q, w: gcs.fail(q, w, effect.epoch, str(effect.error)))

    def _register(self, actor: Actor, effect: working.Register) -> None:
        worker, lease_ms = actor.process.id, self._world.scenario.coordinator.lease_ms
        self._call(actor, effect, lambda gcs: gcs.register(worker, f"sim:{worker}", lease_ms))

    def _renew(self, actor: Actor, effect: working.Renew) -> None:
        worker, lease_ms = actor.process.id, self._world.scenario.coordinator.lease_ms
        self._call(actor, effect, lambda gcs: gcs.renew(worker, lease_ms))

    def _discover(self, actor: Actor, effect: working.Discover) -> None:
        self._call(actor, effect, lambda gcs: gcs.queries())

    def _open_session(self, actor: Actor, effect: working.OpenSession) -> None:
        self._world.open_session(actor.process, effect.query)
        self._answer_later(actor, effect, True, 10, 300)

    def _look(self, actor: Actor, effect: working.Look) -> None:
        query, worker = _serving(actor).query.id, actor.process.id
        self._call(actor, effect, lambda gcs: gcs.look(query, worker))

    def _spawn(self, actor: Actor, effect: working.Spawn) -> None:
        self._world.spawn(actor.process, _serving(actor), effect.name, effect.effects)
        self._answer_later(actor, effect, None, 0, 0)

    def _stop(self, actor: Actor, effect: working.Stop) -> None:
        self._world.stop(_serving(actor), effect.name)
        self._answer_later(actor, effect, None, 0, 0)

    def _complain(self, actor: Actor, effect: working.Complain) -> None:
        worker = actor.process.id
        self._call(actor, effect, lambda gcs: gcs.complain(worker, effect.accused, effect.reachable))

    # --- the coordinator's calls ---------------------------------------------------------------------

    def _watch(self, actor: Actor, effect: coordinating.Watch) -> None:
        self._call(actor, effect, lambda gcs: gcs.workers())

    def _expel(self, actor: Actor, effect: coordinating.Expel) -> None:
        def expel(gcs: MemoryGcs) -> bool:
            gcs.expel(effect.worker)
            self._world.tally.expelled += 1
            return True

        self._call(actor, effect, expel)

    def _status(self, actor: Actor, effect: coordinating.ReadStatus) -> None:
        self._call(actor, effect, lambda gcs: gcs.status(effect.query))

    def _join(self, actor: Actor, effect: coordinating.Join) -> None:
        self._call(actor, effect, lambda gcs: gcs.join(effect.query, effect.worker))

    def _freeze(self, actor: Actor, effect: coordinating.Freeze) -> None:
        def freeze(gcs: MemoryGcs) -> Any:
            nested = self._is_recovering(effect.query)
            verdict = gcs.freeze(effect.query, effect.lost, effect.draining)
            if verdict is Verdict.DONE:
                self._world.tally.nested_recoveries += nested
            return verdict

        self._call(actor, effect, freeze)

    def _is_recovering(self, query: QueryId) -> bool:
        """Is an earlier recovery still under way: the gate closed, or channels being made again?"""
        state = self._world.store.queries.get(query)
        if state is None:
            return False
        sessions = [p.servings[query].session for p in self._world.live_workers() if query in p.servings]
        retracing = any(t.retracing for s in sessions for t in s.tenures.values())
        return not state.gate_open or retracing or bool(state.rereads or state.claims)

    def _snapshot(self, actor: Actor, effect: coordinating.TakeSnapshot) -> None:
        def snapshot(gcs: MemoryGcs) -> Any:
            found = gcs.snapshot(effect.query)
            self._check_patience(effect.query, without_worker=found is not None and not found.members)
            return found, gcs.history(effect.query) if effect.with_records else {}

        self._call(actor, effect, snapshot)

    def _check_patience(self, query: QueryId, *, without_worker: bool) -> None:
        """A query without a worker fails once its time is over, and not at some time later (invariant 7)."""
        running, now_ms = self._world.running[query], self._world.agenda.now_ms()
        if not without_worker:
            running.without_worker_since_ms, running.looks_too_late = None, 0
            return
        if running.without_worker_since_ms is None:
            running.without_worker_since_ms = now_ms
        limit_ms = self._world.scenario.coordinator.no_workers_ms
        running.looks_too_late += now_ms - running.without_worker_since_ms > limit_ms
        if running.looks_too_late > LOOKS_TOO_LATE_MAX:
            raise InvariantViolation(7, f"{query} waits for a worker beyond its limit of {limit_ms} ms")

    def _resume(self, actor: Actor, effect: coordinating.Resume) -> None:
        def resume(gcs: MemoryGcs) -> Any:
            before = gcs.snapshot(effect.query)
            verdict = gcs.resume(effect.query, effect.plan, effect.version)
            if verdict is Verdict.DONE and before is not None:
                running = self._world.running[effect.query]
                left = kept(running.query.tolerance, gcs.history(effect.query))
                running.audit.planned(before, effect.plan, left)
                self._world.tally.recoveries += 1
                self._world.tally.rewound += len(effect.plan.rewound)
            return verdict

        self._call(actor, effect, resume)

    def _remove(self, actor: Actor, effect: coordinating.Remove) -> None:
        def remove(gcs: MemoryGcs) -> bool:
            gcs.remove(effect.query)
            return True

        self._call(actor, effect, remove)


class Ticket:
    """One question to the world outside a process: the first answer counts, later ones are dropped."""

    def __init__(self, world: World, actor: Actor, effect: Any) -> None:
        self._world = world
        self.actor = actor
        self.effect = effect
        self._settled = False

    def settle(self, value: Any) -> None:
        """Answer, unless that has been done."""
        if not self._settled:
            self._settled = True
            self._world.answer(self.actor, self.effect, value)


def _serving(actor: Actor) -> Serving:
    assert actor.serving is not None, f"{actor.name} belongs to no session"
    return actor.serving


def _brief(effect: Any) -> str:
    """An effect as one short line of a story."""
    match effect:
        case protocol.Execute():
            what = f"split {effect.split}" if effect.split is not None else effect.draw or "nothing"
            return f"{effect.point.value} {effect.task} on {what}" + (
                f" with sides {sorted(effect.sides)}" if effect.sides else ""
            )
        case protocol.BackUp():
            return f"{effect.point.value} {effect.task}"
        case protocol.CommitTask():
            return f"commit {effect.task} in epoch {effect.epoch}" + (" (final)" if effect.final else "")
        case protocol.Push():
            items = " ".join(f"{task} over {edge}," for edge, task in effect.items)
            return f"{effect.point.value} to {effect.target} in epoch {effect.epoch}: {items[:-1]}"
        case coordinating.Resume():
            plan = effect.plan
            moves = " ".join(f"{name}->{host}" for name, host in sorted(plan.hosts.items()))
            return (
                f"resume: {moves or 'nothing moves'}; re-reads: {'; '.join(map(str, plan.rereads)) or 'none'}"
            )
        case coordinating.Freeze():
            return f"freeze, lost {' '.join(effect.lost) or 'nobody'}, draining {' '.join(effect.draining) or 'nobody'}"
        case working.Spawn():
            return f"begin {effect.name}"
        case protocol.Collect():
            return "collect " + " ".join(str(piece.task) for piece in effect.slices)
        case _:
            return str(effect)
