"""Hashes, bit for bit as on Spark, because users partition by them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from wallaby.catalyst.data_types import BINARY, INTS, ORDERED
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ArrowFunction, per_value
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.numbers.decimal_sql import unscaled
from wallaby.functions.scalar_sql import MANY, ScalarSql, Write, not_supported, template
from wallaby.functions.size import constant
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import DOUBLE, INTEGER, LONG, STRING, DataType, Kind
from wallaby.sql.types import FLAT
from wallaby.sql.words import cast

_SEEDED: Final = "bit for bit, since people partition by it"


def _seeded(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read a hash; the seed becomes the first argument."""
    seed = node.field("seed")
    if not isinstance(seed, int) or not arguments:
        return Refusal("it has no arguments, or its seed is not a constant")
    return Call(entry.function, (Literal(seed, kind), *arguments), kind, node.nullable)


_BYTES: Final = DataType(Kind.BINARY)
_FLOAT: Final = DataType(Kind.FLOAT)
Words = npt.NDArray[np.uint32]


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
    """Hash bytes word by word, over all values that are long enough."""
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
    """The bits of floats, with one zero (the positive one) and one NaN."""

    def bits(values: pa.Array) -> Any:
        numbers = _numbers(values) + 0.0
        return np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers).view(integers)

    return bits


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


def java_bytes(number: str) -> bytes:
    """The shortest two's complement of a whole number, most significant byte first."""
    value = int(number)
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def sha2(value: bytes, bits: int) -> str | None:
    """The SHA-2 hash with this many bits; 0 means 256."""
    chosen = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if chosen is None else hashlib.new(chosen, value).hexdigest()


_LONG_DIGITS: Final = 18


def _chained(name: str) -> Write:
    """Hash values in turn, with the hash of the earlier ones as the seed."""

    def write(call: Call, sql: Sequence[str]) -> str:
        found = sql[0]
        for argument, value in zip(call.arguments[1:], sql[1:], strict=True):
            kind, written = _prepared(argument.type, value)
            found = f"{name}_{kind}({written}, {found})"
        return found

    return write


def _prepared(type_: DataType, sql: str) -> tuple[str, str]:
    """The form in which a value is hashed, and its SQL."""
    match type_.kind:
        case Kind.BOOLEAN | Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.YEAR_MONTH:
            return "int", cast(sql, INTEGER)
        case Kind.DATE:
            return "int", cast(f"date_diff('day', DATE '1970-01-01', {sql})", INTEGER)
        case Kind.LONG | Kind.DAY_TIME:
            return "long", sql
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return "long", f"epoch_us({sql})"
        case Kind.FLOAT:
            return "float", sql
        case Kind.DOUBLE:
            return "double", sql
        case Kind.DECIMAL if type_.precision <= _LONG_DIGITS:
            return "long", cast(unscaled(sql, type_), LONG)
        case Kind.DECIMAL:
            return "bytes", f"wallaby_java_bytes(CAST({unscaled(sql, type_)} AS VARCHAR))"
        case Kind.STRING:
            return "bytes", f"encode({sql})"
        case _:
            return "bytes", sql


def _hashable(call: Call) -> str | None:
    return None if all(argument.type.kind in FLAT for argument in call.arguments[1:]) else not_supported(call)


def _sha2(call: Call, sql: Sequence[str]) -> str:
    bits = call.arguments[1]
    if isinstance(bits, Literal) and bits.value in (0, 256):
        return f"sha256({sql[0]})"
    return f"wallaby_sha2({sql[0]}, {sql[1]})"


FAMILY: Final = Family(
    "Hashes and encodings",
    (
        exact(
            "Md5",
            "md5",
            BINARY,
            sql=ScalarSql(1, template("md5({0})"), size=constant(32)),
            examples=("md5({binary})",),
        ),
        exact(
            "Sha1",
            "sha1",
            BINARY,
            sql=ScalarSql(1, template("sha1({0})"), size=constant(40)),
            examples=("sha1({binary})",),
        ),
        guarded(
            "Sha2",
            "sha2",
            BINARY,
            INTS,
            guard="of 0, 224, 256, 384 and 512 bits, else NULL",
            sql=ScalarSql(2, _sha2, size=constant(128)),
            examples=("sha2({binary}, 256)", "sha2({binary}, 512)", "sha2({binary}, {small})"),
        ),
        exact(
            "Crc32",
            "crc32",
            BINARY,
            sql=ScalarSql(1, template("wallaby_crc32({0})")),
            examples=("crc32({binary})",),
        ),
        guarded(
            "Murmur3Hash",
            "murmur3",
            ORDERED,
            guard=_SEEDED,
            build=_seeded,
            sql=ScalarSql((2, MANY), _chained("wallaby_murmur3"), reason=_hashable),
            examples=("hash({any})", "hash({any}, {string}, {any})"),
        ),
        guarded(
            "XxHash64",
            "xxhash64",
            ORDERED,
            guard=_SEEDED,
            build=_seeded,
            sql=ScalarSql((2, MANY), _chained("wallaby_xxhash64"), reason=_hashable),
            examples=("xxhash64({any})", "xxhash64({any}, {string}, {any})"),
        ),
    ),
    arrow_functions=(
        _murmur3("wallaby_murmur3_int", INTEGER, _of_ints, _numbers),
        _murmur3("wallaby_murmur3_long", LONG, _of_longs, _numbers),
        _murmur3("wallaby_murmur3_float", _FLOAT, _of_ints, _bits_of(np.int32)),
        _murmur3("wallaby_murmur3_double", DOUBLE, _of_longs, _bits_of(np.int64)),
        _murmur3("wallaby_murmur3_bytes", _BYTES, _of_bytes, _bytes),
        _xxhash64("wallaby_xxhash64_int", INTEGER, _little_endian(_numbers)),
        _xxhash64("wallaby_xxhash64_long", LONG, _little_endian(_numbers)),
        _xxhash64("wallaby_xxhash64_float", _FLOAT, _little_endian(_bits_of(np.int32))),
        _xxhash64("wallaby_xxhash64_double", DOUBLE, _little_endian(_bits_of(np.int64))),
        _xxhash64("wallaby_xxhash64_bytes", _BYTES, lambda values: pc.fill_null(values, b"").to_pylist()),
        per_value("wallaby_java_bytes", (STRING,), _BYTES, java_bytes),
        per_value("wallaby_sha2", (_BYTES, INTEGER), STRING, sha2),
        per_value("wallaby_crc32", (_BYTES,), LONG, zlib.crc32),
    ),
)
