"""Outputs in the durable store: one object each, under the name of its task, its checksum and whether it is the last.

The name says what the content is, so two attempts at a task never write to the same object unless they made the same,
and whoever has a task's record can find its output. An object begins with eight bytes, the length of what follows: a
line of JSON that says where in the rest each body is and which edge gets which. A body that goes over several edges, a
broadcast, is there once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from wallaby.errors import DurableStoreError, EncodingError
from wallaby.exchange.body import Body, decode, encode, size_of
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.shelf import Shelved
from wallaby.lineage.effects import Slice
from wallaby.lineage.lineage import Record
from wallaby.lineage.names import Edge, QueryId, TaskName

_LENGTH_BYTES = 8


class Spool:
    """The outputs of one query. From any thread; every call may wait."""

    def __init__(self, store: DurableStore, query: QueryId) -> None:
        self._store = store
        self._query = query
        self._headers: dict[str, tuple[int, dict[str, Any]]] = {}

    def keep(self, task: TaskName, checksum: int, output: Mapping[Edge, Body], *, final: bool) -> int:
        """Write an output; how many bytes it took."""
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
                    bodies.append([end, data.size, len(body), size_of(body)])
                    parts.append(data)
                    end += data.size
                at = places[identity]
            edges.append([*edge, at])
        header = json.dumps({"bodies": bodies, "edges": edges}).encode()
        length = len(header).to_bytes(_LENGTH_BYTES, "little")
        name = self._name(task, checksum, final=final)
        return self._store.write(name, [pa.py_buffer(length), pa.py_buffer(header), *parts])

    def slice_of(self, task: TaskName, edge: Edge, record: Record) -> Slice:
        """One slice of an output, of which the record is known; its body is left to be read."""
        name = self._name(task, record.checksum, final=record.final)
        start, header = self._header(name)
        try:
            at = next(at for *of, at in header["edges"] if tuple(of) == tuple(edge))
            if at < 0:
                return Slice(task, edge, record.final)
            offset, length, batches, size = header["bodies"][at]
        except (StopIteration, KeyError, ValueError) as error:
            raise _not_it(task, name) from error

        def read() -> tuple[pa.RecordBatch, ...]:
            try:
                return decode(self._store.read(name, start + offset, length), batches)
            except EncodingError as error:
                raise _not_it(task, name) from error

        return Slice(task, edge, record.final, size, Shelved(read))

    def _header(self, name: str) -> tuple[int, dict[str, Any]]:
        """Where the bodies of an object begin, and what is said of them."""
        if name not in self._headers:
            length = int.from_bytes(self._store.read(name, 0, _LENGTH_BYTES).to_pybytes(), "little")
            text = self._store.read(name, _LENGTH_BYTES, length).to_pybytes()
            self._headers[name] = (_LENGTH_BYTES + length, json.loads(text))
        return self._headers[name]

    def _name(self, task: TaskName, checksum: int, *, final: bool) -> str:
        return f"{self._query}/outputs/{task}-{checksum:016x}{'-final' if final else ''}"


def _not_it(task: TaskName, name: str) -> DurableStoreError:
    return DurableStoreError(f"The durable store has another thing than {task} as {name}.")
