"""The collected states of a TaskManager's channels, counted together, and on disk beyond their share.

When the states take too much, a channel that adds to its state has that state written to a file; all channels that
continue to collect come to that point. Batches and their boundaries do not change, so outputs do not either.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

import pyarrow as pa

from wallaby.batches.mapped import MappedBatches
from wallaby.exchange.allocator import give_freed_memory_back
from wallaby.operators.state import KernelState, by_schema

#: Less than this is not worth a file.
SPILL_BYTES_MIN = 1 << 20


class ChannelStates:
    """The states of all channels of one TaskManager. Any thread may use it, but only one at a time per channel."""

    def __init__(self, directory: Path, limit_bytes: int) -> None:
        self._directory = directory
        self._limit_bytes = limit_bytes
        #: The latest state of each channel, as long as the channel continues from it.
        self._latest: WeakValueDictionary[Hashable, KernelState] = WeakValueDictionary()
        self._pressed = False
        self._in_memory: dict[Hashable, int] = {}
        self._lock = threading.Lock()
        self.spilled_bytes = 0

    def settle(self, channel: Hashable, state: KernelState) -> KernelState:
        """Take a channel's new state, and return it, in memory or on disk."""
        state = self._settled(channel, state)
        self._latest[channel] = state
        return state

    def press(self, *, pressed: bool) -> None:
        """Note whether memory is short. While it is, no state stays in memory."""
        self._pressed = pressed

    def spill(self, channel: Hashable) -> int:
        """Spill a channel's state to a file; returns the bytes. Nothing may run in the channel meanwhile.

        The state stays the same object, because the channel refers to it; its content stays the same too.
        """
        state = self._latest.get(channel)
        if state is None or self._in_memory.get(channel, 0) < SPILL_BYTES_MIN:
            return 0
        before = self.spilled_bytes
        moved = self._settled(channel, state, crowded=True)
        for name in ("combined", "waiting", "outgoing", "pending", "files"):
            object.__setattr__(state, name, getattr(moved, name))
        return self.spilled_bytes - before

    def held_bytes(self, owner: object) -> dict[int, int]:
        """The bytes that the channels of a query have in memory, by stage."""
        with self._lock:
            found = list(self._in_memory.items())
        sizes: dict[int, int] = {}
        for key, size in found:
            if isinstance(key, tuple) and key[0] is owner:
                sizes[key[1].stage] = sizes.get(key[1].stage, 0) + size
        return sizes

    def _settled(self, channel: Hashable, state: KernelState, *, crowded: bool = False) -> KernelState:
        held = {id(batch) for batch in state.batches}
        files = tuple(file for file in state.files if any(id(batch) in held for batch in file.batches))
        on_disk = {id(batch) for file in files for batch in file.batches}
        loose = [batch for batch in state.batches if id(batch) not in on_disk]
        size = sum(batch.nbytes for batch in loose)
        with self._lock:
            self._in_memory[channel] = size
            crowded = crowded or self._pressed or sum(self._in_memory.values()) > self._limit_bytes
        if crowded and size >= SPILL_BYTES_MIN:
            moved: dict[int, pa.RecordBatch] = {}
            for schema, batches in by_schema(loose).items():
                file = MappedBatches(batches, schema, self._directory)
                files = (*files, file)
                moved |= {id(batch): mapped for batch, mapped in zip(batches, file.batches, strict=True)}
            state = replace(
                state,
                combined=_moved(state.combined, moved),
                waiting=_moved(state.waiting, moved),
                outgoing=_moved(state.outgoing, moved),
                pending=_moved(state.pending, moved),
            )
            with self._lock:
                self._in_memory[channel] = 0
                self.spilled_bytes += size
            del loose, moved
            give_freed_memory_back()
        for file in files:
            file.release()
        return replace(state, files=files)

    def drop(self, owner: object) -> None:
        """Forget the channels of a query: keys are pairs of it and a channel."""
        with self._lock:
            for key in [key for key in self._in_memory if isinstance(key, tuple) and key[0] is owner]:
                self._in_memory.pop(key, None)


def _moved(
    batches: tuple[pa.RecordBatch, ...], moved: dict[int, pa.RecordBatch]
) -> tuple[pa.RecordBatch, ...]:
    return tuple(moved.get(id(batch), batch) for batch in batches)
