"""The incarnation of a store in which a query began: compared at every connect, and inside every script.

After any event in which a store may have lost a write, it is another incarnation:

- a restart gives it another run id, and another replication id;
- a promoted replica has its own run id, and another replication id than its former primary;
- a primary that was demoted and promoted again keeps its run id, and maybe its clients' connections, but every
  promotion draws another replication id;
- a store that has evicted keys counts them.

A replication id may also change without harm: when the first replica attaches, and when the last has been gone for
an hour. That cannot be distinguished with certainty, so it counts as a loss too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The first word of the error with which a script reports that the store is another incarnation.
LOST_WORD = "WALLABYLOST"


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One incarnation of a store."""

    run_id: str
    replication_id: str
    #: The number of keys that the server had evicted when the engine attached.
    evicted_keys: int = 0

    def encode(self) -> str:
        """Encode it for scripts and TaskManagers."""
        return f"{self.run_id} {self.replication_id} {self.evicted_keys}"

    @staticmethod
    def decode(text: str) -> Incarnation:
        """The opposite of `encode`."""
        run_id, replication_id, evicted_keys = text.split(" ")
        return Incarnation(run_id, replication_id, int(evicted_keys))

    @staticmethod
    def of(info: Mapping[str, str]) -> Incarnation:
        """The incarnation in the fields of an INFO."""
        evicted = info.get("evicted_keys", "")
        return Incarnation(
            info.get("run_id", ""), info.get("master_replid", ""), int(evicted) if evicted.isdigit() else 0
        )

    def difference(self, found: Incarnation) -> str:
        """Why another incarnation is not this one; empty if it is. `_common.lua` compares in the same way."""
        if found.run_id != self.run_id:
            return f"its run is {found.run_id}, the one expected was {self.run_id}"
        if found.replication_id != self.replication_id:
            return (
                f"its replication id is {found.replication_id}, the one expected was {self.replication_id}: it was "
                "promoted, or its replication began anew"
            )
        if found.evicted_keys > self.evicted_keys:
            return f"it has evicted {found.evicted_keys - self.evicted_keys} keys"
        return ""


def incarnation_of(text: str) -> Incarnation | None:
    """Decode an incarnation; None if there is none."""
    return Incarnation.decode(text) if text else None
