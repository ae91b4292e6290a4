"""Checkpoints: save the states of channels in the durable store, and restore them.

A state is a list of immutable batches, so a checkpoint is incremental: batches that an earlier one has written are
only named. A checkpoint is a small object, named after its task and its record, that lists its batches and the
checksums of the objects that hold them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from wallaby.exchange.body import encode
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.sealed import checksum_of, misread, read_batches, read_words, sealed
from wallaby.lineage.effects import RestoredState, RestoreState, SaveState
from wallaby.lineage.names import ChannelName, QueryId, Upstream
from wallaby.operators.state import EMPTY, KernelState, by_schema


class CheckpointObject(NamedTuple):
    """An object that holds batches."""

    name: str
    batches: int
    checksum: int


#: The location of a batch: the object that holds it, and its number there.
_Place = tuple[CheckpointObject, int]


class Checkpoints:
    """The states of one query at one TaskManager. Any thread may use it, but only one at a time per channel."""

    def __init__(self, store: DurableStore, query: QueryId, seconds: float) -> None:
        self._store = store
        self._query = query
        self._seconds = seconds
        self._next_at: dict[ChannelName, float] = {}
        #: The batches of the last checkpoint of each channel. They are held so that their ids are not reused.
        self._written: dict[ChannelName, dict[int, tuple[pa.RecordBatch, _Place]]] = {}

    def is_due(self, channel: ChannelName) -> bool:
        """Is it time for a checkpoint of a channel?"""
        now = time.monotonic()
        return now >= self._next_at.setdefault(channel, now + self._seconds)

    def save(self, effect: SaveState) -> int:
        """Write the batches that have not been written yet; returns their bytes."""
        words, size = self.written(effect.task.of, effect.state)
        words["totals"] = [[*upstream, total] for upstream, total in sorted(effect.totals.items())]
        name = self._name(effect)
        size += self._store.write(name, [sealed(name, words)])
        return size

    def written(self, channel: ChannelName, kernel_state: KernelState | None) -> tuple[dict[str, Any], int]:
        """Write the batches of a state that have not been written yet; returns the words for it, and their bytes."""
        state = kernel_state or EMPTY
        known = self._written.get(channel, {})
        batches = [*state.combined, *state.waiting]
        size = 0
        places: dict[int, tuple[pa.RecordBatch, _Place]] = {}
        fresh = list({id(batch): batch for batch in batches if id(batch) not in known}.values())
        for group in by_schema(fresh).values():
            stored, written = self.put(channel, group)
            size += written
            places |= {id(batch): (batch, (stored, at)) for at, batch in enumerate(group)}
        places |= {id(batch): known[id(batch)] for batch in batches if id(batch) in known}
        numbers: dict[CheckpointObject, int] = {}
        for _, (stored, _) in places.values():
            numbers.setdefault(stored, len(numbers))

        def said_of(held: Iterable[pa.RecordBatch]) -> list[list[int]]:
            found = (places[id(batch)][1] for batch in held)
            return [[numbers[stored], at] for stored, at in found]

        words = {
            "objects": list(numbers),
            "combined": said_of(state.combined),
            "waiting": said_of(state.waiting),
            "rows_passed": state.rows_passed,
            "pace": state.pace,
            "shrinks": state.shrinks,
            "combined_bytes": state.combined_bytes,
            "waiting_bytes": state.waiting_bytes,
        }
        self._written[channel] = places
        self._next_at[channel] = time.monotonic() + self._seconds
        return words, size

    def put(self, channel: ChannelName, batches: Sequence[pa.RecordBatch]) -> tuple[CheckpointObject, int]:
        """Write batches of one schema as an object; returns it, and its bytes."""
        data = encode(tuple(batches))
        name = f"{self._query}/states/{channel}/{uuid.uuid4().hex[:12]}"
        return CheckpointObject(name, len(batches), checksum_of(data)), self._store.write(name, [data])

    def restore(self, effect: RestoreState) -> RestoredState:
        """Restore a state, batch by batch. `DurableStoreError` if it is not what was saved."""
        name = self._name(effect)
        words, _ = read_words(self._store, name)
        try:
            state = read_state(self._store, words)
            totals = {Upstream(link, channel): total for link, channel, total in words["totals"]}
        except (LookupError, TypeError, ValueError) as error:
            raise misread(self._store, name, error) from error
        return RestoredState(state, totals)

    def _name(self, effect: SaveState | RestoreState) -> str:
        return f"{self._query}/states/{effect.task.of}/{effect.task}-{effect.key}"


def read_state(store: DurableStore, words: dict[str, Any]) -> KernelState:
    """The state that these words describe; an error of Python's if they do not describe one."""
    read = [read_batches(store, *stored) for stored in words["objects"]]
    return replace(
        EMPTY,
        combined=tuple(read[number][at] for number, at in words["combined"]),
        waiting=tuple(read[number][at] for number, at in words["waiting"]),
        rows_passed=words["rows_passed"],
        pace=words["pace"],
        shrinks=words["shrinks"],
        combined_bytes=words["combined_bytes"],
        waiting_bytes=words["waiting_bytes"],
    )
