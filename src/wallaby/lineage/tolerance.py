"""Fault tolerance in four independent parts, and the named policies that are points in that space.

The parts are: is lineage recorded, where are outputs kept, are snapshots of states taken, and when may a stage
start. The algorithms ask for single parts and know of no policy; a policy is only a name for a choice of parts, made
so that the systems which the paper compares can be run and measured in one engine. See docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A choice for each part. The default is write-ahead lineage."""

    #: Does every task commit a record of what it consumed? If not, a query ends with the loss of a worker, and all that
    #: can be done is to run it again.
    recorded: bool = True
    #: Is every output in the durable store before its commit? Then it outlives the worker that made it.
    durable: bool = False
    #: Are states written to the durable store now and then, so that a lost channel need not begin from nothing?
    snapshots: bool = False
    #: Does a stage start only when its inputs are complete, and not at once?
    staged: bool = False

    @property
    def uses_store(self) -> bool:
        """Is there anything to be written to the durable store?"""
        return self.durable or self.snapshots


LINEAGE: Final = Tolerance()
#: Nothing is written down.
NONE: Final = Tolerance(recorded=False)
POLICIES: Final = {
    "lineage": LINEAGE,
    "none": NONE,
    "spool": Tolerance(durable=True),
    "stagewise": Tolerance(staged=True),
    "checkpoint+lineage": Tolerance(snapshots=True),
    "spool+checkpoint": Tolerance(durable=True, snapshots=True),
}


def tolerance_of(policy: str) -> Tolerance:
    """The parts of a policy, by its name."""
    name = policy.strip().lower()
    if name not in POLICIES:
        raise ConfigurationError(
            f"Unknown fault-tolerance policy {policy!r}.",
            fix=f"Choose one of: {', '.join(POLICIES)}.",
            key="spark.wallaby.faultTolerance.policy",
        )
    return POLICIES[name]
