"""The bytes of a push that are not Arrow data: its header, and the reply.

All numbers are little-endian and of fixed width; a text is a length (u16) and UTF-8. A header lists the
bodies that follow it, in order, and the slices, each with the number of its body: slices of a broadcast share
one. Bodies are numbered from 1 in the order in which slices first name them, so that the slices are complete
one after the other while bytes arrive.

    push    magic:4 version:1 kind:1  epoch:8 query sender target
            bodies:4 x (batches:4 length:8)
            slices:4 x (stage:4 channel:4 seq:8 link:4 producer:4 consumer:4 final:1 size:8 body:4)
    reply   magic:4 version:1 kind:1  accepted:1 slices:4 bits

Each value has only one form, every number is checked against a limit before it is used, and anything that `encode_…`
could not have written is an `EncodingError`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from wallaby.errors import EncodingError
from wallaby.lineage.effects import PushReply
from wallaby.lineage.names import Edge, QueryId, TaskName, WorkerId

MAGIC = b"WLBY"
VERSION = 1
SLICES_MAX = 4096
HEADER_BYTES_MAX = 1 << 20
NAME_BYTES_MAX = 1024
#: The total size of the bodies of one push. It also bounds what a forged header can request.
PUSH_BYTES_MAX = 1 << 34

_PUSH, _REPLY = 1, 2
_PREFIX = struct.Struct("<4sBB")
_EPOCH = struct.Struct("<Q")
_LENGTH = struct.Struct("<H")
_COUNT = struct.Struct("<I")
_BODY = struct.Struct("<IQ")
_SLICE = struct.Struct("<IIQIIIBQI")
_ACCEPTED = struct.Struct("<B")


@dataclass(frozen=True, slots=True)
class BodyHeader:
    """The number of batches of a body, and its bytes as an Arrow stream."""

    batches: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class SliceHeader:
    """A slice without its body: `body` is the number of its body, 0 for none."""

    task: TaskName
    edge: Edge
    final: bool
    size_bytes: int
    body: int


@dataclass(frozen=True, slots=True)
class PushHeader:
    """The header of one push, which precedes its bodies."""

    query: QueryId
    epoch: int
    sender: WorkerId
    target: WorkerId
    bodies: tuple[BodyHeader, ...]
    slices: tuple[SliceHeader, ...]


def encode_push(header: PushHeader) -> bytes:
    """Encode a header."""
    _check(header)
    parts = [_PREFIX.pack(MAGIC, VERSION, _PUSH), _EPOCH.pack(header.epoch)]
    for name in (header.query, header.sender, header.target):
        text = encode_name(name)
        parts += (_LENGTH.pack(len(text)), text)
    parts.append(_COUNT.pack(len(header.bodies)))
    parts += [_BODY.pack(body.batches, body.length_bytes) for body in header.bodies]
    parts.append(_COUNT.pack(len(header.slices)))
    parts += [_SLICE.pack(*s.task, *s.edge, s.final, s.size_bytes, s.body) for s in header.slices]
    return b"".join(parts)


def decode_push(data: bytes) -> PushHeader:
    """Decode a header."""
    if len(data) > HEADER_BYTES_MAX:
        raise EncodingError(f"A push header has {len(data)} bytes, more than {HEADER_BYTES_MAX}.")
    reader = _Reader(data, _PUSH)
    (epoch,) = reader.take(_EPOCH)
    query, sender, target = reader.take_name(), reader.take_name(), reader.take_name()
    bodies = tuple(BodyHeader(*reader.take(_BODY)) for _ in range(reader.take_count()))
    slices = tuple(_take_slice(reader) for _ in range(reader.take_count()))
    reader.finish()
    header = PushHeader(QueryId(query), epoch, WorkerId(sender), WorkerId(target), bodies, slices)
    _check(header)
    return header


def encode_reply(reply: PushReply) -> bytes:
    """Encode a reply: one bit for each slice, the lowest first."""
    bits = sum(1 << i for i, held in enumerate(reply.held) if held)
    prefix = _PREFIX.pack(MAGIC, VERSION, _REPLY) + _ACCEPTED.pack(reply.accepted)
    return prefix + _COUNT.pack(len(reply.held)) + bits.to_bytes((len(reply.held) + 7) // 8, "little")


def decode_reply(data: bytes) -> PushReply:
    """Decode a reply."""
    reader = _Reader(data, _REPLY)
    (accepted,) = reader.take(_ACCEPTED)
    count = reader.take_count()
    bits = int.from_bytes(reader.take_bytes((count + 7) // 8), "little")
    reader.finish()
    if accepted > 1 or bits >> count or (count and not accepted):
        raise EncodingError(f"Not a reply to a push: {data[:64].hex()}.")
    return PushReply(bool(accepted), tuple(bool(bits >> i & 1) for i in range(count)))


def encode_name(name: str) -> bytes:
    """Encode the id of a query or a worker; it is restored as it was, even if it is invalid Unicode."""
    data = name.encode("utf-8", "surrogatepass")
    if not 1 <= len(data) <= NAME_BYTES_MAX:
        raise EncodingError(f"A name has 1..{NAME_BYTES_MAX} bytes, not {len(data)}.")
    return data


def decode_name(data: bytes) -> str:
    """What `encode_name` wrote."""
    if not 1 <= len(data) <= NAME_BYTES_MAX:
        raise EncodingError(f"A name has 1..{NAME_BYTES_MAX} bytes, not {len(data)}.")
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise EncodingError(f"Not a name: {data[:64].hex()}.") from error


def _take_slice(reader: _Reader) -> SliceHeader:
    stage, channel, seq, link, producer, consumer, final, size_bytes, body = reader.take(_SLICE)
    if final > 1:
        raise EncodingError(f"A slice is final or not, but has {final}.")
    task, edge = TaskName(stage, channel, seq), Edge(link, producer, consumer)
    return SliceHeader(task, edge, bool(final), size_bytes, body)


def _check(header: PushHeader) -> None:
    if len(header.slices) > SLICES_MAX or len(header.bodies) > len(header.slices):
        raise EncodingError(f"A push has {len(header.slices)} slices and {len(header.bodies)} bodies.")
    if not all(body.batches and body.length_bytes for body in header.bodies):
        raise EncodingError("A push lists a body without content.")
    if sum(body.length_bytes for body in header.bodies) > PUSH_BYTES_MAX:
        raise EncodingError(f"A push has more than {PUSH_BYTES_MAX} bytes.")
    seen = 0
    for piece in header.slices:
        if piece.body > seen + 1:
            raise EncodingError(f"{piece.task} over {piece.edge} names body {piece.body} after {seen}.")
        seen = max(seen, piece.body)
    if seen != len(header.bodies):
        raise EncodingError(f"A push has {len(header.bodies)} bodies but names {seen}.")


class _Reader:
    """Reads values from bytes; reading past the end, or leaving bytes over, is an error."""

    def __init__(self, data: bytes, kind: int) -> None:
        self._data, self._at = data, 0
        magic, version, actual = self.take(_PREFIX)
        if magic != MAGIC or version != VERSION or actual != kind:
            raise EncodingError(f"Not a message of version {VERSION}: {data[:16].hex()}.")

    def take(self, form: struct.Struct) -> tuple[Any, ...]:
        return form.unpack(self.take_bytes(form.size))

    def take_bytes(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise EncodingError(f"A message of {len(self._data)} bytes ends too early.")
        self._at += size
        return taken

    def take_name(self) -> str:
        (size,) = self.take(_LENGTH)
        return decode_name(self.take_bytes(size))

    def take_count(self) -> int:
        count: int = self.take(_COUNT)[0]
        if count > SLICES_MAX:
            raise EncodingError(f"A message lists {count} things, more than {SLICES_MAX}.")
        return count

    def finish(self) -> None:
        if self._at != len(self._data):
            raise EncodingError(f"A message has {len(self._data) - self._at} bytes too many.")
