"""Calls to the data servers of other processes: pushes and pings.

Every call has a time limit, and None always means that no answer came: the push may or may not have arrived. Sending
again is harmless, because the inbox drops what it already holds. If the other side cannot read a push, there is a bug
or a wrong version; that is an error, because repeating the push would change nothing.

Chunks are small (1 MiB): measured on loopback, larger messages cost the receiver twice the time per byte, because gRPC
collects each in freshly mapped memory. Chunks are independent of record batches, whose boundaries do not change.
"""

from __future__ import annotations

import logging
import secrets
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, cast

import pyarrow as pa
import pyarrow.flight as fl

from wallaby.errors import EncodingError, InternalError
from wallaby.exchange.body import Body, encode, encoded_size
from wallaby.exchange.incoming import CARRIER
from wallaby.exchange.kept_stream import KeptTicket, read_outputs
from wallaby.exchange.lazy_body import fetched
from wallaby.exchange.server import ASK, PING, REFUSED, bearer
from wallaby.exchange.wire import (
    SLICES_MAX,
    BodyHeader,
    PushHeader,
    SliceHeader,
    decode_name,
    decode_reply,
    encode_push,
)
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import QueryId, WorkerId

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
#: A larger push is made in several calls, so that a time limit means the same for all.
CALL_BYTES = 64 << 20
#: Beyond its time limit, a call gets the time that its bytes take at this rate.
SLOWEST_BYTES_PER_SECOND = 32 << 20
CLIENTS_MAX = 1024
#: A smaller push is sent without asking whether there is room for it.
ASK_BYTES = 2 << 20

#: No proxies, which are for external addresses; and an address that refused a connection may be tried again soon.
_CHANNEL_OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def new_token() -> str:
    """A token for one engine: 256 random bits."""
    return secrets.token_urlsafe(32)


class PeerClient:
    """Calls other nodes, from any thread, over one connection per address.

    `tls_roots` are the PEM certificates to trust; `tls_name` is the name in them if it is not the address.
    """

    def __init__(
        self,
        token: str,
        *,
        timeout_seconds: float = 5.0,
        tls_roots: bytes | None = None,
        tls_name: str | None = None,
    ) -> None:
        self._headers = [(b"authorization", bearer(token))]
        self._timeout_seconds = timeout_seconds
        self._tls_roots = tls_roots
        self._tls_name = tls_name
        self._lock = threading.Lock()
        self._clients: dict[str, fl.FlightClient] = {}
        self._closed = False

    def push(
        self,
        address: str,
        query: QueryId,
        epoch: int,
        sender: WorkerId,
        target: WorkerId,
        slices: tuple[Slice, ...],
    ) -> PushReply | None:
        """Send slices; returns which of them are held, or None if no answer came.

        If only the first part of a large push was answered, the reply covers that part. `GoneError` if a body can no
        longer be read, because its query has ended.
        """
        held: list[bool] = []
        part_of = partial(_PushPart, query, epoch, sender, target)
        for group in _groups(slices):
            reply = self._push_wanted(address, part_of, group)
            if reply is None and not held:
                return None
            if reply is None:
                break
            if not reply.accepted:
                return reply
            held += reply.held
        return PushReply(True, tuple(held))

    def _push_wanted(
        self, address: str, part_of: Callable[[tuple[Slice, ...]], _PushPart], slices: tuple[Slice, ...]
    ) -> PushReply | None:
        """Send what the other side has room for; ask first, unless asking takes about as long as sending.

        Bodies that are not in memory are read only when it is certain that they will be sent.
        """
        if _size_of(slices) < ASK_BYTES:
            return self._push(address, part_of(fetched(slices)))
        question = part_of(tuple(replace(piece, body=None) for piece in slices))
        wanted = self._ask(address, question.header)
        if wanted is None or not wanted.accepted or not any(wanted.held):
            return wanted
        reply = self._push(address, part_of(fetched(compress(slices, wanted.held))))
        return reply.of_all(wanted.held) if reply is not None else None

    def _ask(self, address: str, header: PushHeader) -> PushReply | None:
        try:
            action = fl.Action(ASK, encode_push(header))
            (result,) = self._client(address).do_action(action, self._options(self._timeout_seconds))
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            _check_refusal(address, error)
            return None
        return _reply_for(address, header, result.body.to_pybytes())

    def ping(self, address: str, timeout_seconds: float) -> WorkerId | None:
        """The worker that answers at an address; None if none of this engine answers in time."""
        try:
            client = self._client(address)
            (result,) = client.do_action(fl.Action(PING, b""), self._options(timeout_seconds))
            return WorkerId(decode_name(result.body.to_pybytes()))
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            _check_refusal(address, error)
            return None

    def send(self, address: str, action: str, body: bytes, timeout_seconds: float = 2.0) -> bool:
        """Send an action without a reply; True if it succeeded."""
        try:
            list(self._client(address).do_action(fl.Action(action, body), self._options(timeout_seconds)))
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            logger.debug("no answer to %s from %s: %s", action, address, type(error).__name__)
            return False
        return True

    def ask(self, address: str, action: str, body: bytes, timeout_seconds: float = 2.0) -> bytes | None:
        """Send an action and return its one answer; None if no answer came in time."""
        try:
            results = list(
                self._client(address).do_action(fl.Action(action, body), self._options(timeout_seconds))
            )
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            logger.debug("no answer to %s from %s: %s", action, address, type(error).__name__)
            return None
        return results[0].body.to_pybytes() if results else None

    def fetch(self, address: str, ticket: KeptTicket) -> tuple[int, list[pa.RecordBatch]] | None:
        """Fetch outputs of a kept result: how many arrived completely, and their batches; None if no answer came."""
        timeout_seconds = self._timeout_seconds + ticket.bytes_max / SLOWEST_BYTES_PER_SECOND
        try:
            reader = self._client(address).do_get(fl.Ticket(ticket.encode()), self._options(timeout_seconds))
            return read_outputs(reader)
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            _check_refusal(address, error)
            return None

    def forget(self, address: str) -> None:
        """Close the connection to an address whose worker is gone."""
        with self._lock:
            client = self._clients.pop(address, None)
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close every connection. Calls under way end at their time limit."""
        with self._lock:
            self._closed = True
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _push(self, address: str, part: _PushPart) -> PushReply | None:
        timeout_seconds = self._timeout_seconds + part.size_bytes / SLOWEST_BYTES_PER_SECOND
        try:
            descriptor = fl.FlightDescriptor.for_command(encode_push(part.header))
            client = self._client(address)
            writer, reader = client.do_put(descriptor, CARRIER, self._options(timeout_seconds))
            with writer:
                for chunk in part.chunks():
                    writer.write_batch(chunk)
                writer.done_writing()
                answer = reader.read()
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            _check_refusal(address, error)
            return None
        if answer is None:
            return None
        return _reply_for(address, part.header, answer.to_pybytes())

    def _client(self, address: str) -> fl.FlightClient:
        with self._lock:
            if self._closed:
                raise OSError("This client is closed.")
            client = self._clients.pop(address, None)
            if client is None:
                client = fl.FlightClient(
                    address,
                    tls_root_certs=self._tls_roots,
                    override_hostname=self._tls_name,
                    generic_options=_CHANNEL_OPTIONS,
                )
            self._clients[address] = client
            # The least recently used connection is dropped without closing it, because a call may still use it.
            while len(self._clients) > CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]
            return client

    def _options(self, timeout_seconds: float) -> fl.FlightCallOptions:
        return fl.FlightCallOptions(timeout=timeout_seconds, headers=self._headers)


def _reply_for(address: str, header: PushHeader, answer: bytes) -> PushReply:
    reply = decode_reply(answer)
    if reply.accepted and len(reply.held) != len(header.slices):
        raise EncodingError(
            f"{address} acknowledged {len(reply.held)} slices, but {len(header.slices)} were sent."
        )
    return reply


def _check_refusal(address: str, error: Exception) -> None:
    """Raise for a refusal; return for a server that is gone, slow or not ours."""
    if getattr(error, "extra_info", b"") == REFUSED:
        raise InternalError(
            f"{address} refused a call: {error}",
            fix="All workers must run the same version.",
            address=address,
        ) from error
    logger.debug("no answer from %s: %s", address, type(error).__name__)


def _groups(slices: tuple[Slice, ...]) -> Iterator[tuple[Slice, ...]]:
    """Group slices into calls by bytes, with no more slices than a header may have."""
    group: list[Slice] = []
    size_bytes = 0
    for piece in slices:
        if group and (size_bytes + piece.size_bytes > CALL_BYTES or len(group) == SLICES_MAX):
            yield tuple(group)
            group, size_bytes = [], 0
        group.append(piece)
        size_bytes += piece.size_bytes
    yield tuple(group)


def _size_of(slices: Iterable[Slice]) -> int:
    """The bytes of data in the bodies of slices, some of which may share a body."""
    return sum({id(piece.body): piece.size_bytes for piece in slices}.values())


class _PushPart:
    """The header and chunks of one call. A body is encoded when its turn comes, so that few exist twice."""

    def __init__(
        self, query: QueryId, epoch: int, sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> None:
        numbers: dict[int, int] = {}
        self._bodies: list[tuple[pa.RecordBatch, ...]] = []
        bodies: list[BodyHeader] = []
        pieces: list[SliceHeader] = []
        for piece in slices:
            body = cast(Body, piece.body)
            if body and id(body) not in numbers:
                self._bodies.append(body)
                bodies.append(BodyHeader(len(body), encoded_size(body)))
                numbers[id(body)] = len(bodies)
            number = numbers[id(body)] if body else 0
            pieces.append(SliceHeader(piece.task, piece.edge, piece.final, piece.size_bytes, number))
        self.header = PushHeader(query, epoch, sender, target, tuple(bodies), tuple(pieces))
        self.size_bytes = sum(body.length_bytes for body in bodies)

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """The bodies laid end to end: small ones together, large ones cut."""
        pending: list[pa.Buffer] = []
        pending_bytes = 0
        for body in self._bodies:
            data = encode(body)
            if pending and pending_bytes + data.size > CHUNK_BYTES:
                yield _carry(_join(pending))
                pending, pending_bytes = [], 0
            if data.size < CHUNK_BYTES:
                pending.append(data)
                pending_bytes += data.size
            else:
                for at in range(0, data.size, CHUNK_BYTES):
                    yield _carry(data.slice(at, min(CHUNK_BYTES, data.size - at)))
        if pending:
            yield _carry(_join(pending))


def _join(buffers: list[pa.Buffer]) -> pa.Buffer:
    return buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(cast(Any, buffers)))


def _carry(data: pa.Buffer) -> pa.RecordBatch:
    """A batch with one binary value that refers to this memory without copying it."""
    offsets = pa.py_buffer(struct.pack("<qq", 0, data.size))
    value = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, data])
    return pa.RecordBatch.from_arrays([value], schema=CARRIER)
