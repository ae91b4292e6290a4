"""What of a query outlives its workers: outputs, if they are in the durable store, and snapshots of states.

A task whose state was saved says so in its record, so the records tell which states there are and what had been
consumed by then. A lost channel goes on from the newest state before which nobody needs its outputs; where there is
none, from its initial state, which needs nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wallaby.lineage.lineage import Watermark, advance, decode
from wallaby.lineage.names import ChannelName
from wallaby.lineage.tolerance import LINEAGE, Tolerance


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a channel after its first `seq` tasks, and how much of each input they had consumed."""

    seq: int = 0
    consumed: Watermark = field(default_factory=dict)


INITIAL = Checkpoint()


@dataclass(frozen=True, slots=True)
class Recoverable:
    """What of a query can be had although the worker that made it is gone."""

    #: Says what becomes of outputs.
    tolerance: Tolerance = LINEAGE
    #: The saved states of each channel, the oldest first.
    states: Mapping[ChannelName, tuple[Checkpoint, ...]] = field(default_factory=dict)

    def newest(self, channel: ChannelName, end: int) -> Checkpoint:
        """The newest state of a channel that is no further than its first `end` tasks."""
        return max(
            (c for c in self.states.get(channel, ()) if c.seq <= end), key=lambda c: c.seq, default=INITIAL
        )


def checkpoints(records: Iterable[bytes]) -> tuple[Checkpoint, ...]:
    """The saved states that the records of a channel tell of."""
    found: list[Checkpoint] = []
    watermark: Watermark = {}
    for seq, data in enumerate(records):
        record = decode(data)
        advance(watermark, record.draw)
        if record.saved:
            found.append(Checkpoint(seq + 1, dict(watermark)))
    return tuple(found)


def recoverable(tolerance: Tolerance, records: Mapping[ChannelName, Iterable[bytes]]) -> Recoverable:
    """What is left of a query. The records are asked for only where states are saved."""
    states = {name: checkpoints(of) for name, of in records.items()} if tolerance.snapshots else {}
    return Recoverable(tolerance, states)


#: With the default policy nothing outlives its worker.
NOTHING = Recoverable()
