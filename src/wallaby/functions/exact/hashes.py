"""Spark's hashes, bit for bit: murmur3 with 32 bits and xxhash with 64.

The hash of several values is that of the last with the hash of the others as its seed; a NULL leaves the seed as it
is. Spark's murmur3 takes the bytes behind the last whole word one by one, as signed numbers, unlike everybody else's.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from wallaby.functions.exact.arrow_function import ArrowFunction, Fault, per_value
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, LONG, STRING, DataType, Kind

_BINARY: Final = DataType(Kind.BINARY)
_FLOAT: Final = DataType(Kind.FLOAT)
_LINE: Final = 76
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
Words = npt.NDArray[np.uint32]


# ---------------------------------------------------------------------------------------------------- murmur3
def _rotated(words: Words, by: int) -> Words:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))


def _mixed(hashes: Words, words: Words) -> Words:
    scrambled = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(hashes ^ scrambled, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(hashes: Words, lengths: Words | np.uint32) -> Words:
    found = hashes ^ lengths
    found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return found ^ (found >> np.uint32(16))


def _of_ints(values: npt.NDArray[np.int32], seeds: Words) -> Words:
    return _finished(_mixed(seeds, values.view(np.uint32)), np.uint32(4))


def _of_longs(values: npt.NDArray[np.int64], seeds: Words) -> Words:
    bits = values.view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    return _finished(_mixed(_mixed(seeds, low), high), np.uint32(8))


def _of_bytes(values: pa.Array, seeds: Words) -> Words:
    """Word by word over all values that are long enough."""
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes, words = seeds.copy(), lengths // 4
    for word in range(int(words.max(initial=0))):
        active = np.flatnonzero(words > word)
        at = starts[active] + 4 * word
        taken = sum(data[at + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
        hashes[active] = _mixed(hashes[active], np.asarray(taken, np.uint32))
    for byte in range(3):
        active = np.flatnonzero(lengths % 4 > byte)
        at = starts[active] + 4 * words[active] + byte
        signed = data[at].view(np.int8).astype(np.int32).view(np.uint32)
        hashes[active] = _mixed(hashes[active], signed)
    return _finished(hashes, lengths.astype(np.uint32))


def _murmur3(
    name: str, takes: DataType, compute: Callable[[Any, Words], Words], as_input: Callable[[pa.Array], Any]
) -> ArrowFunction:
    def over(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
        found = compute(
            as_input(_whole(values)), _whole(seeds).to_numpy(zero_copy_only=False).view(np.uint32)
        )
        return pc.if_else(pc.is_valid(values), pa.array(found.view(np.int32)), seeds)

    return ArrowFunction(name, (takes, INTEGER), INTEGER, over)


def _whole(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _numbers(values: pa.Array) -> Any:
    return pc.fill_null(values, 0).to_numpy(zero_copy_only=False)


def _bytes(values: pa.Array) -> pa.Array:
    return pc.fill_null(values, b"").cast(pa.large_binary())


def _bits_of(integers: type[np.int32 | np.int64]) -> Callable[[pa.Array], Any]:
    """Of the two zeros the positive one, and one NaN."""

    def bits(values: pa.Array) -> Any:
        numbers = _numbers(values) + 0.0
        return np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers).view(integers)

    return bits


# ----------------------------------------------------------------------------------------------------- xxhash
def _xxhash64(name: str, takes: DataType, as_bytes: Callable[[pa.Array], list[bytes]]) -> ArrowFunction:
    def over(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
        known = pc.is_valid(values).to_pylist()
        rows = zip(as_bytes(_whole(values)), known, seeds.to_pylist(), strict=True)
        hashed = [xxhash.xxh64_intdigest(b, seed % (1 << 64)) if k else seed for b, k, seed in rows]
        return pa.array([h - (1 << 64) if h >= 1 << 63 else h for h in hashed], pa.int64())

    return ArrowFunction(name, (takes, LONG), LONG, over)


def _little_endian(convert: Callable[[pa.Array], Any]) -> Callable[[pa.Array], list[bytes]]:
    def as_bytes(values: pa.Array) -> list[bytes]:
        numbers = convert(values)
        raw, width = numbers.astype(numbers.dtype.newbyteorder("<")).tobytes(), numbers.dtype.itemsize
        return [raw[at : at + width] for at in range(0, len(raw), width)]

    return as_bytes


# ------------------------------------------------------------------------------------------- bytes and digits
def java_bytes(number: str) -> bytes:
    """The shortest two's complement of a whole number, most significant byte first."""
    value = int(number)
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def sha2(value: bytes, bits: int) -> str | None:
    """The hash with so many bits; 0 stands for 256."""
    chosen = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if chosen is None else hashlib.new(chosen, value).hexdigest()


def unhex(text: str, failing: bool) -> bytes | None:
    """Two digits a byte; of an odd number the first is alone. NULL, or an error, for other characters."""
    try:
        if not text.isalnum():
            raise ValueError("not a digit")
        return bytes.fromhex("0" * (len(text) % 2) + text)
    except ValueError:
        if not text:
            return b""
        if failing:
            raise Fault("CONVERSION_INVALID_INPUT", f"{text!r} is no hexadecimal number.") from None
        return None


def encode_base64(value: bytes, lines: bool) -> str:
    """In lines of 76 characters, or in one."""
    text = base64.b64encode(value).decode("ascii")
    return "\r\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE)) if lines else text


def decode_base64(text: str) -> bytes:
    """As Java reads MIME: other characters are skipped, and padding ends it."""
    digits, padded, _ = text.partition("=")
    known = [_ALPHABET.find(character) for character in digits]
    sextets = [value for value in known if value >= 0]
    rest = len(sextets) % 4
    after = text[len(digits) + 1 :]
    alone = rest == 2 and padded and not after.startswith("=")
    if rest == 1 or alone or (padded and rest == 0):
        raise Fault("CONVERSION_INVALID_INPUT", "The text is not in base 64.")
    if any(_ALPHABET.find(character) >= 0 for character in after):
        raise Fault("CONVERSION_INVALID_INPUT", "The text goes on after its end.")
    bits = sum(value << (6 * place) for place, value in enumerate(reversed(sextets)))
    size = len(sextets) * 6 // 8
    return (bits >> (len(sextets) * 6 - size * 8)).to_bytes(size, "big")


def decode_utf8(value: bytes) -> str:
    """Bytes that are no text are an error."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise Fault("MALFORMED_CHARACTER_CODING", "Invalid value found in UTF-8.") from None


FUNCTIONS: Final = (
    _murmur3("wallaby_murmur3_int", INTEGER, _of_ints, _numbers),
    _murmur3("wallaby_murmur3_long", LONG, _of_longs, _numbers),
    _murmur3("wallaby_murmur3_float", _FLOAT, _of_ints, _bits_of(np.int32)),
    _murmur3("wallaby_murmur3_double", DOUBLE, _of_longs, _bits_of(np.int64)),
    _murmur3("wallaby_murmur3_bytes", _BINARY, _of_bytes, _bytes),
    _xxhash64("wallaby_xxhash64_int", INTEGER, _little_endian(_numbers)),
    _xxhash64("wallaby_xxhash64_long", LONG, _little_endian(_numbers)),
    _xxhash64("wallaby_xxhash64_float", _FLOAT, _little_endian(_bits_of(np.int32))),
    _xxhash64("wallaby_xxhash64_double", DOUBLE, _little_endian(_bits_of(np.int64))),
    _xxhash64("wallaby_xxhash64_bytes", _BINARY, lambda values: pc.fill_null(values, b"").to_pylist()),
    per_value("wallaby_java_bytes", (STRING,), _BINARY, java_bytes),
    per_value("wallaby_sha2", (_BINARY, INTEGER), STRING, sha2),
    per_value("wallaby_crc32", (_BINARY,), LONG, zlib.crc32),
    per_value("wallaby_unhex", (STRING, BOOLEAN), _BINARY, unhex),
    per_value("wallaby_base64", (_BINARY, BOOLEAN), STRING, encode_base64),
    per_value("wallaby_unbase64", (STRING,), _BINARY, decode_base64),
    per_value("wallaby_decode_utf8", (_BINARY,), STRING, decode_utf8),
)
