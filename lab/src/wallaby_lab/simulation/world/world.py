"""The simulated world: processes, the generators that run in them, and the checks after every step.

One step is one generator resumed, or one message received. Between any two steps anything else may happen: the agenda
interleaves all actors by random delays, a fault may strike before an effect or after it, and a process that crashes
takes its generators, inboxes, backups and arrived slices with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop
from random import Random
from typing import Any

from wallaby.coordinator.coordinator import Coordinator
from wallaby.coordinator.effects import ReadStatus, Watch
from wallaby.coordinator.query import Query, QueryPhase
from wallaby.coordinator.requests import draining, submitting
from wallaby.coordinator.stalls import StallWatch
from wallaby.errors import GcsLostError
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.effects import Answer, Await, ClaimReRead, Effect, Effects, FailPoint, Push
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.actors import COORDINATOR, DISCOVERY, SESSION, TASK_MANAGER, ActorKind, ActorName
from wallaby.node.driving import ActorState, stop_actor
from wallaby.node.effects import Complain
from wallaby.node.session import QuerySession
from wallaby.worker.taskmanager import TaskManager
from wallaby_lab.simulation.drawn.aim import strike_holds
from wallaby_lab.simulation.drawn.faults import OF_WIRES, FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import PLENTY_BYTES, Scenario
from wallaby_lab.simulation.drawn.schedules import LAGS
from wallaby_lab.simulation.drawn.workload import ToyWorkload
from wallaby_lab.simulation.judges.claiming import Claiming
from wallaby_lab.simulation.judges.complaining import Complaining
from wallaby_lab.simulation.judges.insisting import Insisting, require_current_run
from wallaby_lab.simulation.judges.leaving import Leaving
from wallaby_lab.simulation.judges.rehearsal import Rehearsal
from wallaby_lab.simulation.judges.scrutiny import JUDGED
from wallaby_lab.simulation.judges.watching import Silence, judge_status
from wallaby_lab.simulation.world.agenda import Agenda
from wallaby_lab.simulation.world.checking import check_queries
from wallaby_lab.simulation.world.flow import Lapses
from wallaby_lab.simulation.world.ports import LosesAnswers, PerformsSimulated, Strikes
from wallaby_lab.simulation.world.process import (
    Process,
    RunTally,
    SimulatedActor,
    SimulatedQuery,
    channel_run_of,
)
from wallaby_lab.simulation.world.reach import Reach
from wallaby_lab.simulation.world.running import Running, running_of
from wallaby_lab.simulation.world.wires import SimulatedWires

#: The events between two checks whether a run is over.
_EVENTS = range(4)


class World:
    """Everything that exists in one run of one seed."""

    def __init__(
        self,
        scenario: Scenario,
        faults: tuple[SimulatedFault, ...],
        performer: Callable[[World], PerformsSimulated],
        striker: Callable[[World], Strikes],
        story: list[str] | None = None,
        lost: Callable[[World], LosesAnswers] | None = None,
    ) -> None:
        self.scenario = scenario
        self.random = Random(scenario.random_seed)
        self.agenda = Agenda()
        self.store = MemoryStore(self.agenda.now_ms)
        #: The incarnation of the store with which the engine began, and whether the head was told that it is lost.
        self.incarnation = self.store.incarnation
        self.loss_told = False
        #: The coordinator has given up a store that was silent for too long.
        self.given_up = False
        #: The store to which the address leads for new connections; not the head's, if it was split.
        self.address = self.store
        self.store_paused_until_us = 0
        self.tally = RunTally()
        self.story = story
        self.lapses = Lapses(scenario.flow, self.tell)
        self.lost_answers = lost(self) if lost is not None and scenario.flow.forgotten is not None else None
        self.healed = False
        self.pending_faults = list(faults)
        self.pending_holds = list(scenario.schedule.holds)
        self.processes: dict[WorkerId, Process] = {}
        self.cuts_until_us: dict[frozenset[WorkerId], int] = {}
        self.wires = SimulatedWires(lambda: self.agenda.now_us)
        self.reach = Reach(self)
        self.complaining = Complaining(scenario.complaint_ms)
        self.insisting = Insisting()
        self.claiming = Claiming()
        self.leaving = Leaving()
        self.silence = Silence(scenario.coordinator.silent_ms)
        self.rehearsal = Rehearsal(scenario.random_seed)
        self.running: dict[QueryId, Running] = {}
        self.queries: dict[QueryId, Query] = {}
        self.visits: Counter[tuple[FailPoint, bool]] = Counter()
        #: Called when the whole result of a query is there; see `reading`.
        self.whole: Callable[[Running], None] = lambda _: None
        #: Are visits counted even if nothing waits for one?
        self.counts_visits = False
        self._workers_started = 0
        self.performer = performer(self)
        self.striker = striker(self)
        self.head = Process(HEAD, MemoryGcs(self.store))
        self.processes[HEAD] = self.head
        self.coordinator = self._new_coordinator()
        self._coordinator_actor = self.spawn(self.head, None, COORDINATOR, self.coordinator.run())
        if scenario.coordinator.stall_ms:
            watch = StallWatch(scenario.coordinator.stall_ms, self.queries, self.agenda.now_ms)
            self.spawn(self.head, None, ActorName(ActorKind.STALL_WATCH), watch.run())
        for _ in range(scenario.workers):
            self.start_worker()

    # --- time ----------------------------------------------------------------------------------------

    def soon_us(self, low_us: int, high_us: int, process: Process | None = None) -> int:
        """A random delay, longer on a slow process."""
        delay_us = low_us + int((high_us - low_us) * self.random.random())
        if process is None or process.slowness == 1.0:
            return delay_us
        return int(delay_us * process.slowness)

    def delay_us(self, actor: SimulatedActor, low_us: int, high_us: int) -> int:
        """A random delay of one actor, longer on a slow process and for one that lags."""
        delay_us = low_us + int((high_us - low_us) * self.random.random())  # `soon_us` without a call
        if actor.process.slowness != 1.0:
            delay_us = int(delay_us * actor.process.slowness)
        return delay_us if self.healed or actor.lag == 1.0 else int(delay_us * actor.lag)

    def tell(self, what: str) -> None:
        """Add a line to the story, if it is recorded."""
        if self.story is not None:
            self.story.append(f"{self.agenda.now_us / 1000:9.1f} ms  {what}")

    # --- processes -----------------------------------------------------------------------------------

    def start_worker(self) -> None:
        """A new incarnation of a worker, empty, under an id that was never used."""
        self._workers_started += 1
        worker = WorkerId(f"w{self._workers_started}")
        slow = self.scenario.slow_worker and self._workers_started == 1
        capacity_bytes = PLENTY_BYTES if self.healed else self.scenario.room_bytes
        slowness = 10.0 if slow else 1.0
        gcs = MemoryGcs(self.address, self.incarnation)
        process = Process(worker, gcs, slowness, capacity_bytes, capacity_bytes)
        self.processes[worker] = process
        self.tell(f"{worker} starts")
        manager = TaskManager(self.scenario.renew_every_ms)
        self.spawn(process, None, TASK_MANAGER, manager.run())
        self.spawn(process, None, DISCOVERY, manager.discover())

    def live_workers(self) -> list[Process]:
        """The workers that have not crashed."""
        return [p for p in self.processes.values() if p.alive and not p.is_head]

    def crash(self, process: Process, why: str) -> None:
        """A process is gone, with everything in it."""
        if not process.alive or process.is_head:
            return
        self.tell(f"{process.id} is gone: {why}")
        self.tally.workers_lost += 1
        process.alive = False
        for actor in process.actors:
            actor.end()
        process.worker_queries.clear()
        self.mark_changed()
        self.after_crash(process)

    def after_crash(self, process: Process) -> None:
        """A crash may be noticed at once, and another worker may start."""
        if self.random.random() < 0.5:
            self.agenda.after(self.soon_us(5_000, 80_000), self.hint, process.id)
        if self.scenario.restarts or self.healed:
            self.agenda.after(self.soon_us(50_000, 1_500_000), self.start_worker)

    def hint(self, worker: WorkerId) -> None:
        """Spark says that a worker is gone."""
        self.coordinator.detector.hint(worker)

    def ensure_worker(self) -> None:
        """Make sure that there is at least one worker."""
        if not self.live_workers():
            self.start_worker()

    def _new_coordinator(self) -> Coordinator:
        return Coordinator(self.scenario.coordinator, self.queries, self.agenda.now_ms)

    def restart_coordinator(self) -> None:
        """Drop the coordinator at any point, and start a new one inside the same driver."""
        self.tell("the coordinator restarts")
        self._coordinator_actor.end()
        self.silence.restarted()
        self.coordinator = self._new_coordinator()
        self._coordinator_actor = self.spawn(self.head, None, COORDINATOR, self.coordinator.run())

    # --- queries -------------------------------------------------------------------------------------

    def submit(self, number: int) -> None:
        """Submit a query of the scenario."""
        self.submit_run(QueryId(f"q{number + 1}"), self.scenario.workloads[number])

    def submit_run(self, run: QueryId, workload: ToyWorkload, before: Running | None = None) -> None:
        """Submit a run of a query to the workers that are registered; later, if there are none."""
        lost = self.store_is_lost
        members = [worker for worker in self.store.workers if self.processes[worker].alive]
        if not members and not lost:
            self.agenda.after(50_000, self.submit_run, run, workload, before)
            return
        tolerance = self.scenario.session.tolerance
        query = Query(run, workload.graph, QueryPhase.ENTERING, tolerance=tolerance)
        self.queries[query.id] = query
        self.running[query.id] = running_of(query, workload, self.scenario.session, before)
        if lost:
            query.end(GcsLostError("The store was lost before the query was submitted."), QueryPhase.ENDED)
            return
        offset = self.random.randrange(len(members))
        hosts: dict[ChannelName, WorkerId] = {}
        for at, name in enumerate(workload.graph.channels):
            hosts[name] = HEAD if name == workload.graph.collector else members[(at + offset) % len(members)]
        self.tell(f"{query.id} is submitted to {' '.join(members)}")
        self.spawn(self.head, None, ActorName(ActorKind.SUBMIT, query.id), self._entering(query, hosts))

    def submit_late(self, number: int) -> None:
        """Submit a query that waits for a certain moment, unless it has been submitted."""
        if QueryId(f"q{number + 1}") not in self.queries:
            self.submit(number)

    def _entering(self, query: Query, hosts: dict[ChannelName, WorkerId]) -> Effects[None]:
        yield from submitting(query, hosts, b"", self.scenario.coordinator, self.agenda.now_ms)
        if not query.is_over:
            self.open_session(self.head, query.id)

    def drain(self, process: Process) -> None:
        """Ask the head to let a worker leave."""

        def leaving() -> Effects[None]:
            yield from draining(process.id, lambda: not process.alive)

        self.spawn(self.head, None, ActorName(ActorKind.DRAIN, process.id), leaving())

    def open_session(self, process: Process, query_id: QueryId) -> None:
        """A process begins to serve a query."""
        running = self.running[query_id]
        settings = running.settings or self.scenario.session
        session = QuerySession(process.id, running.query.graph, settings, lambda: self.whole(running))
        worker_query = SimulatedQuery(session, running.query)
        process.worker_queries[query_id] = worker_query
        self.spawn(process, worker_query, SESSION, session.run())

    @property
    def store_is_lost(self) -> bool:
        """Is the store another one than that with which the head began, or known to be?"""
        store = self.store
        run_id, replication_id = self.incarnation
        return self.loss_told or store.run_id != run_id or store.replication_id != replication_id

    def tell_loss(self, process: Process) -> None:
        """A worker that has lost the store tells the head, which may be connected to another one."""
        if not process.is_head:
            self.agenda.after(self.soon_us(500, 20_000, process), self._lose_store)

    def _lose_store(self) -> None:
        self.tell("the head is told that the store is lost")
        self.loss_told = True
        self._coordinator_actor.end()
        for query in self.queries.values():
            if not query.ended:
                query.end(GcsLostError("A worker has lost the store."), QueryPhase.ENDED)
        for worker_query in list(self.head.worker_queries.values()):
            self.close_session(self.head, worker_query)
        for worker in self.live_workers():  # their lifelines are closed
            self.crash(worker, "dismissed")

    def close_session(self, process: Process, worker_query: SimulatedQuery) -> None:
        """A query has ended for a process: drop everything that it held for it."""
        self.tell(f"{process.id} drops {worker_query.query.id}")
        for actor in worker_query.actors.values():
            actor.end()
        process.room_bytes += worker_query.bytes_kept
        process.worker_queries.pop(worker_query.query.id, None)
        self.mark_changed()
        if process.draining and not process.lingers and not process.worker_queries:
            self.crash(process, "drained")

    # --- actors --------------------------------------------------------------------------------------

    def spawn(
        self, process: Process, worker_query: SimulatedQuery | None, name: ActorName, effects: Effects[None]
    ) -> SimulatedActor:
        """Drive another generator; it replaces one of the same name."""
        actor = SimulatedActor(name, effects, process, worker_query)
        if worker_query is not None:
            self.stop(worker_query, name)
            worker_query.actors[name] = actor
            actor.run = channel_run_of(actor, worker_query.session)
        process.actors.append(actor)
        if self.scenario.schedule.uneven:
            actor.lag = self.random.choice(LAGS)
        self.agenda.after(self.delay_us(actor, 0, 500), self.resume, actor, None)
        return actor

    def stop(self, worker_query: SimulatedQuery, name: ActorName) -> None:
        """Stop driving a generator at any point."""
        stop_actor(worker_query.actors, name)

    def park(self, actor: SimulatedActor, limit_us: int, *, patient: bool) -> None:
        """Let an actor wait until it is woken, up to a limit; a patient one is not woken by arrivals."""
        self.agenda.after(limit_us, self._time_out, actor, actor.park(patient=patient))

    def _time_out(self, actor: SimulatedActor, wait: int) -> None:
        if actor.is_due(wait):
            self.resume(actor, True)

    def wake(self, actor: SimulatedActor | None, *, arrival: bool = False) -> None:
        """Wake an actor that may wait for what has arrived; after an arrival it may wait for more."""
        if actor is not None and actor.wake(arrival=arrival):
            if arrival:
                actor.idle = 0
            self.agenda.after(self.delay_us(actor, 0, 200), self.resume, actor, not arrival)

    def answer(self, actor: SimulatedActor, effect: Effect[Answer], value: Answer | BaseException) -> None:
        """Pass the answer to an effect in; a fault may strike first."""
        lost = self.lost_answers
        if actor.awaits(effect) and (lost is None or not lost.delays(actor, effect, value)):
            if type(effect) is Push:
                actor.answered = effect, value
            if not self.healed:
                self._visit(actor, effect, after=True)
            self.resume(actor, value)

    def resume(self, actor: SimulatedActor, value: Any) -> None:
        """One step of one actor, and then all checks."""
        process = actor.process
        if actor.state is ActorState.ENDED:
            return
        now_us = self.agenda.now_us
        if process.paused_until_us > now_us or actor.held_until_us > now_us:
            until_us = max(process.paused_until_us, actor.held_until_us)
            actor.delay()
            self.agenda.after(until_us - now_us, self.resume, actor, value)
            return
        actor.begin_step()
        self.tally.steps += 1
        if actor.worker_query is None:
            asked = actor.last
            if type(asked) is Watch and actor.name == COORDINATOR:
                self.silence.answers(value, self.agenda.now_ms())
            effect = self._send(actor, value)
            if type(asked) is ReadStatus and value is not None:
                judge_status(actor, self.running[asked.query], value, effect)
            if actor.name.kind is ActorKind.DRAIN:
                alive = self.processes[WorkerId(str(actor.name.of))].alive
                self.leaving.steps(actor, asked, value, effect, alive=alive)
            if effect is not None:
                actor.last = effect
                if not self.healed:
                    self._visit(actor, effect, after=False)
                self._perform(actor, effect)
            return  # what it changes is changed, and checked, where its calls reach the store
        self._step(actor, actor.worker_query, value)
        self.check()

    def _step(self, actor: SimulatedActor, worker_query: SimulatedQuery, value: Any) -> None:
        """One step of a session, which is judged by the effect that it requests."""
        asked = actor.last
        kind = type(asked)
        actor.eager = value is True and kind is Await
        if not isinstance(value, Exception):
            self.insisting.answers(actor, value)
            if kind is ClaimReRead:
                self.claiming.answers(actor, asked, value)
            elif kind is Complain:
                self.complaining.answers(actor, asked, value)
        effect = self._send(actor, value)
        self.insisting.yields(actor, effect)
        if effect is not None:
            if actor.run is not None:
                require_current_run(actor, effect)
            self.complaining.yields(actor, effect, self.agenda.now_ms)
            if isinstance(effect, ClaimReRead):
                self.claiming.yields(actor, effect)
            if type(effect) in JUDGED and not self.store_is_lost:
                query = worker_query.query.id
                self.running[query].scrutiny.yields(actor, effect, self.store.queries.get(query))
            actor.last = effect
            if not self.healed:
                self._visit(actor, effect, after=False)
            self._perform(actor, effect)
        self._after_step(actor, worker_query)

    def _perform(self, actor: SimulatedActor, effect: Effect[Any]) -> None:
        """Perform an effect; if its process was just paused, perform it when the process wakes as a zombie."""
        now_us = self.agenda.now_us
        if actor.state is ActorState.ENDED:
            return
        if actor.process.paused_until_us > now_us or actor.held_until_us > now_us:
            until_us = max(actor.process.paused_until_us, actor.held_until_us)
            self.agenda.after(until_us - now_us, self._perform, actor, effect)
            return
        if self.lost_answers is None or not self.lost_answers.loses(actor, effect):
            self.performer.perform(actor, effect)

    def _send(self, actor: SimulatedActor, value: Any) -> Effect[Any] | None:
        try:
            effect = actor.step(value)
        except GcsLostError:
            if actor.process.is_head and actor.worker_query is not None:
                self.close_session(actor.process, actor.worker_query)
            else:
                self.tell_loss(actor.process)
                self.crash(actor.process, "its store was lost")
            return None
        if effect is not None:
            return effect
        lost = actor.name == COORDINATOR and self.coordinator.lost is not None
        if lost and not self.store_is_lost:
            self.given_up = self.silence.is_too_long(self.agenda.now_ms())
            self._lose_store()
        elif actor.name == TASK_MANAGER:
            self.crash(actor.process, "expelled")
        elif actor.name == SESSION and actor.worker_query is not None:
            self.close_session(actor.process, actor.worker_query)
        return None

    def _after_step(self, actor: SimulatedActor, worker_query: SimulatedQuery) -> None:
        """Wake the actors that can continue because of what an actor of the same session has just done."""
        news = worker_query.news
        for other in worker_query.after_step(actor):
            self.wake(other)
        if worker_query.news != news:
            self.mark_changed()

    def _visit(self, actor: SimulatedActor, effect: Any, after: bool) -> None:
        """An actor is at a fail point: strike the faults that were waiting for it."""
        faults = self.pending_faults
        if self.healed or not (faults or self.pending_holds or self.counts_visits):
            return
        point: FailPoint = effect.point
        count = self.visits.get((point, after), 0) + 1
        self.visits[point, after] = count
        if self.pending_holds:
            strike_holds(self, actor, point, after)
        for fault in faults:
            if fault.point is point and fault.after is after and fault.nth <= count:
                break
        else:
            return  # as almost always
        for fault in faults.copy():
            if fault.point is not point or fault.after is not after or fault.nth > count:
                continue
            if fault.kind in OF_WIRES and isinstance(effect, Push) and effect.target == actor.process.id:
                continue  # it waits for a push that passes a wire
            again = fault.kind is FaultKind.REFUSED and fault.nth > 1
            if again and isinstance(effect, Complain) and not effect.reachable:
                continue  # it waits for a withdrawal
            self.pending_faults.remove(fault)
            if self.striker.strike(fault, actor):
                self.tally.fired.append((fault.point, fault.kind))

    def dissolve(self) -> None:
        """Let go of everything: then it is freed at once, and no collection has to search it for cycles."""
        for process in self.processes.values():
            process.dissolve()
        self.__dict__.clear()

    # --- checks --------------------------------------------------------------------------------------

    def mark_changed(self) -> None:
        """Note a change outside the store that the invariants depend on."""
        for running in self.running.values():
            running.changed = True

    def mark_arrival(self, query: QueryId, worker: WorkerId) -> None:
        """Note that only an arrival at a worker has changed."""
        self.running[query].arrived_at.add(worker)

    def check(self) -> None:
        """Check all invariants of all queries."""
        check_queries(self)

    def run_until(self, done: Callable[[], bool], limit_ms: int, steps_max: int) -> bool:
        """Run events until a condition holds; False if it does not in time."""
        agenda, tally = self.agenda, self.tally
        deadline_us, last_step = agenda.now_us + limit_ms * 1000, tally.steps + steps_max
        entries = agenda.entries
        while not done():
            for _ in _EVENTS:
                if agenda.now_us > deadline_us or tally.steps > last_step or not entries:
                    return done()
                agenda.now_us, _, do, arguments = heappop(entries)  # `agenda.next` without a call
                do(*arguments)
        return True
