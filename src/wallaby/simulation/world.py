"""The simulated world: processes, the generators that run in them, and the checks after every step.

One step is one generator resumed, or one message received. Between any two steps anything else may happen:
the agenda interleaves all actors by random delays, a fault may strike before an effect or after it, and a
process that crashes takes its generators, inboxes, backups and arrived slices with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings, Query
from wallaby.errors import GcsLostError
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.attempt import Effects
from wallaby.lineage.effects import FailPoint, Output
from wallaby.lineage.invariants import Audit
from wallaby.lineage.names import HEAD, ChannelName, QueryId, TaskName, Upstream, WorkerId
from wallaby.lineage.sighting import WorkerState
from wallaby.simulation.agenda import Agenda
from wallaby.simulation.faults import Fault
from wallaby.simulation.process import Actor, Process, Serving, Tally
from wallaby.simulation.workload import Row, Workload
from wallaby.worker.session import Session, SessionSettings
from wallaby.worker.taskmanager import TaskManager

#: More than any query of the simulation could back up.
PLENTY_BYTES = 1 << 40


@dataclass(frozen=True)
class Scenario:
    """All that a seed draws but its faults."""

    workloads: tuple[Workload, ...]
    session: SessionSettings
    coordinator: CoordinatorSettings
    workers: int
    renew_every_ms: int
    room_bytes: int
    slow_worker: bool
    #: Do crashed workers come back, each as a new incarnation?
    restarts: bool
    random_seed: int


@dataclass(slots=True)
class Running:
    """One query in the world: what was drawn for it, and what is known of it from outside."""

    query: Query
    workload: Workload
    audit: Audit
    collected: Counter[Row] = field(default_factory=Counter)
    #: What is in the durable store of it: outputs by task, checksum and whether it is the last; saved states.
    spooled: dict[tuple[TaskName, int, bool], Output] = field(default_factory=dict)
    saved: dict[tuple[TaskName, str], tuple[Any, dict[Upstream, int]]] = field(default_factory=dict)
    checked_version: int = 0
    changed: bool = False
    #: How often its fickle task was executed.
    fickle_runs: int = 0
    without_worker_since_ms: int | None = None
    #: How often a coordinator has seen that it is past its limit without workers.
    looks_too_late: int = 0


class Performs(Protocol):
    """Whoever performs effects; see `perform`."""

    def perform(self, actor: Actor, effect: Any) -> None:
        """Perform an effect; its answer comes in later."""


class Strikes(Protocol):
    """Whoever applies faults; see `strike`."""

    def strike(self, fault: Fault, actor: Actor) -> bool:
        """Apply one fault where an actor stands; False if there was nothing it could befall."""

    def heal(self) -> None:
        """End all faults."""


class World:
    """Everything that exists in one run of one seed."""

    def __init__(
        self,
        scenario: Scenario,
        faults: tuple[Fault, ...],
        performer: Callable[[World], Performs],
        striker: Callable[[World], Strikes],
        story: list[str] | None = None,
    ) -> None:
        self.scenario = scenario
        self.random = Random(scenario.random_seed)
        self.agenda = Agenda()
        self.store = MemoryStore(self.agenda.now_ms)
        self.head_run_id = self.store.run_id
        self.store_paused_until_us = 0
        self.tally = Tally()
        self.story = story
        self.healed = False
        self.pending_faults = list(faults)
        self.processes: dict[WorkerId, Process] = {}
        self.cuts_until_us: dict[frozenset[WorkerId], int] = {}
        self.running: dict[QueryId, Running] = {}
        self.queries: dict[QueryId, Query] = {}
        self.visits: Counter[tuple[FailPoint, bool]] = Counter()
        self._workers_started = 0
        self.performer = performer(self)
        self.striker = striker(self)
        self.head = Process(HEAD, MemoryGcs(self.store))
        self.processes[HEAD] = self.head
        self.coordinator = self._new_coordinator()
        self._coordinator_actor = self.spawn(self.head, None, "coordinator", self.coordinator.run())
        for _ in range(scenario.workers):
            self.start_worker()

    # --- time ----------------------------------------------------------------------------------------

    def soon_us(self, low_us: int, high_us: int, process: Process | None = None) -> int:
        """A random delay, longer on a slow process."""
        delay_us = low_us + int((high_us - low_us) * self.random.random())
        return int(delay_us * process.slowness) if process is not None else delay_us

    def tell(self, what: str) -> None:
        """A line of the story, if somebody listens."""
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
        process = Process(worker, MemoryGcs(self.store), slowness, capacity_bytes, capacity_bytes)
        self.processes[worker] = process
        self.tell(f"{worker} starts")
        manager = TaskManager(self.scenario.renew_every_ms)
        self.spawn(process, None, "task manager", manager.run())
        self.spawn(process, None, "discovery", manager.discover())

    def live_workers(self) -> list[Process]:
        """The workers that have not crashed, whether or not anybody believes it."""
        return [p for p in self.processes.values() if p.alive and not p.is_head]

    def crash(self, process: Process, why: str) -> None:
        """A process is gone, with everything in it."""
        if not process.alive or process.is_head:
            return
        self.tell(f"{process.id} is gone: {why}")
        self.tally.workers_lost += 1
        process.alive = False
        for actor in process.actors:
            actor.alive = False
        process.servings.clear()
        self.mark_changed()
        self.after_crash(process)

    def after_crash(self, process: Process) -> None:
        """Somebody may notice at once, and another worker may come."""
        if self.random.random() < 0.5:
            self.agenda.after(self.soon_us(5_000, 80_000), self.hint, process.id)
        if self.scenario.restarts or self.healed:
            self.agenda.after(self.soon_us(50_000, 1_500_000), self.start_worker)

    def hint(self, worker: WorkerId) -> None:
        """Spark says that a worker is gone."""
        self.coordinator.detector.hint(worker)

    def ensure_worker(self) -> None:
        """There is at least one worker."""
        if not self.live_workers():
            self.start_worker()

    def _new_coordinator(self) -> Coordinator:
        return Coordinator(self.scenario.coordinator, self.queries, self.agenda.now_ms)

    def restart_coordinator(self) -> None:
        """The coordinator is dropped wherever it is, and begins anew inside the same driver."""
        self.tell("the coordinator restarts")
        self._coordinator_actor.alive = False
        self.coordinator = self._new_coordinator()
        self._coordinator_actor = self.spawn(self.head, None, "coordinator", self.coordinator.run())

    # --- queries -------------------------------------------------------------------------------------

    def submit(self, number: int) -> None:
        """Submit a query to the workers that are registered; later, if there are none."""
        lost = self.store.run_id != self.head_run_id
        members = [worker for worker in self.store.workers if self.processes[worker].alive]
        if not members and not lost:
            self.agenda.after(50_000, self.submit, number)
            return
        workload = self.scenario.workloads[number]
        tolerance = self.scenario.session.tolerance
        query = Query(QueryId(f"q{number + 1}"), workload.graph, tolerance=tolerance)
        self.queries[query.id] = query
        self.running[query.id] = Running(query, workload, Audit(workload.graph))
        if lost:
            query.error, query.ended = (
                GcsLostError("The store was lost before the query was submitted."),
                True,
            )
            return
        offset = self.random.randrange(len(members))
        hosts: dict[ChannelName, WorkerId] = {}
        for at, name in enumerate(workload.graph.channels):
            hosts[name] = HEAD if name == workload.graph.collector else members[(at + offset) % len(members)]
        self.head.gcs.submit(query.id, workload.graph, hosts)
        self.tell(f"{query.id} is submitted to {' '.join(members)}")
        self.open_session(self.head, query.id)

    def open_session(self, process: Process, query_id: QueryId) -> None:
        """A process begins to serve a query."""
        running = self.running[query_id]
        session = Session(
            process.id, running.query.graph, self.scenario.session, lambda: self._collected(running)
        )
        serving = Serving(running.query, session)
        process.servings[query_id] = serving
        self.spawn(process, serving, "session", session.run())

    def _collected(self, running: Running) -> None:
        self.tell(f"{running.query.id}: the whole result is at the client")
        running.query.collected = True

    def close_session(self, process: Process, serving: Serving) -> None:
        """A query is over for a process: everything that it held for it goes."""
        self.tell(f"{process.id} drops {serving.query.id}")
        for actor in serving.actors.values():
            actor.alive = False
        process.room_bytes += serving.bytes_kept
        process.servings.pop(serving.query.id, None)
        self.mark_changed()
        if process.draining and not process.servings:
            self.crash(process, "drained")

    # --- actors --------------------------------------------------------------------------------------

    def spawn(self, process: Process, serving: Serving | None, name: str, effects: Effects) -> Actor:
        """Drive another generator, in place of one of the same name."""
        actor = Actor(name, process, effects, serving)
        if serving is not None:
            self.stop(serving, name)
            serving.actors[name] = actor
        process.actors.append(actor)
        self.agenda.after(self.soon_us(0, 500, process), self.resume, actor, None)
        return actor

    def stop(self, serving: Serving, name: str) -> None:
        """Stop driving a generator, wherever it is."""
        old = serving.actors.pop(name, None)
        if old is not None:
            old.alive = False

    def park(self, actor: Actor, limit_us: int, *, patient: bool) -> None:
        """Let an actor wait until it is woken, or for so long; a patient one is not woken by arrivals."""
        actor.parked = True
        actor.patient = patient
        self.agenda.after(limit_us, self._time_out, actor, actor.wait)

    def _time_out(self, actor: Actor, wait: int) -> None:
        if actor.parked and actor.wait == wait:
            self.resume(actor, True)

    def wake(self, actor: Actor | None, *, arrival: bool = False) -> None:
        """Something has come that an actor may be waiting for; an arrival is worth waiting for more."""
        if actor is not None and actor.alive and actor.parked and not (arrival and actor.patient):
            actor.parked = False
            if arrival:
                actor.idle = 0
            self.agenda.after(self.soon_us(0, 200, actor.process), self.resume, actor, not arrival)

    def wake_others(self, serving: Serving, but: Actor) -> None:
        """Wake everything else that waits in a session."""
        for actor in serving.actors.values():
            if actor is not but:
                self.wake(actor)

    def answer(self, actor: Actor, effect: Any, value: Any) -> None:
        """The answer to an effect comes in; a fault may strike first."""
        if actor.alive:
            self._visit(actor, effect, after=True)
            self.resume(actor, value)

    def resume(self, actor: Actor, value: Any) -> None:
        """One step of one actor, and then all checks."""
        process = actor.process
        if not actor.alive:
            return
        if process.paused_until_us > self.agenda.now_us:
            actor.parked = False
            self.agenda.after(process.paused_until_us - self.agenda.now_us, self.resume, actor, value)
            return
        actor.wait += 1
        actor.parked = False
        self.tally.steps += 1
        effect = self._send(actor, value)
        if effect is not None:
            self._visit(actor, effect, after=False)
            self._perform(actor, effect)
        if actor.serving is not None:
            self._after_step(actor, actor.serving)
        self.check()

    def _perform(self, actor: Actor, effect: Any) -> None:
        """Perform an effect, or, if the process was paused just before it, when that wakes as a zombie."""
        wait_us = actor.process.paused_until_us - self.agenda.now_us
        if actor.alive and wait_us > 0:
            self.agenda.after(wait_us, self._perform, actor, effect)
        elif actor.alive:
            self.performer.perform(actor, effect)

    def _send(self, actor: Actor, value: Any) -> Any:
        try:
            return actor.effects.throw(value) if isinstance(value, Exception) else actor.effects.send(value)
        except StopIteration:
            actor.alive = False
            if actor.name == "task manager":
                self.crash(actor.process, "expelled")
            elif actor.name == "session" and actor.serving is not None:
                self.close_session(actor.process, actor.serving)
        except GcsLostError:
            actor.alive = False
            if actor.process.is_head and actor.serving is not None:
                self.close_session(actor.process, actor.serving)
            else:
                self.crash(actor.process, "its store was lost")
        return None

    def _after_step(self, actor: Actor, serving: Serving) -> None:
        """Wake whoever may go on because of what an actor of the same session has just done."""
        if serving.session.host.look_wanted:
            self.wake(serving.actors.get("session"))
        if actor.name == "session":
            news = serving.session.news()
            if news != serving.news:
                serving.news = news
                self.wake_others(serving, actor)
                self.mark_changed()
        elif serving.sent_news != serving.session.host.outbox.news:
            serving.sent_news = serving.session.host.outbox.news
            for target in serving.session.host.outbox.targets():
                self.wake(serving.actors.get(f"deliver to {target}"))

    def _visit(self, actor: Actor, effect: Any, after: bool) -> None:
        """An actor is at a fail point: strike the faults that were waiting for it."""
        if self.healed:
            return
        point: FailPoint = effect.point
        self.visits[point, after] += 1
        if not self.pending_faults:
            return
        due = [
            f
            for f in self.pending_faults
            if f.point is point and f.after is after and f.nth <= self.visits[point, after]
        ]
        for fault in due:
            self.pending_faults.remove(fault)
            if self.striker.strike(fault, actor):
                self.tally.fired.append((fault.point, fault.kind))

    # --- checks --------------------------------------------------------------------------------------

    def mark_changed(self) -> None:
        """Something has changed that the invariants speak of, beside the store."""
        for running in self.running.values():
            running.changed = True

    def check(self) -> None:
        """Check all invariants of all queries; what has not changed since the last time still holds."""
        for query_id, running in self.running.items():
            state = self.store.queries.get(query_id)
            if state is None or self.store.run_id != self.head_run_id:
                continue
            if state.version != running.checked_version:
                running.checked_version = state.version
                running.changed = True
                running.audit.check_store(state)
            if running.changed:
                running.changed = False
                workers = self._worker_states(query_id)
                for worker, seen in workers.items():
                    running.audit.check_worker(state, worker, seen)
                running.audit.check_reachable(state, workers)

    def _worker_states(self, query_id: QueryId) -> dict[WorkerId, WorkerState]:
        states = {}
        for worker, process in self.processes.items():
            if process.alive:
                serving = process.servings.get(query_id)
                if serving is not None:
                    session = serving.session
                    backups: Container[TaskName] = serving.backups
                    if serving.query.tolerance.durable:
                        backups = {*serving.backups, *(task for task, _, _ in self.running[query_id].spooled)}
                    states[worker] = WorkerState(
                        session.host.epoch, session.tenures, session.host.outbox, backups
                    )
        return states

    def run_until(self, done: Callable[[], bool], limit_ms: int, steps_max: int) -> bool:
        """Let things happen until something holds; False if it does not in time."""
        deadline_us = self.agenda.now_us + limit_ms * 1000
        last_step = self.tally.steps + steps_max
        while not done():
            if self.agenda.now_us > deadline_us or self.tally.steps > last_step or not self.agenda.next():
                return False
        return True
