"""Pushes on their way in: the chunks of a call become slices, which are handed over as they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wallaby.errors import EncodingError
from wallaby.exchange.assembly import PushAssembly
from wallaby.exchange.memory import ByteBudget
from wallaby.exchange.wire import PushHeader
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import QueryId, WorkerId

#: The type of `receive`: query, epoch, sender, target and the slices; the answer has one `held` for each.
Receive = Callable[[QueryId, int, WorkerId, WorkerId, tuple[Slice, ...]], PushReply]

#: The schema of every push: chunks of bytes.
CARRIER = pa.schema([pa.field("chunk", pa.large_binary(), nullable=False)])


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How much a server accepts at once."""

    streams: int = 512
    #: Arriving bodies that are not handed over yet, over all streams; one body may exceed it.
    incoming_bytes: int = 256 << 20
    #: Slices are handed over when this many bytes are complete, and at the end.
    offer_bytes: int = 4 << 20
    chunk_bytes: int = 64 << 20


class IncomingPushes:
    """Takes in the pushes of one server, on any number of threads."""

    def __init__(self, receive: Receive, limits: ServerLimits) -> None:
        self._receive = receive
        self._limits = limits
        self._incoming = ByteBudget(limits.incoming_bytes)

    @property
    def incoming_bytes(self) -> int:
        """The arriving bytes that are not handed over yet."""
        return self._incoming.used_bytes

    def take_in(self, header: PushHeader, reader: Any) -> PushReply:
        """Read a push to its end, and hand over complete slices."""
        held = [False] * len(header.slices)
        assembly = PushAssembly(header, self._incoming)
        try:
            accepted = True
            for chunk in self._chunks(reader):
                assembly.feed(chunk)
                if assembly.ready_bytes >= self._limits.offer_bytes:
                    accepted = accepted and self._offer(header, assembly, held)
            assembly.finish()
            accepted = accepted and self._offer(header, assembly, held)
        finally:
            assembly.close()
        return PushReply(accepted, tuple(held) if accepted else ())

    def _chunks(self, reader: Any) -> Iterator[pa.Buffer]:
        if reader.schema != CARRIER:
            raise EncodingError("A push consists of chunks of bytes, not of other columns.")
        for message in reader:
            batch = message.data
            if batch is None or batch.num_rows != 1 or batch.nbytes > self._limits.chunk_bytes:
                raise EncodingError(
                    f"A message of a push is one chunk of up to {self._limits.chunk_bytes} bytes."
                )
            batch.validate()
            value = batch.column(0)[0].as_buffer()
            if value is None:
                raise EncodingError("A message of a push holds no chunk.")
            yield value

    def _offer(self, header: PushHeader, assembly: PushAssembly, held: list[bool]) -> bool:
        """Hand over complete slices. After a refusal the rest is read and dropped, or the reply would be lost."""
        ready = assembly.take()
        if not ready:
            return True
        slices = tuple(piece for _, piece in ready)
        reply = self._receive(header.query, header.epoch, header.sender, header.target, slices)
        assembly.offered()
        if not reply.accepted:
            assembly.abandon()
            return False
        for (place, _), is_held in zip(ready, reply.held, strict=True):
            held[place] = is_held
        return True
