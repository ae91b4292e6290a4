"""Coordinated snapshots in production: the channels' parts in the durable store, and barriers as bodies of slices.

A part is an object named after the run of the query, the channel and the number of the snapshot: its state as in a
checkpoint, the next split of a reader, what had ended, and the side inputs so far. A run writes each of them once. The
side inputs of all channels at a worker share their batches, so these are written and read once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from wallaby.exchange.durable import DurableStore
from wallaby.exchange.sealed import misread, read_batches, read_words, sealed
from wallaby.lineage.barriers import Barrier, BesideCut, ChannelCut, RestoreCut, SaveCut
from wallaby.lineage.effects import Slice
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName, Upstream
from wallaby.node.outputs.checkpoints import CheckpointObject, Checkpoints, read_state
from wallaby.operators.state import by_schema

_KEY = b"wallaby.barrier"

#: The body of a barrier, as other bodies are kept and sent: a batch without rows, whose schema says which it is.
_Body = tuple[pa.RecordBatch, ...]
_Place = tuple[CheckpointObject, int]


def as_body(body: Any) -> Any:
    """A body that can be kept and sent: a barrier becomes a batch without rows."""
    if not isinstance(body, Barrier):
        return body
    said = f"{body.number} {int(body.void)}".encode()
    schema = pa.schema([pa.field("barrier", pa.int64())], metadata={_KEY: said})
    return (pa.RecordBatch.from_arrays([pa.array([], pa.int64())], schema=schema),)


def with_barriers(slices: tuple[Slice, ...]) -> tuple[Slice, ...]:
    """The same slices, as channels see them: what `as_body` made is a barrier again."""
    return tuple(
        piece if (barrier := _barrier_in(piece.body)) is None else _of(piece, barrier) for piece in slices
    )


def _of(piece: Slice, barrier: Barrier) -> Slice:
    return Slice(piece.task, piece.edge, piece.final, 0, barrier)


def _barrier_in(body: object) -> Barrier | None:
    if not isinstance(body, tuple) or len(body) != 1 or body[0].num_rows:
        return None
    said = (body[0].schema.metadata or {}).get(_KEY)
    if said is None:
        return None
    number, void = said.split()
    return Barrier(int(number), bool(int(void)))


class Cuts:
    """The parts of one query's snapshots at one TaskManager. Any thread may use it, one at a time per channel."""

    def __init__(
        self, store: DurableStore, query: QueryId, graph: StageGraph, checkpoints: Checkpoints, seconds: float
    ) -> None:
        self._store = store
        self._graph = graph
        self._query = query
        self._checkpoints = checkpoints
        self._seconds = seconds
        self._began = time.monotonic()
        self._lock = threading.Lock()
        #: The batches of side inputs that have been written. They are held so that their ids are not reused.
        self._beside: dict[int, tuple[pa.RecordBatch, _Place]] = {}
        #: Those that have been read.
        self._read: dict[CheckpointObject, tuple[pa.RecordBatch, ...]] = {}

    def due(self, passed: int) -> int:
        """How many snapshots should have begun: one in so many seconds, or one before every read."""
        return int((time.monotonic() - self._began) / self._seconds) if self._seconds else passed + 1

    def save(self, effect: SaveCut) -> int:
        """Write a channel's part of a snapshot; returns the bytes."""
        cut, channel = effect.cut, effect.task.of
        words, size = self._checkpoints.written(channel, cut.state)
        beside, written = self._written_beside(channel, cut.beside)
        words |= {
            "split": cut.split,
            "ended": [list(upstream) for upstream in cut.ended],
            "given_up": list(cut.given_up),
            "beside": beside,
        }
        name = _name(self._query, channel, effect.number)
        return size + written + self._store.write(name, [sealed(name, words)])

    def _written_beside(
        self, channel: ChannelName, beside: tuple[tuple[Upstream, BesideCut], ...]
    ) -> tuple[list[Any], int]:
        """Write the batches of side inputs that have not been written; returns the words for them, and the bytes."""
        pieces = [piece for _, cut in beside for piece in cut.slices]
        batches: list[pa.RecordBatch] = [batch for piece in pieces for batch in _batches(piece)]
        size = 0
        with self._lock:
            fresh = list({id(batch): batch for batch in batches if id(batch) not in self._beside}.values())
            for group in by_schema(fresh).values():
                stored, written = self._checkpoints.put(channel, group)
                size += written
                self._beside |= {id(batch): (batch, (stored, at)) for at, batch in enumerate(group)}
            places = {id(batch): self._beside[id(batch)][1] for batch in batches}

        def said_of(piece: Slice) -> list[Any]:
            held = None if piece.body is None else [[*places[id(batch)]] for batch in _batches(piece)]
            return [[*piece.task], [*piece.edge], piece.final, piece.size_bytes, held]

        words = [
            [[*upstream], cut.ended, [said_of(piece) for piece in cut.slices]] for upstream, cut in beside
        ]
        return words, size

    def restore(self, effect: RestoreCut) -> ChannelCut | None:
        """Read a channel's part of a snapshot, if there is one. `DurableStoreError` if it is not what was saved."""
        name = _name(effect.start.query, effect.channel, effect.start.number)
        if self._store.written_at(name) is None:
            self._require_ended(effect, name)
            return None
        words, _ = read_words(self._store, name)
        try:
            beside = tuple(
                (Upstream(*u), self._read_beside(ended, said)) for u, ended, said in words["beside"]
            )
            return ChannelCut(
                read_state(self._store, words),
                words["split"],
                tuple(Upstream(link, channel) for link, channel in words["ended"]),
                beside,
                tuple(words["given_up"]),
            )
        except (LookupError, TypeError, ValueError) as error:
            raise misread(self._store, name, error) from error

    def _require_ended(self, effect: RestoreCut, name: str) -> None:
        """Check, with the part of a consumer, that a channel without a part had ended: the part is not just missing."""
        start = effect.start
        for edge in self._graph.edges_from(effect.channel):
            consumer, upstream = self._graph.consumer(edge), Upstream(edge.link, edge.producer)
            if consumer == self._graph.collector:
                ended = upstream in start.ended
            else:
                other = _name(start.query, consumer, start.number)
                if self._store.written_at(other) is None:
                    continue  # it had ended itself, and needs nothing
                words, _ = read_words(self._store, other)
                beside = [u for u, whole, _ in words["beside"] if whole]
                ended = [*upstream] in (*words["ended"], *beside) or edge.link in words["given_up"]
            if not ended:
                raise self._store.foreign(name, "it is missing")

    def _read_beside(self, ended: bool, said: list[Any]) -> BesideCut:
        pieces = []
        for task, edge, final, size_bytes, held in said:
            body = (
                None
                if held is None
                else tuple(self._batch(CheckpointObject(*stored), at) for stored, at in held)
            )
            pieces.append(Slice(TaskName(*task), Edge(*edge), final, size_bytes, body))
        return BesideCut(tuple(pieces), ended)

    def _batch(self, stored: CheckpointObject, at: int) -> pa.RecordBatch:
        with self._lock:
            if stored not in self._read:
                self._read[stored] = read_batches(self._store, *stored)
            return self._read[stored][at]


def _batches(piece: Slice) -> _Body:
    assert piece.body is None or isinstance(piece.body, tuple)
    return piece.body or ()


def _name(query: QueryId, channel: ChannelName, number: int) -> str:
    return f"{query}/states/{channel}/snapshot-{number}"


def bodies_of(slices: Mapping[Edge, tuple[int, object]]) -> dict[Edge, Any]:
    """The bodies of an output, as they can be kept and sent."""
    return {edge: as_body(body) for edge, (_, body) in slices.items()}
