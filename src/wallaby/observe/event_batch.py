"""Send a worker's events to the head: one Flight action with a line of JSON about them, then their lines.

The lines go into the log unchanged. The first line has the worker's totals so far, per stage, so that the head need not
read the others, and a lost batch is made up for by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields

from wallaby.errors import EncodingError
from wallaby.lineage.names import QueryId, WorkerId

#: The name of the action.
EVENTS = "events"
VERSION = 4
#: A larger batch is refused.
EVENT_BATCH_BYTES_MAX = 4 << 20


@dataclass(slots=True)
class StageTotals:
    """The totals of one worker for one stage. Rows and bytes are those of outputs, each output counted once."""

    tasks: int = 0
    rows: int = 0
    bytes: int = 0
    input_rows: int = 0
    input_bytes: int = 0
    seconds: float = 0.0
    queued_seconds: float = 0.0
    retraced: int = 0
    reread: int = 0
    spilled_bytes: int = 0
    #: Parts of the seconds: reading, partitioning rows, computing checksums of outputs. The rest is the kernels' own.
    scan_seconds: float = 0.0
    partition_seconds: float = 0.0
    checksum_seconds: float = 0.0
    #: A part of the seconds: tasks that were executed before.
    again_seconds: float = 0.0

    def add(self, other: StageTotals) -> None:
        """Add another's totals."""
        _add(self, other)


@dataclass(slots=True)
class Carried:
    """The totals of one worker for a query besides its tasks. `store` is the GCS; leases belong to no query."""

    pushes: int = 0
    push_seconds: float = 0.0
    backup_seconds: float = 0.0
    store_calls: int = 0
    store_seconds: float = 0.0
    commits: int = 0
    lineage_bytes: int = 0
    #: Outputs and states that were written to the durable store.
    durable_bytes: int = 0
    durable_seconds: float = 0.0
    #: Tasks that were committed with a saved state.
    checkpoints: int = 0

    def add(self, other: Carried) -> None:
        """Add another's totals."""
        _add(self, other)


def _add(one: StageTotals | Carried, other: StageTotals | Carried) -> None:
    for each in fields(one):
        setattr(one, each.name, getattr(one, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Some events of one worker. `last`: it will send no more for this query."""

    query: QueryId
    worker: WorkerId
    lines: bytes
    dropped: int = 0
    last: bool = False
    pushed_bytes: int = 0
    totals: dict[int, StageTotals] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)
    #: Seconds in kernels so far, by stage and channel.
    channels: dict[tuple[int, int], float] = field(default_factory=dict)


def encode_event_batch(batch: EventBatch, lines: Sequence[str]) -> bytes:
    """Encode the body of an action; `lines` replace the batch's own."""
    head = {
        "version": VERSION,
        "query": batch.query,
        "worker": batch.worker,
        "dropped": batch.dropped,
        "last": batch.last,
        "pushed_bytes": batch.pushed_bytes,
        "totals": {str(stage): astuple(totals) for stage, totals in batch.totals.items()},
        "carried": astuple(batch.carried),
        "channels": [(*channel, round(seconds, 4)) for channel, seconds in batch.channels.items()],
    }
    return "\n".join((json.dumps(head), *lines, "")).encode()


def decode_event_batch(body: bytes) -> EventBatch:
    """Decode the body of an action.

    Raises:
        EncodingError: there is none.
    """
    if len(body) > EVENT_BATCH_BYTES_MAX:
        raise EncodingError(f"{len(body)} bytes of events are more than one message may hold.")
    first, _, lines = body.partition(b"\n")
    if lines and not lines.endswith(b"\n"):
        raise EncodingError("The last event is incomplete.")
    try:
        head = json.loads(first)
        if head["version"] != VERSION:
            raise EncodingError(f"Events of version {head['version']} cannot be read by version {VERSION}.")
        return EventBatch(
            QueryId(str(head["query"])),
            WorkerId(str(head["worker"])),
            lines,
            int(head["dropped"]),
            bool(head["last"]),
            int(head["pushed_bytes"]),
            {int(stage): StageTotals(*values) for stage, values in head["totals"].items()},
            Carried(*head["carried"]),
            {(int(stage), int(channel)): float(seconds) for stage, channel, seconds in head["channels"]},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EncodingError(f"Events cannot be read: {error}.") from error
