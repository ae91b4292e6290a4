"""The body of a slice: record batches, and their encoding as bytes in memory, in files and on the wire.

As bytes, a body is one Arrow IPC stream, so every slice carries its own schema and dictionaries, and slices of
different links can travel in one call. Batch boundaries are part of the content: a kernel may give different bytes for
the same rows in other batches. So a body is never concatenated or split, and the number of its batches is checked on
arrival. Batches without rows count. A body without batches is None.

Reading never executes code: Arrow IPC holds only data, and pyarrow no longer has the one extension type that held
pickled code. Malformed bytes raise `EncodingError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pyarrow as pa

from wallaby.errors import EncodingError

#: The type of a slice's `body` in production; None if there are no rows.
Body = tuple[pa.RecordBatch, ...] | None

#: Columns that are not aligned for their type, as Polars and DuckDB require, are copied to aligned memory.
_READ = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific, use_threads=False)


def size_of(body: Body) -> int:
    """The bytes of data in a body; for a slice of an array, only its part counts."""
    return sum(batch.nbytes for batch in body or ())


def encode(batches: tuple[pa.RecordBatch, ...], compression: str | None = None) -> pa.Buffer:
    """Encode a body as one Arrow IPC stream. `compression` is None or "lz4"."""
    if compression is not None:
        sink = pa.BufferOutputStream()
        _write(sink, batches, compression)
        return sink.getvalue()
    # Measured first and copied once: faster at every size than a buffer that grows.
    buffer = pa.allocate_buffer(encoded_size(batches))
    _write(pa.FixedSizeBufferWriter(buffer), batches)
    return buffer


def encoded_size(batches: tuple[pa.RecordBatch, ...]) -> int:
    """The length of `encode`'s result without compression, computed without copying the data."""
    sink = pa.MockOutputStream()
    _write(sink, batches)
    return cast(int, sink.size())


def _write(sink: Any, batches: tuple[pa.RecordBatch, ...], compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def decode(data: pa.Buffer, count: int) -> tuple[pa.RecordBatch, ...]:
    """Decode bytes that must hold exactly this many batches and nothing else. The batches share the memory."""
    try:
        source = pa.BufferReader(data)
        with pa.ipc.open_stream(source, options=_READ) as reader:
            batches = tuple(_checked(reader))
        rest = data.size - source.tell()
    except (pa.ArrowException, OSError, MemoryError, EOFError) as error:
        raise EncodingError(f"{data.size} bytes are not an Arrow stream: {error}") from error
    if len(batches) != count or rest:
        raise EncodingError(f"A body has {len(batches)} batches, not {count}, and {rest} bytes too many.")
    return batches


def _checked(reader: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    for batch in reader:
        batch.validate()
        yield batch
