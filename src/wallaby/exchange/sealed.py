"""Headers of objects in the durable store, and the check that an object is what was written.

An object begins with a header, called its words: JSON, preceded by the JSON's length and checksum. The words have the
object's own name, and the checksums of the data that they refer to, in the same object or in others. So an object that
was truncated, changed or swapped is detected before it is used. The checksum is XXH3, as for outputs
(`batches.checksum`): 64 bits against accidents, not against attackers.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import xxhash

from wallaby.errors import DurableStoreError, EncodingError
from wallaby.exchange.body import decode
from wallaby.exchange.durable import DurableStore

#: Changes with the content of objects.
_MAGIC = b"wallaby\1"
_PREFIX = struct.Struct("<8sQQ")


def checksum_of(data: pa.Buffer) -> int:
    """The checksum of some bytes."""
    return int(xxhash.xxh3_64_intdigest(data))


def sealed(name: str, words: dict[str, Any]) -> pa.Buffer:
    """The beginning of an object of this name."""
    text = json.dumps({"name": name, **words}).encode()
    return pa.py_buffer(_PREFIX.pack(_MAGIC, len(text), xxhash.xxh3_64_intdigest(text)) + text)


def read_words(store: DurableStore, name: str) -> tuple[dict[str, Any], int]:
    """The words of an object, and where they end. `DurableStoreError` if the object is not what was written."""
    magic, length, checksum = _PREFIX.unpack(store.read(name, 0, _PREFIX.size))
    if magic != _MAGIC:
        raise store.foreign(name, "it does not begin with the expected bytes")
    text = store.read(name, _PREFIX.size, length)
    if checksum_of(text) != checksum:
        raise store.foreign(name, "its header was changed")
    try:
        words: dict[str, Any] = json.loads(text.to_pybytes())
        its_name = words["name"]
    except (LookupError, TypeError, ValueError) as error:
        raise misread(store, name, error) from error
    if its_name != name:
        raise store.foreign(name, f"it was written as {its_name}")
    return words, _PREFIX.size + length


def read_batches(
    store: DurableStore,
    name: str,
    count: int,
    checksum: int,
    offset_bytes: int = 0,
    length_bytes: int | None = None,
) -> tuple[pa.RecordBatch, ...]:
    """Read the batches in an object or a part of it. `DurableStoreError` if they are not what was written."""
    data = store.read(name, offset_bytes, length_bytes)
    if checksum_of(data) != checksum:
        raise store.foreign(name, "its data was changed")
    try:
        return decode(data, count)
    except EncodingError as error:
        raise store.foreign(name, str(error)) from error


def misread(store: DurableStore, name: str, error: Exception) -> DurableStoreError:
    """The error of an object whose words do not have the expected form."""
    return store.foreign(name, f"its header does not describe it: {type(error).__name__}: {error}")
