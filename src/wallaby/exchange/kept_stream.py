"""Send outputs of a kept result from a worker to a reader, some of them in each `do_get`.

A ticket names outputs of one channel, in order, and the most bytes to send. The answer is a stream of the record
batches as they were made, except that dictionaries are sent as plain values. The metadata of each batch says how many
outputs are complete with it; an output without rows costs nothing. The stream ends when the worker has no more of the
outputs, when enough bytes were sent, or when the next output has other types, because a stream has one schema. A reader
that wants more asks again. A stream that breaks loses at most one output, which is then fetched again completely.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.flight as fl

from wallaby.errors import EncodingError
from wallaby.exchange.body import Body
from wallaby.lineage.effects import Slice
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName

_VERSION = 1
_COMPLETE = struct.Struct("<Q")
_NOTHING = pa.schema([])
#: The action that asks a worker for the sizes of its outputs of a result.
SIZES = "kept sizes"


@dataclass(frozen=True, slots=True)
class KeptTicket:
    """Outputs `[first, end)` of a channel over one edge, up to a number of bytes, but at least one if it is there."""

    query: QueryId
    channel: ChannelName
    edge: Edge
    first: int
    end: int
    bytes_max: int

    def encode(self) -> bytes:
        """Encode the ticket."""
        numbers = [*self.channel, *self.edge, self.first, self.end, self.bytes_max]
        return json.dumps([_VERSION, self.query, numbers], separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> KeptTicket:
        """Decode what `encode` wrote.

        Raises:
            EncodingError: it is something else.
        """
        try:
            version, query, numbers = json.loads(data)
            stage, channel, link, producer, consumer, first, end, bytes_max = map(int, numbers)
        except (ValueError, TypeError) as error:
            raise EncodingError(f"Not a ticket for a kept result: {data[:80]!r}.") from error
        if version != _VERSION or not 0 <= first <= end or bytes_max < 1:
            raise EncodingError(f"Not a ticket for a kept result of version {_VERSION}: {data[:80]!r}.")
        edge = Edge(link, producer, consumer)
        return KeptTicket(QueryId(str(query)), ChannelName(stage, channel), edge, first, end, bytes_max)

    def items(self, found: Iterable[int]) -> list[tuple[Edge, TaskName]]:
        """The slices of some of the outputs."""
        return [(self.edge, TaskName(*self.channel, seq)) for seq in found]


def kept_stream(slices: tuple[Slice, ...]) -> Any:
    """Make the answer with these outputs, which are in memory or mapped."""
    bodies = [_plain(cast(Body, piece.body)) for piece in slices]
    schema = next((body[0].schema for body in bodies if body), _NOTHING)
    return fl.GeneratorStream(schema, _batches(bodies, schema))


def _plain(body: Body) -> Body:
    if not body or not any(map(pa.types.is_dictionary, body[0].schema.types)):
        return body
    return tuple(
        pa.RecordBatch.from_arrays(
            [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns],
            names=batch.schema.names,
        )
        for batch in body
    )


def _batches(bodies: list[Body], schema: pa.Schema) -> Iterator[tuple[pa.RecordBatch, bytes]]:
    complete = told = 0
    for body in bodies:
        if body:
            if body[0].schema != schema:
                break
            for batch in body[:-1]:
                yield batch, _COMPLETE.pack(told)
            told = complete + 1
            yield body[-1], _COMPLETE.pack(told)
        complete += 1
    if complete > told:  # the last ones have no rows
        yield pa.RecordBatch.from_pylist([], schema=schema), _COMPLETE.pack(complete)


def read_outputs(reader: Any) -> tuple[int, list[pa.RecordBatch]]:
    """The number of outputs that a stream delivers completely, and their batches, even if the stream breaks.

    Raises:
        EncodingError: the stream is not one of `kept_stream`.
    """
    complete = 0
    whole: list[pa.RecordBatch] = []
    begun: list[pa.RecordBatch] = []
    try:
        while True:
            chunk = reader.read_chunk()
            if chunk.data is None or chunk.app_metadata is None:
                raise EncodingError(
                    "A stream of kept outputs has a message without rows or without a position."
                )
            (now,) = _COMPLETE.unpack(chunk.app_metadata.to_pybytes())
            chunk.data.validate()
            begun.append(chunk.data)
            if now > complete:
                whole += begun
                begun.clear()
                complete = now
    except StopIteration:
        pass
    except (fl.FlightError, pa.ArrowException, OSError):
        if not complete:
            raise
    except struct.error as error:
        raise EncodingError("A stream of kept outputs does not say what is complete.") from error
    return complete, [batch for batch in whole if batch.num_rows]


def encode_sizes(sizes: dict[ChannelName, list[tuple[int, int]]]) -> bytes:
    """Encode the rows and bytes of the outputs that a worker keeps, by channel, from the first output on."""
    said = [[*channel, outputs] for channel, outputs in sizes.items()]
    return json.dumps([_VERSION, said], separators=(",", ":")).encode()


def decode_sizes(data: bytes) -> dict[ChannelName, list[tuple[int, int]]]:
    """Decode what `encode_sizes` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        version, said = json.loads(data)
        if version == _VERSION:
            return {
                ChannelName(int(stage), int(channel)): [(int(rows), int(size)) for rows, size in outputs]
                for stage, channel, outputs in said
            }
    except (ValueError, TypeError) as error:
        raise EncodingError(f"Not the sizes of a kept result: {data[:80]!r}.") from error
    raise EncodingError(f"Sizes of version {version!r} are not understood.")
