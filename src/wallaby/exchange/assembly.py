"""Assemble slices from the chunks of a push, as the chunks arrive.

A chunk is any piece of the push's bodies laid end to end; its boundaries have no meaning. A slice is returned only when
its body is complete and decoded, in the order of the header, so a push that is cut off anywhere has given whole slices
or nothing (a name has one content). Bodies are copied into Arrow's own memory: there they are aligned and counted, and
a small slice that waits for long does not keep its chunk alive.
"""

from __future__ import annotations

import pyarrow as pa

from wallaby.errors import EncodingError
from wallaby.exchange.body import decode
from wallaby.exchange.memory import ByteBudget
from wallaby.exchange.wire import PushHeader
from wallaby.lineage.effects import Slice


class PushAssembly:
    """One incoming push. Always call `close`: it returns what was taken from the budget."""

    def __init__(self, header: PushHeader, budget: ByteBudget) -> None:
        self._header = header
        self._budget = budget
        #: Taken from the budget: for complete bodies that were not offered yet, and for the one that is arriving.
        self._complete_bytes = self._incomplete_bytes = 0
        self._complete = 0
        self._bodies: dict[int, tuple[pa.RecordBatch, ...] | None] = {}
        self._last_use = {piece.body: i for i, piece in enumerate(header.slices)}
        self._next = 0
        self._wanted = True
        self._target: pa.Buffer | None = None
        self._sink: pa.NativeFile | None = None
        self._missing_bytes = 0
        self._begin()

    @property
    def ready_bytes(self) -> int:
        """The bytes that are complete and not offered yet."""
        return self._complete_bytes

    def feed(self, chunk: pa.Buffer) -> None:
        """Add the next chunk."""
        at = 0
        while at < chunk.size:
            if self._complete == len(self._header.bodies):
                raise EncodingError("A push has more bytes than its header says.")
            size = min(self._missing_bytes, chunk.size - at)
            if self._sink is not None:
                self._sink.write(chunk.slice(at, size))
            at += size
            self._missing_bytes -= size
            if not self._missing_bytes:
                self._end()

    def take(self) -> tuple[tuple[int, Slice], ...]:
        """The slices that became complete since the last call, each with its position in the header.

        A slice is left out if there was no memory for it, or if the push has been abandoned.
        """
        ready: list[tuple[int, Slice]] = []
        pieces = self._header.slices
        while self._next < len(pieces) and pieces[self._next].body <= self._complete:
            piece = pieces[self._next]
            body = self._bodies.get(piece.body)
            if self._wanted and (body is not None or not piece.body):
                whole = Slice(piece.task, piece.edge, piece.final, piece.size_bytes, body)
                ready.append((self._next, whole))
            if self._last_use[piece.body] == self._next:
                self._bodies.pop(piece.body, None)
            self._next += 1
        return tuple(ready)

    def finish(self) -> None:
        """The stream has ended: check that it is complete."""
        if self._complete != len(self._header.bodies):
            raise EncodingError(f"A push ended after {self._complete} of {len(self._header.bodies)} bodies.")

    def offered(self) -> None:
        """Note that the receiver now holds, and counts, the complete bodies."""
        self._budget.give(self._complete_bytes)
        self._complete_bytes = 0

    def abandon(self) -> None:
        """Drop the rest of the stream, which is still read."""
        self._wanted = False
        self._target = self._sink = None
        self._bodies.clear()

    def close(self) -> None:
        """Return everything to the budget."""
        self.abandon()
        self._budget.give(self._complete_bytes + self._incomplete_bytes)
        self._complete_bytes = self._incomplete_bytes = 0

    def _begin(self) -> None:
        """Make room for the next body, if there is one and if it is wanted."""
        self._target = self._sink = None
        if self._complete == len(self._header.bodies):
            return
        self._missing_bytes = self._header.bodies[self._complete].length_bytes
        if not self._wanted or not self._budget.take_if_any_left(self._missing_bytes):
            return
        self._incomplete_bytes = self._missing_bytes
        try:
            self._target = pa.allocate_buffer(self._missing_bytes)
        except MemoryError:
            return  # as if the budget had refused it: the sender will try again
        self._sink = pa.FixedSizeBufferWriter(self._target)

    def _end(self) -> None:
        """A body is complete: decode it, so that invalid Arrow data is refused here."""
        header = self._header.bodies[self._complete]
        self._complete += 1
        self._complete_bytes += self._incomplete_bytes
        self._incomplete_bytes = 0
        if self._target is not None:
            self._bodies[self._complete] = decode(self._target, header.batches)
        self._begin()
