"""Saved states: what a channel has collected, in the durable store, and how to take it up again.

A state is a list of immutable batches, so a snapshot is incremental: batches that an earlier one has written are only
named. A snapshot is a small object that says which batches make it up, under the name of its task and its record; the
objects that hold these have the checksums that it says.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from wallaby.exchange.body import encode
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.sealed import checksum_of, misread, read_batches, read_words, sealed
from wallaby.lineage.effects import RestoreState, SaveState
from wallaby.lineage.names import ChannelName, QueryId, Upstream
from wallaby.operators.state import EMPTY, KernelState, by_schema


class CheckpointObject(NamedTuple):
    """An object that holds batches."""

    name: str
    batches: int
    checksum: int


#: Where a batch is: the object that holds it, and which of its batches it is.
Place = tuple[CheckpointObject, int]


class Checkpoints:
    """The states of one query at one TaskManager. From any thread; one channel by one thread at a time."""

    def __init__(self, store: DurableStore, query: QueryId, seconds: float) -> None:
        self._store = store
        self._query = query
        self._seconds = seconds
        self._next_at: dict[ChannelName, float] = {}
        #: The batches of the last snapshot of each channel. They are held, so that no other batch gets their ids.
        self._written: dict[ChannelName, dict[int, tuple[pa.RecordBatch, Place]]] = {}

    def is_due(self, channel: ChannelName) -> bool:
        """Is it time for a snapshot of a channel?"""
        now = time.monotonic()
        return now >= self._next_at.setdefault(channel, now + self._seconds)

    def save(self, effect: SaveState) -> int:
        """Write what has not been written yet; how many bytes that took."""
        channel, state = effect.task.of, effect.state or EMPTY
        known = self._written.get(channel, {})
        batches = [*state.combined, *state.waiting]
        size = 0
        places: dict[int, tuple[pa.RecordBatch, Place]] = {}
        fresh = list({id(batch): batch for batch in batches if id(batch) not in known}.values())
        for group in by_schema(fresh).values():
            data = encode(tuple(group))
            name = f"{self._query}/states/{channel}/{uuid.uuid4().hex[:12]}"
            stored = CheckpointObject(name, len(group), checksum_of(data))
            size += self._store.write(name, [data])
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
            "totals": [[*upstream, total] for upstream, total in sorted(effect.totals.items())],
        }
        name = self._name(effect)
        size += self._store.write(name, [sealed(name, words)])
        self._written[channel] = places
        self._next_at[channel] = time.monotonic() + self._seconds
        return size

    def restore(self, effect: RestoreState) -> tuple[KernelState, dict[Upstream, int]]:
        """A state as it was saved, batch by batch. `DurableStoreError` if it is not what was saved."""
        name = self._name(effect)
        words, _ = read_words(self._store, name)
        try:
            read = [read_batches(self._store, *stored) for stored in words["objects"]]
            state = replace(
                EMPTY,
                combined=tuple(read[number][at] for number, at in words["combined"]),
                waiting=tuple(read[number][at] for number, at in words["waiting"]),
                rows_passed=words["rows_passed"],
                pace=words["pace"],
                shrinks=words["shrinks"],
                combined_bytes=words["combined_bytes"],
                waiting_bytes=words["waiting_bytes"],
            )
            totals = {Upstream(link, channel): total for link, channel, total in words["totals"]}
        except (LookupError, TypeError, ValueError) as error:
            raise misread(self._store, name, error) from error
        return state, totals

    def _name(self, effect: SaveState | RestoreState) -> str:
        return f"{self._query}/states/{effect.task.of}/{effect.task}-{effect.key}"
