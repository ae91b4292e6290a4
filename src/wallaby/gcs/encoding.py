"""Encode names, channel states, re-reads and stage graphs as values of Redis keys.

The form is plain text that the Lua scripts read too: decimal numbers separated by spaces, with a free text last. A
stage graph, which no script reads, is JSON with a version. Malformed values raise `EncodingError`; nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from wallaby.errors import EncodingError, WallabyError
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import ChannelName, Edge, WorkerId
from wallaby.lineage.snapshot import ChannelState, ReRead

GRAPH_VERSION = 1
#: Stands for no split.
NONE = "-"


def to_bytes(text: str) -> bytes:
    """Encode a free text (a worker's id, an address, an error); it is restored even if it is invalid Unicode."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """What `to_bytes` wrote."""
    return data.decode("utf-8", "surrogatepass")


def pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The fields and values of a Redis hash as pairs; Redis returns them as one list."""
    return zip(flat[::2], flat[1::2], strict=True)


def encode_channel(name: ChannelName) -> bytes:
    """`stage.channel`."""
    return b"%d.%d" % name


def decode_channel(data: bytes) -> ChannelName:
    """What `encode_channel` wrote."""
    stage, channel = data.split(b".")
    return ChannelName(int(stage), int(channel))


def encode_edge(edge: Edge) -> bytes:
    """`link.producer.consumer`."""
    return b"%d.%d.%d" % edge


def decode_edge(data: bytes) -> Edge:
    """What `encode_edge` wrote."""
    link, producer, consumer = data.split(b".")
    return Edge(int(link), int(producer), int(consumer))


def decode_split(data: bytes) -> int | None:
    """A split, or none."""
    return None if data == NONE.encode() else int(data)


def encode_state(state: ChannelState) -> bytes:
    """`base length final closed split losses since host`."""
    split = NONE if state.split is None else str(state.split)
    numbers = f"{state.base} {state.length} {state.final:d} {state.closed:d} {split} {state.losses} "
    return f"{numbers}{state.since_epoch} ".encode() + to_bytes(state.host)


def decode_state(data: bytes) -> ChannelState:
    """What `encode_state`, or a script, wrote."""
    try:
        base, length, final, closed, split, losses, since_epoch, host = data.split(b" ", 7)
        return ChannelState(
            WorkerId(to_text(host)),
            int(base),
            int(length),
            final == b"1",
            closed == b"1",
            decode_split(split),
            int(losses),
            int(since_epoch),
        )
    except ValueError as error:
        raise EncodingError(f"Not the state of a channel: {data[:80]!r}.") from error


def encode_reread(reread: ReRead) -> bytes:
    """`stage.channel first end edge edge ...`."""
    head = b"%s %d %d" % (encode_channel(reread.channel), reread.first, reread.end)
    return b" ".join((head, *map(encode_edge, reread.edges)))


def decode_reread(data: bytes) -> ReRead:
    """What `encode_reread`, or a script, wrote."""
    try:
        channel, first, end, *edges = data.split(b" ")
        return ReRead(decode_channel(channel), int(first), int(end), tuple(map(decode_edge, edges)))
    except ValueError as error:
        raise EncodingError(f"Not a re-read: {data[:80]!r}.") from error


def encode_graph(graph: StageGraph) -> bytes:
    """A stage graph as JSON: version, stages and links, each a list in the order of its fields."""
    document = {
        "version": GRAPH_VERSION,
        "stages": [[stage.kind.value, stage.channels, stage.splits] for stage in graph.stages],
        "links": [
            [link.producer, link.consumer, link.kind.value, link.phase, link.required, link.routing.value]
            for link in graph.links
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_graph(data: bytes) -> StageGraph:
    """What `encode_graph` wrote."""
    try:
        document = json.loads(data)
        if document["version"] != GRAPH_VERSION:
            raise EncodingError(f"A stage graph has the unknown version {document['version']!r}.")
        stages = tuple(
            Stage(StageKind(kind), channels, splits) for kind, channels, splits in document["stages"]
        )
        links = tuple(
            Link(producer, consumer, LinkKind(kind), phase, required, Routing(routing))
            for producer, consumer, kind, phase, required, routing in document["links"]
        )
        return StageGraph(stages, links)
    except EncodingError:
        raise
    except (ValueError, TypeError, KeyError, WallabyError) as error:
        raise EncodingError(f"Not a stage graph: {data[:80]!r}.") from error
