"""Striking: what each kind of fault does to the simulated world, and healing it again."""

from __future__ import annotations

from dataclasses import replace

from wallaby.gcs.memory import StoredQuery
from wallaby.simulation.faults import Fault, FaultKind
from wallaby.simulation.process import Actor, Process
from wallaby.simulation.world import PLENTY_BYTES, World

#: Messages or calls that one fault befalls, at most.
BURST_MAX = 4


class Striker:
    """Applies faults to a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._restarts = 0

    def strike(self, fault: Fault, actor: Actor) -> bool:
        """Apply one fault where an actor stands; False if there was nothing it could befall."""
        world = self._world
        victim = self._victim(actor)
        if victim is None:
            return False
        world.tell(f"*** {fault}, at {actor.process.id} {actor.name}, befalls {victim.id}")
        burst = world.random.randint(1, BURST_MAX)
        lease_us = world.scenario.coordinator.lease_ms * 1000
        match fault.kind:
            case FaultKind.CRASH:
                world.crash(victim, "crashed")
            case FaultKind.CRASH_TWO:
                other = self._another(victim)
                world.crash(victim, "crashed")
                if other is not None:
                    world.crash(other, "crashed too")
            case FaultKind.PAUSE:
                victim.paused_until_us = world.agenda.now_us + world.soon_us(lease_us, 5 * lease_us)
            case FaultKind.STALL:
                victim.paused_until_us = world.agenda.now_us + world.soon_us(10_000, lease_us // 2)
            case FaultKind.DISK_FULL:
                victim.capacity_bytes -= victim.room_bytes
                victim.room_bytes = 0
            case FaultKind.DRAIN:
                self._drain(victim)
            case FaultKind.JOIN:
                world.start_worker()
            case FaultKind.DROP:
                victim.armed["drop"] = burst
            case FaultKind.DUPLICATE:
                victim.armed["duplicate"] = burst
            case FaultKind.REORDER:
                victim.armed["reorder"] = burst
            case FaultKind.CUT:
                victim.armed["cut"] = burst
            case FaultKind.PARTITION:
                self._partition(victim)
            case FaultKind.STORE_PARTITION:
                victim.store_cut_until_us = world.agenda.now_us + world.soon_us(20_000, 5 * lease_us)
            case FaultKind.REPLY_LOST:
                (actor.process if fault.after is False else victim).armed["reply lost"] = burst
            case FaultKind.REFUSED:
                (actor.process if fault.after is False else victim).armed["refused"] = burst
            case FaultKind.STORE_PAUSE:
                world.store_paused_until_us = world.agenda.now_us + world.soon_us(20_000, 4 * lease_us)
            case FaultKind.STORE_EMPTY:
                self._restart_store(keep=False)
            case FaultKind.STORE_TRUNCATED:
                self._restart_store(keep=True)
            case FaultKind.COORDINATOR_RESTART:
                world.restart_coordinator()
            case FaultKind.CANCEL:
                for query in world.queries.values():
                    query.cancelled = True
        return True

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

    def _drain(self, victim: Process) -> None:
        """The worker says that it leaves; it goes when it is free, or when its time is up."""
        world = self._world
        victim.draining = True
        if world.store.workers.get(victim.id) is not None:
            world.store.workers[victim.id].draining = True
        world.agenda.after(world.soon_us(200_000, 3_000_000), world.crash, victim, "its time to drain is up")

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
