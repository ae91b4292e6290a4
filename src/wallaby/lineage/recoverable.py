"""Find what outlives the workers of a query: outputs, if they are in the durable store, and saved states.

The record of a task says whether its state was saved, so the records show which states exist and what had been consumed
by then. A lost channel continues from the newest state such that nobody needs its earlier outputs; if there is none,
from its initial state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wallaby.lineage.lineage import Watermark, advance, decode
from wallaby.lineage.names import ChannelName
from wallaby.lineage.tolerance import LINEAGE, Tolerance


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The saved state of a channel after its first `seq` tasks, and how much of each input they had consumed."""

    seq: int = 0
    consumed: Watermark = field(default_factory=dict)


INITIAL = Checkpoint()


@dataclass(frozen=True, slots=True)
class Recoverable:
    """What remains available of a query after the workers that made it are lost."""

    #: The policy, which determines what happens to outputs.
    tolerance: Tolerance = LINEAGE
    #: The saved states of each channel, the oldest first.
    states: Mapping[ChannelName, tuple[Checkpoint, ...]] = field(default_factory=dict)

    def newest(self, channel: ChannelName, end: int) -> Checkpoint:
        """The newest state of a channel that is no further than its first `end` tasks."""
        return max(
            (c for c in self.states.get(channel, ()) if c.seq <= end), key=lambda c: c.seq, default=INITIAL
        )


def checkpoints(records: Iterable[bytes]) -> tuple[Checkpoint, ...]:
    """The saved states of a channel, according to its records."""
    found: list[Checkpoint] = []
    watermark: Watermark = {}
    for seq, data in enumerate(records):
        record = decode(data)
        advance(watermark, record.draw)
        if record.saved:
            found.append(Checkpoint(seq + 1, dict(watermark)))
    return tuple(found)


def recoverable(tolerance: Tolerance, records: Mapping[ChannelName, Iterable[bytes]]) -> Recoverable:
    """What remains of a query. The records are read only if states are saved."""
    states = {name: checkpoints(of) for name, of in records.items()} if tolerance.needs_records else {}
    return Recoverable(tolerance, states)


#: With the default policy nothing outlives its worker.
NOTHING = Recoverable()
