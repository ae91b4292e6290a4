"""Decompress and parse the sections of an ORC file that describe it: tail, stripe footers, row indexes.

Arrow reads these sections but does not expose them. They are messages in the wire format of Protocol Buffers, in chunks
that are compressed one by one. Only the fields that determine the size of a stripe are read here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from wallaby.tables.formats.content import DoubtError

#: The fields of a message by their numbers, each with all its values in order.
Message = dict[int, list[int | bytes]]
NONE, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
#: A chunk begins with its length and a flag that it is not compressed.
HEADER_BYTES: Final = 3
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def message(data: bytes) -> Message:
    """The fields of a message."""
    fields: Message = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _value(data, at, key & 7)
        fields.setdefault(key >> 3, []).append(value)
    return fields


def number(fields: Message, field: int, default: int = 0) -> int:
    """A field that is a whole number."""
    found = fields.get(field, [default])[-1]
    if not isinstance(found, int):
        raise pa.ArrowInvalid(f"field {field} of a message is not a number")
    return found


def signed(value: int) -> int:
    """A whole number in zigzag encoding."""
    return (value >> 1) ^ -(value & 1)


def messages(fields: Message, field: int) -> list[Message]:
    """A repeated field of messages."""
    return [message(each) for each in fields.get(field, []) if isinstance(each, bytes)]


def numbers(fields: Message, field: int) -> list[int]:
    """A repeated field of whole numbers, packed or not."""
    found: list[int] = []
    for each in fields.get(field, []):
        if isinstance(each, int):
            found.append(each)
            continue
        at = 0
        while at < len(each):
            value, at = _varint(each, at)
            found.append(value)
    return found


def written(field: int, value: int | bytes) -> bytes:
    """Encode one field of a message."""
    if isinstance(value, int):
        return _written_varint(field << 3 | _VARINT) + _written_varint(value)
    return _written_varint(field << 3 | _BYTES) + _written_varint(len(value)) + value


def decompressed(data: bytes, compression: int) -> bytes:
    """Decompress a section."""
    if compression == NONE:
        return data
    parts: list[bytes] = []
    for begin, end, original in chunks(data):
        part = data[begin:end]
        parts.append(part if original else _decompressed_chunk(part, compression))
    return b"".join(parts)


def uncompressed(data: bytes, compression: int, block_bytes: int) -> bytes:
    """Encode a section in chunks that are not compressed."""
    if compression == NONE:
        return data
    parts = (data[at : at + block_bytes] for at in range(0, len(data), block_bytes))
    return b"".join((len(part) << 1 | 1).to_bytes(HEADER_BYTES, "little") + part for part in parts)


def chunks(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """The begin and end of each chunk of a section, and whether it is not compressed."""
    at = 0
    while at < len(data):
        length, original = chunk_header(data[at : at + HEADER_BYTES])
        at += HEADER_BYTES
        yield at, at + length, original
        at += length


def chunk_header(data: bytes) -> tuple[int, bool]:
    """The length of a chunk, and whether it is not compressed."""
    if len(data) < HEADER_BYTES:
        raise pa.ArrowInvalid("a section ends within the header of a chunk")
    head = int.from_bytes(data, "little")
    return head >> 1, bool(head & 1)


def _decompressed_chunk(part: bytes, compression: int) -> bytes:
    if compression == _ZLIB:
        try:
            return zlib.decompress(part, -zlib.MAX_WBITS)
        except zlib.error as error:
            raise pa.ArrowInvalid(str(error)) from error
    if compression == _SNAPPY:
        return bytes(pa.Codec("snappy").decompress(part, _varint(part, 0)[0]))
    if compression == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(part), "zstd").read())
    if compression == _LZ4:
        return bytes(pa.Codec("lz4_raw").decompress(part, _lz4_length(part)))
    raise DoubtError("it is compressed by a method that is not known here")


def _lz4_length(part: bytes) -> int:
    """The decompressed length of an LZ4 block: the sum of its literals and copies, each preceded by its length."""
    length = at = 0
    while True:
        token = part[at]
        literals, at = _lz4_count(part, at + 1, token >> 4)
        length += literals
        at += literals
        if at >= len(part):
            return length
        copied, at = _lz4_count(part, at + 2, token & 15)
        length += copied + 4


def _lz4_count(part: bytes, at: int, first: int) -> tuple[int, int]:
    count, byte = first, 255
    while first == 15 and byte == 255:
        byte = part[at]
        count, at = count + byte, at + 1
    return count, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= len(data):
            raise pa.ArrowInvalid("a message ends within a number")
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return found, at


def _written_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def _value(data: bytes, at: int, kind: int) -> tuple[int | bytes, int]:
    match kind:
        case 0:
            return _varint(data, at)
        case 1:
            return data[at : at + 8], at + 8
        case 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise pa.ArrowInvalid("a message ends within a field")
            return data[at : at + length], at + length
        case 5:
            return data[at : at + 4], at + 4
        case _:
            raise pa.ArrowInvalid("a message has a field of an unknown kind")
