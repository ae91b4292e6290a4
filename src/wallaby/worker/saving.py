"""Saved states: what a channel has collected, in the durable store, and how to take it up again.

A state is a list of immutable batches, so a snapshot is incremental: batches that an earlier one has written are only
named. A snapshot is a small object that says which batches make it up, under the name of its task and its record.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from wallaby.errors import DurableStoreError, EncodingError
from wallaby.exchange.body import decode, encode
from wallaby.exchange.durable import DurableStore
from wallaby.kernels.state import EMPTY, KernelState, by_schema
from wallaby.lineage.effects import RestoreState, SaveState
from wallaby.lineage.names import ChannelName, QueryId, Upstream

#: Where a batch is: the object that holds it, how many batches that has, and which of them it is.
Place = tuple[str, int, int]


class Saving:
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
            name = f"{self._query}/states/{channel}/{uuid.uuid4().hex[:12]}"
            size += self._store.write(name, [encode(tuple(group))])
            places |= {id(batch): (batch, (name, len(group), at)) for at, batch in enumerate(group)}
        places |= {id(batch): known[id(batch)] for batch in batches if id(batch) in known}
        said = {
            "combined": [places[id(batch)][1] for batch in state.combined],
            "waiting": [places[id(batch)][1] for batch in state.waiting],
            "rows_passed": state.rows_passed,
            "shrinks": state.shrinks,
            "combined_bytes": state.combined_bytes,
            "waiting_bytes": state.waiting_bytes,
            "totals": [[*upstream, total] for upstream, total in sorted(effect.totals.items())],
        }
        size += self._store.write(self._name(effect), [pa.py_buffer(json.dumps(said).encode())])
        self._written[channel] = places
        self._next_at[channel] = time.monotonic() + self._seconds
        return size

    def restore(self, effect: RestoreState) -> tuple[KernelState, dict[Upstream, int]]:
        """A state as it was saved, batch by batch."""
        said: dict[str, Any] = json.loads(self._store.read(self._name(effect)).to_pybytes())
        read: dict[str, tuple[pa.RecordBatch, ...]] = {}

        def batches(places: Iterable[list[Any]]) -> Iterable[pa.RecordBatch]:
            for name, count, at in places:
                if name not in read:
                    read[name] = decode(self._store.read(name), count)
                yield read[name][at]

        try:
            state = replace(
                EMPTY,
                combined=tuple(batches(said["combined"])),
                waiting=tuple(batches(said["waiting"])),
                rows_passed=said["rows_passed"],
                shrinks=said["shrinks"],
                combined_bytes=said["combined_bytes"],
                waiting_bytes=said["waiting_bytes"],
            )
        except (KeyError, ValueError, EncodingError) as error:
            raise DurableStoreError(
                f"The durable store has another thing than the state of {effect.task}."
            ) from error
        return state, {Upstream(link, channel): total for link, channel, total in said["totals"]}

    def _name(self, effect: SaveState | RestoreState) -> str:
        return f"{self._query}/states/{effect.task.of}/{effect.task}-{effect.key}"
