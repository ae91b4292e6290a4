"""Send due outputs: to other nodes over Flight, to consumers in this process by reference.

The receiver first says what it has room for: a body on disk, or in the durable store, is read only if it will be
accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Protocol

import pyarrow as pa

from wallaby.errors import QueryError
from wallaby.exchange.lazy_body import GoneError, LazyBody, fetched, is_lazy
from wallaby.lineage.effects import Push, PushReply, Slice
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.node.node import Actor, EngineNode, WorkerQuery, worker_query_of
from wallaby.node.outputs.durable_outputs import LocalBackup
from wallaby.node.pools import CallPool


class Peers(Protocol):
    """The other nodes; see `exchange.client`."""

    def push(
        self,
        address: str,
        query: QueryId,
        epoch: int,
        sender: WorkerId,
        target: WorkerId,
        slices: tuple[Slice, ...],
    ) -> PushReply | None:
        """Send slices; None if there was no answer in time."""

    def ask(self, address: str, action: str, body: bytes, timeout_seconds: float) -> bytes | None:
        """Send an action and return its answer; None if no answer came in time."""


class Pushing:
    """The pushes of one node, on their own threads; answers are posted to the node."""

    def __init__(
        self,
        node: EngineNode,
        backups: LocalBackup,
        peers: Peers,
        address_of: Callable[[WorkerId], str | None],
        pool: CallPool,
        limit_bytes: int,
    ) -> None:
        self._node = node
        self._backups = backups
        self._peers = peers
        self._address_of = address_of
        self._pool = pool
        self._limit_bytes = limit_bytes

    def push(self, actor: Actor, effect: Push) -> None:
        """Send the first due outputs, as many as may be in memory at once; the answer covers those."""
        worker_query = worker_query_of(actor)
        query, recorder, durable = worker_query.query, worker_query.recorder, worker_query.durable_outputs

        def job() -> None:
            started = recorder.now() if recorder is not None else 0.0
            if durable is not None and durable.spools:
                with _reading(worker_query):
                    slices = durable.slices_of(self._backups, effect.items, effect.epoch, self._limit_bytes)
            else:
                slices = self._backups.slices_of(query, effect.items, self._limit_bytes)
            slices = _noted(worker_query, slices)
            if effect.target == self._node.worker:
                self._node.loop.post(self._receive_here, actor, effect, slices)
                return
            address = self._address_of(effect.target)
            reply = None
            if address is not None:
                reply = self._peers.push(address, query, effect.epoch, effect.sender, effect.target, slices)
            if recorder is not None:
                recorder.pushed(started, effect, slices, reply, "flight")
            self._node.answer(actor, effect, reply)

        self._submit(actor, effect, job)

    def _submit(self, actor: Actor, effect: Push, job: Callable[[], None]) -> None:
        """Look up, read or send bodies; those of an ended query count as refused."""

        def guarded() -> None:
            try:
                job()
            except GoneError:
                self._node.answer(actor, effect, PushReply(accepted=False))  # the query is over
            except QueryError as error:
                self._node.answer(actor, effect, error)

        self._pool.submit(guarded)

    def _receive_here(self, actor: Actor, effect: Push, slices: tuple[Slice, ...]) -> None:
        """Hand slices to a consumer in this process by reference; bodies without room are not read."""
        query = worker_query_of(actor).query
        wanted = self._node.preview(query, effect.epoch, effect.target, slices)
        taken = tuple(compress(slices, wanted.held))
        if any(map(is_lazy, taken)):

            def job() -> None:
                read = iter(fetched(taken))
                now = tuple(
                    next(read) if is_wanted else piece
                    for piece, is_wanted in zip(slices, wanted.held, strict=True)
                )
                self._node.loop.post(self._receive_here, actor, effect, now)

            self._submit(actor, effect, job)
            return
        reply = wanted
        if wanted.accepted:
            reply = self._node.receive(query, effect.epoch, effect.target, taken).of_all(wanted.held)
        recorder = worker_query_of(actor).recorder
        if recorder is not None:
            recorder.pushed(recorder.now(), effect, slices, reply, "memory")
        self._node.answer(actor, effect, reply)


@contextmanager
def _reading(worker_query: WorkerQuery) -> Iterator[None]:
    """Note since when outputs are being read for a query."""
    token = object()
    worker_query.reads[token] = time.monotonic()
    try:
        yield
    finally:
        del worker_query.reads[token]


def _noted(worker_query: WorkerQuery, slices: tuple[Slice, ...]) -> tuple[Slice, ...]:
    """The same slices, whose reads are noted. Shared bodies stay shared."""
    noted: dict[int, LazyBody] = {}

    def read(handle: LazyBody) -> tuple[pa.RecordBatch, ...]:
        with _reading(worker_query):
            return handle.read()

    found = []
    for piece in slices:
        handle = piece.body
        if isinstance(handle, LazyBody):
            body = noted.setdefault(id(handle), LazyBody(partial(read, handle)))
            found.append(replace(piece, body=body))
        else:
            found.append(piece)
    return tuple(found)
