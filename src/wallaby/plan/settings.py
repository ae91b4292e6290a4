"""The settings of planning. Their values are constants of a query, fixed when it is planned."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.graph import CHANNELS_MAX

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Sizes are estimates of decoded rows, not of files."""

    #: Channels of every stage that is partitioned by hash, and the maximum for a reading stage. They are equal so that
    #: data which is already partitioned correctly can pass through without an exchange.
    channels: int = 4
    #: TaskManagers: a broadcast is sent once to each of them. 0: as many as channels.
    workers: int = 0
    #: A build side up to this size goes whole to every channel of the probe side.
    broadcast_bytes: int = 128 * MIB
    #: An aggregation whose partial results are estimated to be at most this big ends in one channel.
    single_channel_bytes: int = 4 * MIB
    #: Aggregate in the producing task before the exchange.
    partial_aggregation: bool = True
    #: But not if there are more groups than this share of the rows, because it would cost more than it saves.
    partial_groups_share: float = 0.5

    @property
    def copies(self) -> int:
        """How many times a broadcast is sent."""
        return min(self.channels, self.workers or self.channels)

    def __post_init__(self) -> None:
        _require(1 <= self.channels <= CHANNELS_MAX, f"{self.channels} channels are not 1..{CHANNELS_MAX}")
        _require(self.workers >= 0, "workers are negative")
        _require(self.broadcast_bytes >= 0, "broadcast_bytes is negative")
        _require(self.single_channel_bytes >= 0, "single_channel_bytes is negative")
        _require(0 <= self.partial_groups_share <= 1, "partial_groups_share is not between 0 and 1")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvalidArgumentError(f"Impossible plan settings: {what}.", fix="Correct the setting.")
