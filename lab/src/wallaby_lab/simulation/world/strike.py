"""What each kind of fault does to the simulated world, and how the world is healed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

from wallaby.coordinator.effects import AddMember, Freeze, Watch
from wallaby.errors import GcsError
from wallaby.gcs.memory import MemoryStore, StoredQuery
from wallaby.lineage.effects import FailPoint, Push
from wallaby.lineage.kept import Fetch
from wallaby.lineage.names import HEAD, QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.effects import Complain
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import PLENTY_BYTES
from wallaby_lab.simulation.world.process import Process, SimulatedActor
from wallaby_lab.simulation.world.running import Running
from wallaby_lab.simulation.world.wires import FOR_GOOD_US, Trouble
from wallaby_lab.simulation.world.world import World

#: The most messages or calls that one fault strikes.
BURST_MAX = 4
#: The workers that are cut from the store for good, of those that are cut from it.
_CUT_FOR_GOOD_SHARE = 0.2
#: Faults that wait for the victim's next messages or calls, with the names under which they wait.
_ARMED = {
    FaultKind.DROP: "drop",
    FaultKind.DUPLICATE: "duplicate",
    FaultKind.REORDER: "reorder",
    FaultKind.CUT: "cut",
    FaultKind.REPLY_LOST: "reply lost",
    FaultKind.REFUSED: "refused",
}
#: Those of them that strike the caller's own calls to the store, of a worker or the coordinator.
_OF_CALLS = (FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.REORDER)


class Striker:
    """Applies faults to a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._restarts = 0
        #: The worker to which the struck actor is just sending something.
        self._pushing_to: WorkerId | None = None
        self._pushing_by = FailPoint.DELIVER
        #: The query in whose name the struck actor is just complaining.
        self._complaining: QueryId | None = None
        #: How often the head is one end of a wire in trouble.
        self._head_share = 0.2
        #: The worker from which a reader is just fetching something.
        self._fetching_from: WorkerId | None = None
        #: The store as it was a moment ago, in seeds in which it may go back to that.
        self._past: MemoryStore | None = None
        if any(fault.kind in (FaultKind.STORE_BACK, FaultKind.STORE_SPLIT) for fault in world.pending_faults):
            self._remember()
        self._lease_us = world.scenario.coordinator.lease_ms * 1000
        self._strikes: dict[FaultKind, Callable[[Process], None]] = {
            FaultKind.CRASH: self._crash,
            FaultKind.CRASH_TWO: self._crash_two,
            FaultKind.PAUSE: self._pause,
            FaultKind.STALL: self._stall,
            FaultKind.DISK_FULL: self._fill_disk,
            FaultKind.DRAIN: self._drain,
            FaultKind.JOIN: lambda _: world.start_worker(),
            FaultKind.PARTITION: self._partition,
            FaultKind.CUT_FOR_GOOD: self._cut_for_good,
            FaultKind.ONE_WAY: self._cut_one_way,
            FaultKind.FLAPPING: self._let_flap,
            FaultKind.SLOW_WIRE: self._slow_down,
            FaultKind.PICKY_WIRE: self._make_picky,
            FaultKind.STORE_PARTITION: self._cut_from_store,
            FaultKind.STORE_PAUSE: self._pause_store,
            FaultKind.STORE_EMPTY: lambda _: self._restart_store(keep=False),
            FaultKind.STORE_TRUNCATED: lambda _: self._restart_store(keep=True),
            FaultKind.STORE_BACK: lambda _: self._set_store_back(),
            FaultKind.STORE_SPLIT: lambda _: self._split_store(),
            FaultKind.COORDINATOR_RESTART: lambda _: world.restart_coordinator(),
            FaultKind.HEAD_PAUSE: lambda _: self._pause_head(),
            FaultKind.CANCEL: self._cancel,
            FaultKind.OUT_OF_MEMORY: self._run_out_of_memory,
            FaultKind.RELEASE: self._release,
        }

    def strike(self, fault: SimulatedFault, actor: SimulatedActor) -> bool:
        """Apply one fault at an actor; False if there was nothing that it could strike."""
        world = self._world
        victim = self._victim(actor)
        if fault.kind is FaultKind.RELEASE and not self._kept():
            world.pending_faults.append(fault)  # it waits for a query whose result stays
            return False
        if victim is None:
            return False
        world.tell(f"*** {fault}, at {actor.process.id} {actor.name}, befalls {victim.id}")
        if fault.kind in _ARMED:
            caller = fault.kind in _OF_CALLS and not fault.after
            most = 1 if fault.point in (FailPoint.REGISTER, FailPoint.JOIN) else BURST_MAX
            (actor.process if caller else victim).armed[_ARMED[fault.kind]] = world.random.randint(1, most)
        else:
            push = actor.effect if isinstance(actor.effect, Push) else None
            self._pushing_to = push.target if push is not None else None
            complains = isinstance(actor.effect, Complain) and actor.worker_query is not None
            self._complaining = (
                actor.worker_query.query.id if complains and actor.worker_query is not None else None
            )
            self._head_share = 0.6 if isinstance(actor.effect, Watch) else 0.2
            self._fetching_from = actor.effect.worker if isinstance(actor.effect, Fetch) else None
            self._pushing_by = push.point if push is not None else FailPoint.DELIVER
            self._strikes[fault.kind](victim)
        return True

    # --- workers -------------------------------------------------------------------------------------

    def _crash(self, victim: Process) -> None:
        self._world.crash(victim, "crashed")

    def _crash_two(self, victim: Process) -> None:
        other = self._another(victim)
        self._world.crash(victim, "crashed")
        if other is not None:
            self._world.crash(other, "crashed too")

    def _run_out_of_memory(self, victim: Process) -> None:
        """A query takes a worker's memory, which is noted, and the kernel kills the worker; then perhaps another."""
        world = self._world
        if not victim.worker_queries or not victim.alive:
            self._crash(victim)
            return
        query = world.random.choice(sorted(victim.worker_queries))
        with suppress(GcsError):  # nothing is noted in a lost store, as with a real worker
            if victim.gcs.strain(query, victim.id, True) is Verdict.DONE:
                world.tell(f"{victim.id} is short of memory because of {query}")
                world.running[query].strained.add(victim.id)
        world.crash(victim, "out of memory")
        other = self._another(victim)
        if other is not None and world.random.random() < 0.5:
            world.agenda.after(world.soon_us(50_000, 1_500_000), self._run_out_of_memory, other)

    def _pause(self, victim: Process) -> None:
        """Pause a worker, mostly for longer than its lease: it wakes as a zombie."""
        self._stop_for(victim, self._lease_us, 5 * self._lease_us)

    def _stall(self, victim: Process) -> None:
        self._stop_for(victim, 10_000, self._lease_us // 2)

    def _stop_for(self, victim: Process, low_us: int, high_us: int) -> None:
        victim.paused_until_us = self._world.agenda.now_us + self._world.soon_us(low_us, high_us)

    def _fill_disk(self, victim: Process) -> None:
        victim.capacity_bytes -= victim.room_bytes
        victim.room_bytes = 0

    def _drain(self, victim: Process) -> None:
        """The worker announces that it leaves; it ends when it is free, or when its time is up."""
        world = self._world
        victim.draining, victim.lingers = True, world.random.random() < 0.5
        world.drain(victim)
        world.agenda.after(world.soon_us(200_000, 3_000_000), world.crash, victim, "its time to drain is up")

    # --- network, store, driver ----------------------------------------------------------------------

    def _cut_from_store(self, victim: Process) -> None:
        """Cut a worker from the store for a while, sometimes for good."""
        world = self._world
        victim.store_cut_until_us = world.agenda.now_us + world.soon_us(20_000, 5 * self._lease_us)
        if world.random.random() < _CUT_FOR_GOOD_SHARE:
            victim.store_cut_until_us, victim.is_cut_from_store_for_good = FOR_GOOD_US, True

    def _pause_head(self) -> None:
        """Pause the driver: its coordinator, its collectors and all that it answers."""
        world = self._world
        self._stop_for(world.head, self._lease_us // 2, 8 * self._lease_us)
        world.reach.head_paused(world.head.paused_until_us)
        world.silence.paused((world.head.paused_until_us - world.agenda.now_us) // 1000)

    def _pause_store(self, _: Process) -> None:
        world = self._world
        world.store_paused_until_us = world.agenda.now_us + world.soon_us(20_000, 4 * self._lease_us)

    def _cancel(self, _: Process) -> None:
        """Cancel all queries, or one of several: that in whose name somebody complains, if somebody does."""
        queries = list(self._world.queries.values())
        if self._complaining is not None:
            queries = [self._world.queries[self._complaining]]
        if len(queries) > 1 and self._world.random.random() < 0.5:
            queries = [self._world.random.choice(queries)]
        for query in queries:
            running = self._world.running[query.id]
            running.cancelled |= not query.is_whole
            running.unwanted |= not query.is_whole
            query.cancel()

    def _kept(self) -> list[Running]:
        """The queries whose results stay with the workers, or will."""
        running = self._world.running.values()
        return [each for each in running if each.query.graph.keeps and not each.query.is_over]

    def _release(self, _: Process) -> None:
        """Release all results that stay, whether they are whole or still being made."""
        for running in self._kept():
            running.cancelled |= not running.query.is_whole
            running.unwanted = True
            running.query.release()

    def _victim(self, actor: SimulatedActor) -> Process | None:
        if not actor.process.is_head and actor.process.alive:
            return actor.process
        effect, live = actor.effect, self._world.live_workers()
        if isinstance(effect, Fetch) and self._world.processes[effect.worker] in live:
            live = [
                self._world.processes[effect.worker],
                *live,
            ]  # mostly the one that is just being read from
        meant: tuple[WorkerId, ...] = ()
        if isinstance(effect, Freeze | AddMember):  # mostly one that is about to leave, or has just come
            meant = effect.draining if isinstance(effect, Freeze) else (effect.worker,)
        live = [*live, *3 * [p for p in live if p.id in meant]]
        return self._world.random.choice(live) if live else None

    def _another(self, process: Process) -> Process | None:
        others = [p for p in self._world.live_workers() if p is not process]
        return self._world.random.choice(others) if others else None

    def _partition(self, victim: Process) -> None:
        self._spoil(victim, Trouble(self._for_a_while_us()))

    def _cut_for_good(self, victim: Process) -> None:
        """Cut a wire; sometimes all that lead from a worker to others."""
        self._spoil(victim, Trouble(FOR_GOOD_US))
        if self._world.random.random() < 0.2:
            for other in self._world.live_workers():
                if other is not victim:
                    self._world.wires.spoil(victim.id, other.id, Trouble(FOR_GOOD_US), one_way=False)

    def _cut_one_way(self, victim: Process) -> None:
        """Cut one direction of a wire, mostly for good."""
        for_good = self._world.random.random() < 0.7
        self._spoil(victim, Trouble(FOR_GOOD_US if for_good else self._for_a_while_us()), one_way=True)

    def _let_flap(self, victim: Process) -> None:
        self._spoil(victim, Trouble(FOR_GOOD_US, period_us=self._world.soon_us(50_000, 3_000_000)))

    def _slow_down(self, victim: Process) -> None:
        """Slow a wire down so much that some pushes, or all, are not answered in time."""
        self._spoil(victim, Trouble(FOR_GOOD_US, late_us=self._world.soon_us(20_000, 250_000)))

    def _make_picky(self, victim: Process) -> None:
        """Make a wire lose re-reads but not deliveries, or the reverse, or only large pushes."""
        random = self._world.random
        until_us = FOR_GOOD_US if random.random() < 0.7 else self._for_a_while_us()
        kind = random.choice((self._pushing_by, FailPoint.REREAD_DELIVER, None))
        self._spoil(
            victim, Trouble(until_us, only=kind, only_bytes=0 if kind else random.choice((1, 16, 40)))
        )

    def _for_a_while_us(self) -> int:
        return self._world.agenda.now_us + self._world.soon_us(50_000, 3_000_000)

    def _spoil(self, victim: Process, trouble: Trouble, *, one_way: bool = False) -> None:
        world = self._world
        if self._fetching_from is not None and world.random.random() < 0.7:
            world.wires.spoil(HEAD, self._fetching_from, trouble, one_way=one_way)
            return
        other = world.head if world.random.random() < self._head_share else self._another(victim)
        target = world.processes.get(self._pushing_to) if self._pushing_to is not None else None
        if target is not None and target is not victim and world.random.random() < 0.7:
            world.wires.spoil(victim.id, target.id, trouble, one_way=one_way)
            return
        if other is None:
            return
        ends = (victim.id, other.id) if world.random.random() < 0.5 else (other.id, victim.id)
        world.wires.spoil(*ends, trouble, one_way=one_way)

    def _restart_store(self, keep: bool) -> None:
        """Restart the store with a new run id, empty or as it was some writes ago."""
        store = self._world.store
        self._restarts += 1
        if not keep:
            store.queries.clear()
        for state in store.queries.values():
            self._forget_some(state)
        store.run_id = f"restart {self._restarts}"
        store.workers.clear()

    def _remember(self) -> None:
        """Remember the store as a replica has it: everything up to some moment."""
        world, store = self._world, self._world.store
        self._past = _copied(store)
        if not world.healed:
            world.agenda.after(world.soon_us(5_000, 60_000), self._remember)

    def _set_store_back(self) -> None:
        """Demote and promote the store again: the same run and the same connections, but the last writes are gone."""
        assert self._past is not None
        store = self._world.store
        self._restarts += 1
        past = _copied(self._past)
        store.workers, store.expelled, store.queries = past.workers, past.expelled, past.queries
        store.replication_id = f"promotion {self._restarts}"

    def _split_store(self) -> None:
        """Promote a replica. Some processes, and all later ones, are led to it; others stay at the old primary."""
        assert self._past is not None
        world = self._world
        self._restarts += 1
        other = _copied(self._past)
        other.run_id, other.replication_id = f"replica {self._restarts}", f"promotion {self._restarts}"
        world.address = other
        moved = [process for process in world.live_workers() if world.random.random() < 0.5]
        for process in moved:
            process.gcs.lead_to(other)
        world.tell(f"{' '.join(process.id for process in moved) or 'nobody'} is led to another store")

    def _forget_some(self, state: StoredQuery) -> None:
        """Lose the last record of some channels, with the claim that came with it."""
        for name, records in state.records.items():
            if records and self._world.random.random() < 0.5:
                records.pop()
                state.channels[name] = replace(state.channels[name], length=len(records), final=False)

    def heal(self) -> None:
        """End all faults: links, store, disks and clocks work again, and there is a worker."""
        world = self._world
        world.tell("--- healed ---")
        world.healed = True
        world.pending_faults.clear()
        world.cuts_until_us.clear()
        world.wires.heal()
        world.store_paused_until_us = 0
        if world.store_is_lost:
            world.store.queries.clear()  # the next engine sweeps what nobody could remove
        for process in world.processes.values():
            process.armed.clear()
            if not process.is_cut_from_store_for_good:
                process.store_cut_until_us = 0
            process.paused_until_us = 0
            process.slowness = 1.0
        for process in world.live_workers():
            process.room_bytes += PLENTY_BYTES
            process.capacity_bytes += PLENTY_BYTES
        world.ensure_worker()


def _copied(store: MemoryStore) -> MemoryStore:
    """A copy of a store. The items of its containers are never changed in place, except records."""
    queries = {
        query: replace(
            state,
            channels=dict(state.channels),
            records={name: list(records) for name, records in state.records.items()},
            delivered=dict(state.delivered),
            members=dict(state.members),
            next_split=dict(state.next_split),
            departed=dict(state.departed),
            strained=set(state.strained),
            lost_strained=set(state.lost_strained),
            rereads=list(state.rereads),
            claims=dict(state.claims),
        )
        for query, state in store.queries.items()
    }
    return replace(
        store,
        workers=deepcopy(store.workers),
        expelled=set(store.expelled),
        queries=queries,
        barred=set(store.barred),
    )
