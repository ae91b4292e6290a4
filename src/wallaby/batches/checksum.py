"""A 64-bit checksum of batches that covers their values and boundaries, not the memory that holds them.

Two lists of batches have the same checksum if and only if (except by chance) they have the same number of batches, of
the same lengths, with the same values in the same order. Offsets in buffers, padding, a bitmap without nulls, and the
bytes under a null make no difference: DuckDB, for example, leaves arbitrary bytes under a null. Floats count by their
bits.

The hash is XXH3 (the `xxhash` package): 33 GB/s measured here, against 1.8 for SHA-256 with hardware help, 0.9
for BLAKE2b, and 4.2 for CRC-32, which has too few bits. It detects differences, but is no protection against an
attacker.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from wallaby.errors import InternalError

#: As long as the longest value of fixed width.
_ZEROS = pa.py_buffer(bytes(32))


def checksum(slices: Iterable[Iterable[pa.RecordBatch]]) -> int:
    """The checksum of an output: of every slice, in order, and of every batch in it, in order."""
    digest = xxhash.xxh3_64()
    for number, batches in enumerate(slices):
        digest.update(b"slice %d" % number)
        for batch in batches:
            digest.update(b"batch %d %d" % (batch.num_columns, batch.num_rows))
            for column in batch.columns:
                _add(digest, column)
    return digest.intdigest()


def _add(digest: xxhash.xxh3_64, array: pa.Array) -> None:
    digest.update(str(array.type).encode())
    if pa.types.is_null(array.type):
        return
    if array.null_count:
        digest.update(_bytes_of(array.is_valid()))
    else:
        digest.update(b"all")
    if pa.types.is_nested(array.type):
        _add_nested(digest, array)
    else:
        _add_flat(digest, _without_nulls(array))


def _add_flat(digest: xxhash.xxh3_64, array: pa.Array) -> None:
    """Values of an array without nulls."""
    buffers, offset, length = array.buffers(), array.offset, len(array)
    if pa.types.is_boolean(array.type):
        digest.update(_bytes_of(array))
    elif _has_offsets(array.type):
        width = np.int64 if _has_long_offsets(array.type) else np.int32
        offsets = (
            np.frombuffer(buffers[1], dtype=width)[offset : offset + length + 1]
            if length
            else np.zeros(1, width)
        )
        digest.update(np.diff(offsets).tobytes())
        if buffers[2] is not None:
            digest.update(memoryview(buffers[2])[int(offsets[0]) : int(offsets[-1])])
    elif length:
        width_bytes = array.type.bit_width // 8
        digest.update(memoryview(buffers[1])[offset * width_bytes : (offset + length) * width_bytes])


def _add_nested(digest: xxhash.xxh3_64, array: pa.Array) -> None:
    """Add lists by their lengths and all their elements, structs by their fields; nulls have neither."""
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            _add(digest, child)
    elif pa.types.is_map(array.type):
        entries = pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)]))
        _add_nested(digest, array.cast(entries))
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        _add_flat(digest, lengths)
        _add(digest, array.flatten())
    else:
        raise InternalError(f"No checksum is defined for {array.type}.", fix="Add it to batches/checksum.py.")


def _without_nulls(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.fill_null("")
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return array.fill_null(b"")
    zero = pa.Array.from_buffers(array.type, 1, [None, _ZEROS])[0]
    return array.fill_null(zero)


def _bytes_of(booleans: pa.Array) -> memoryview:
    """One byte per bit, whatever the offset of the bits."""
    return memoryview(booleans.cast(pa.uint8()).buffers()[1])[: len(booleans)]


def _has_offsets(type_: pa.DataType) -> bool:
    return bool(_has_long_offsets(type_) or pa.types.is_string(type_) or pa.types.is_binary(type_))


def _has_long_offsets(type_: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(type_) or pa.types.is_large_binary(type_))
