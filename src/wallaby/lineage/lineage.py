"""Lineage: the record of what one task consumed and decided, and its compact encoding.

A record is all that a retrace needs to make the same bytes again: which split was read, or how many outputs
were drawn from which upstream channels; which side inputs were applied; whether the task was its channel's
last; whether the state after it was saved; and a checksum of the output, which a retraced output must match before it
leaves its worker (invariant 4). A record is written once, by one commit, and never changed (invariant 2).

Encoding, version 1 (little-endian; `v` is an unsigned LEB128 integer in its shortest form):

    version:1  flags:1  checksum:8  [split:v]  [sides:v]  [link:v  n:v  n x (channel - previous:v  count:v)]

Channels and counts are below 2^14, so a draw from n channels takes at most 24 + 4n bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from wallaby.errors import EncodingError
from wallaby.lineage.graph import CHANNELS_MAX, SIDES_MAX
from wallaby.lineage.names import Upstream

VERSION = 1
#: How many outputs one task may draw from one upstream channel.
COUNT_MAX = (1 << 14) - 1
LINKS_MAX = 1 << 14
#: A number represents a split, or the rest of one after some of its rows.
SPLITS_MAX = 1 << 63
_FINAL, _SPLIT, _SIDES, _DRAW, _SAVED = 1, 2, 4, 8, 16


@dataclass(frozen=True, slots=True)
class Draw:
    """How many outputs a task takes from each upstream channel of one link, in order for each channel."""

    link: int
    counts: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        channels = [channel for channel, _ in self.counts]
        if not channels or channels != sorted(set(channels)):
            raise EncodingError(f"A draw names each channel once, ascending, not {channels}.")
        if not (0 <= self.link < LINKS_MAX and 0 <= channels[0] and channels[-1] < CHANNELS_MAX):
            raise EncodingError(f"Link {self.link} or channels {channels} are out of range.")
        if not all(1 <= count <= COUNT_MAX for _, count in self.counts):
            raise EncodingError(f"A draw takes 1..{COUNT_MAX} outputs from a channel, not {self.counts}.")

    def __str__(self) -> str:
        return f"l{self.link}[" + " ".join(f"c{channel}+{count}" for channel, count in self.counts) + "]"

    @property
    def upstreams(self) -> tuple[tuple[Upstream, int], ...]:
        """The drawn channels by their full names, with the numbers of outputs."""
        return tuple((Upstream(self.link, channel), count) for channel, count in self.counts)


@dataclass(frozen=True, slots=True)
class LineageRecord:
    """What one task consumed and decided. With neither split nor draw, it ends its channel or continues with a rest."""

    checksum: int
    split: int | None = None
    draw: Draw | None = None
    sides: int = 0
    final: bool = False
    #: The channel's state after this task is in the durable store.
    saved: bool = False

    def __str__(self) -> str:
        parts = [f"split {self.split}" if self.split is not None else "", str(self.draw or "")]
        parts += [f"sides {self.sides:b}" if self.sides else "", "final" if self.final else ""]
        parts += ["saved" if self.saved else ""]
        return " ".join(part for part in parts if part) or "nothing"


#: How many outputs of each upstream channel a channel has consumed.
Watermark = dict[Upstream, int]


def advance(watermark: Watermark, draw: Draw | None) -> None:
    """Move a watermark past what a task drew."""
    if draw is not None:
        for upstream, count in draw.upstreams:
            watermark[upstream] = watermark.get(upstream, 0) + count


def fold(records: Iterable[LineageRecord]) -> Watermark:
    """The watermark after these records: the sum of their draws (invariant 3)."""
    watermark: Watermark = {}
    for record in records:
        advance(watermark, record.draw)
    return watermark


def encode(record: LineageRecord) -> bytes:
    """Encode a record for a commit."""
    if not 0 <= record.checksum < 1 << 64:
        raise EncodingError(f"A checksum has 64 bits, not {record.checksum}.")
    if record.split is not None and not 0 <= record.split < SPLITS_MAX:
        raise EncodingError(f"Split {record.split} is out of range.")
    if not 0 <= record.sides < 1 << SIDES_MAX:
        raise EncodingError(f"Side inputs {record.sides:#x} are out of range.")
    flags = record.final * _FINAL | (record.split is not None) * _SPLIT
    flags |= bool(record.sides) * _SIDES | (record.draw is not None) * _DRAW | record.saved * _SAVED
    out = bytearray((VERSION, flags))
    out += record.checksum.to_bytes(8, "little")
    if record.split is not None:
        _put(out, record.split)
    if record.sides:
        _put(out, record.sides)
    if record.draw is not None:
        _put(out, record.draw.link)
        _put(out, len(record.draw.counts))
        previous = 0
        for channel, count in record.draw.counts:
            _put(out, channel - previous)
            _put(out, count)
            previous = channel
    return bytes(out)


def key_of(record: LineageRecord) -> str:
    """A key that distinguishes the state after a task from that of another attempt, which may have drawn differently.

    The state before the task is the same for all attempts, because the earlier records are committed.
    """
    return hashlib.blake2b(encode(replace(record, saved=False)), digest_size=8).hexdigest()


def is_saved(data: bytes) -> bool:
    """Does an encoded record say that the state after its task was saved? Does not decode the whole record."""
    return len(data) > 1 and bool(data[1] & _SAVED)


def decode(data: bytes) -> LineageRecord:
    """Decode a record; anything that `encode` could not have written is an error."""
    if len(data) < 10 or data[0] != VERSION:
        raise EncodingError(f"Not a lineage record of version {VERSION}: {data[:16].hex()}.")
    flags = data[1]
    if flags & ~(_FINAL | _SPLIT | _SIDES | _DRAW | _SAVED):
        raise EncodingError(f"A lineage record has unknown flags {flags:#x}.")
    reader = _Reader(data, 10)
    split = reader.take() if flags & _SPLIT else None
    sides = reader.take() if flags & _SIDES else 0
    draw = _take_draw(reader) if flags & _DRAW else None
    final, saved = bool(flags & _FINAL), bool(flags & _SAVED)
    record = LineageRecord(int.from_bytes(data[2:10], "little"), split, draw, sides, final, saved)
    if encode(record) != data:
        raise EncodingError(f"A lineage record is not in its one valid form: {data[:64].hex()}.")
    return record


def _take_draw(reader: _Reader) -> Draw:
    link, n = reader.take(), reader.take()
    if n > CHANNELS_MAX:
        raise EncodingError(f"A draw from {n} channels is out of range.")
    counts: list[tuple[int, int]] = []
    channel = 0
    for _ in range(n):
        channel += reader.take()
        counts.append((channel, reader.take()))
    return Draw(link, tuple(counts))


def _put(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


class _Reader:
    """Reads unsigned LEB128 integers from bytes; reading past the end is an error."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self) -> int:
        value = shift = 0
        while self._at < len(self._data) and shift < 63:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise EncodingError(f"A lineage record ends too early: {self._data[:64].hex()}.")
