"""Outputs in the durable store: one object each, under the name of its task, its checksum and whether it is the last.

The name identifies the content, so two attempts at a task write to the same object only if they made the same output,
and a task's record is enough to find its output. An object begins with words (`sealed`), which list the position and
checksum of each body, and which edge gets which body. A body that goes over several edges, a broadcast, is stored once,
and is read once if it is needed for several of them at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from wallaby.exchange.body import Body, encode, size_of
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.lazy_body import LazyBody
from wallaby.exchange.sealed import checksum_of, misread, read_batches, read_words, sealed
from wallaby.lineage.effects import Slice
from wallaby.lineage.lineage import LineageRecord
from wallaby.lineage.names import Edge, QueryId, TaskName


class Spool:
    """The outputs of one query in the durable store. Any thread may use it; every call may wait."""

    def __init__(self, store: DurableStore, query: QueryId) -> None:
        self._store = store
        self._query = query
        #: Cache: the slices of outputs by edge, with the bytes of data and the body.
        self._known: dict[str, dict[Edge, tuple[int, LazyBody | None]]] = {}

    def keep(self, task: TaskName, checksum: int, output: Mapping[Edge, Body], *, final: bool) -> int:
        """Write an output; returns its bytes."""
        places: dict[tuple[int, ...], int] = {}
        bodies: list[list[int]] = []
        parts: list[pa.Buffer] = []
        edges: list[list[int]] = []
        end = 0
        for edge, body in sorted(output.items()):
            at = -1
            if body:
                identity = tuple(map(id, body))
                if identity not in places:
                    places[identity] = len(bodies)
                    data = encode(body)
                    bodies.append([end, data.size, len(body), size_of(body), checksum_of(data)])
                    parts.append(data)
                    end += data.size
                at = places[identity]
            edges.append([*edge, at])
        name = self._name(task, checksum, final=final)
        return self._store.write(name, [sealed(name, {"bodies": bodies, "edges": edges}), *parts])

    def slice_of(self, task: TaskName, edge: Edge, record: LineageRecord) -> Slice:
        """One slice of an output whose record is known; its body is read later.

        `DurableStoreError` if the output is not what was written, now or when the body is read.
        """
        name = self._name(task, record.checksum, final=record.final)
        bodies = self._bodies(name)
        if edge not in bodies:
            raise self._store.foreign(name, f"it has nothing for {edge}")
        return Slice(task, edge, record.final, *bodies[edge])

    def _bodies(self, name: str) -> dict[Edge, tuple[int, LazyBody | None]]:
        if name not in self._known:
            words, start = read_words(self._store, name)
            read = partial(read_batches, self._store, name)
            try:
                bodies = [
                    (size, LazyBody(partial(read, batches, checksum, start + offset, length)))
                    for offset, length, batches, size, checksum in words["bodies"]
                ]
                self._known[name] = {
                    Edge(*edge): bodies[at] if at >= 0 else (0, None) for *edge, at in words["edges"]
                }
            except (LookupError, TypeError, ValueError) as error:
                raise misread(self._store, name, error) from error
        return self._known[name]

    def _name(self, task: TaskName, checksum: int, *, final: bool) -> str:
        return f"{self._query}/outputs/{task}-{checksum:016x}{'-final' if final else ''}"
