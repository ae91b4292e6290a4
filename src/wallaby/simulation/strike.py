"""Striking: what each kind of fault does to the simulated world, and healing it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wallaby.gcs.memory import StoredQuery
from wallaby.simulation.faults import Fault, FaultKind
from wallaby.simulation.process import Actor, Process
from wallaby.simulation.world import PLENTY_BYTES, World

#: Messages or calls that one fault befalls, at most.
BURST_MAX = 4
#: Faults that wait for the victim's next messages or calls, by the name under which they wait.
_ARMED = {
    FaultKind.DROP: "drop",
    FaultKind.DUPLICATE: "duplicate",
    FaultKind.REORDER: "reorder",
    FaultKind.CUT: "cut",
    FaultKind.REPLY_LOST: "reply lost",
    FaultKind.REFUSED: "refused",
}
#: Those of them that befall the caller's own calls to the store, be it a worker or the coordinator.
_OF_CALLS = (FaultKind.REPLY_LOST, FaultKind.REFUSED, FaultKind.REORDER)


class Striker:
    """Applies faults to a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._restarts = 0
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
            FaultKind.STORE_PARTITION: self._cut_from_store,
            FaultKind.STORE_PAUSE: self._pause_store,
            FaultKind.STORE_EMPTY: lambda _: self._restart_store(keep=False),
            FaultKind.STORE_TRUNCATED: lambda _: self._restart_store(keep=True),
            FaultKind.COORDINATOR_RESTART: lambda _: world.restart_coordinator(),
            FaultKind.CANCEL: self._cancel,
        }

    def strike(self, fault: Fault, actor: Actor) -> bool:
        """Apply one fault where an actor stands; False if there was nothing it could befall."""
        world = self._world
        victim = self._victim(actor)
        if victim is None:
            return False
        world.tell(f"*** {fault}, at {actor.process.id} {actor.name}, befalls {victim.id}")
        if fault.kind in _ARMED:
            caller = fault.kind in _OF_CALLS and not fault.after
            (actor.process if caller else victim).armed[_ARMED[fault.kind]] = world.random.randint(
                1, BURST_MAX
            )
        else:
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

    def _pause(self, victim: Process) -> None:
        """Longer than its lease, mostly: it wakes as a zombie."""
        self._stop_for(victim, self._lease_us, 5 * self._lease_us)

    def _stall(self, victim: Process) -> None:
        self._stop_for(victim, 10_000, self._lease_us // 2)

    def _stop_for(self, victim: Process, low_us: int, high_us: int) -> None:
        victim.paused_until_us = self._world.agenda.now_us + self._world.soon_us(low_us, high_us)

    def _fill_disk(self, victim: Process) -> None:
        victim.capacity_bytes -= victim.room_bytes
        victim.room_bytes = 0

    def _drain(self, victim: Process) -> None:
        """The worker says that it leaves; it goes when it is free, or when its time is up."""
        world = self._world
        victim.draining = True
        if world.store.workers.get(victim.id) is not None:
            world.store.workers[victim.id].draining = True
        world.agenda.after(world.soon_us(200_000, 3_000_000), world.crash, victim, "its time to drain is up")

    # --- network, store, driver ----------------------------------------------------------------------

    def _cut_from_store(self, victim: Process) -> None:
        victim.store_cut_until_us = self._world.agenda.now_us + self._world.soon_us(
            20_000, 5 * self._lease_us
        )

    def _pause_store(self, _: Process) -> None:
        world = self._world
        world.store_paused_until_us = world.agenda.now_us + world.soon_us(20_000, 4 * self._lease_us)

    def _cancel(self, _: Process) -> None:
        for query in self._world.queries.values():
            query.cancelled = True

    def _victim(self, actor: Actor) -> Process | None:
        if not actor.process.is_head and actor.process.alive:
            return actor.process
        live = self._world.live_workers()
        return self._world.random.choice(live) if live else None

    def _another(self, process: Process) -> Process | None:
        others = [p for p in self._world.live_workers() if p is not process]
        return self._world.random.choice(others) if others else None

    def _partition(self, victim: Process) -> None:
        world = self._world
        other = world.head if world.random.random() < 0.2 else self._another(victim)
        if other is not None:
            until_us = world.agenda.now_us + world.soon_us(50_000, 3_000_000)
            world.cuts_until_us[frozenset((victim.id, other.id))] = until_us

    def _restart_store(self, keep: bool) -> None:
        """The store comes back under a new run id, empty or as it was some writes ago."""
        store = self._world.store
        self._restarts += 1
        if not keep:
            store.queries.clear()
        for state in store.queries.values():
            self._forget_some(state)
        store.run_id = f"restart {self._restarts}"
        store.workers.clear()

    def _forget_some(self, state: StoredQuery) -> None:
        """The last record of some channels is lost, with the claim that came with it."""
        for name, records in state.records.items():
            if records and self._world.random.random() < 0.5:
                records.pop()
                state.channels[name] = replace(state.channels[name], length=len(records), final=False)

    def heal(self) -> None:
        """No more faults: links, store, disks and clocks are well again, and there is a worker."""
        world = self._world
        world.tell("--- healed ---")
        world.healed = True
        world.pending_faults.clear()
        world.cuts_until_us.clear()
        world.store_paused_until_us = 0
        if world.store.run_id != world.head_run_id:
            world.store.queries.clear()  # whoever attaches next sweeps what nobody could remove
        for process in world.processes.values():
            process.armed.clear()
            process.store_cut_until_us = 0
            process.paused_until_us = 0
            process.slowness = 1.0
        for process in world.live_workers():
            process.room_bytes += PLENTY_BYTES
            process.capacity_bytes += PLENTY_BYTES
        world.ensure_worker()
