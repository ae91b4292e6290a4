"""Fault tolerance in five parts, and the named policies, each a choice of parts.

The parts are: whether lineage is recorded, where outputs are kept, whether checkpoints of states are taken, when a
stage may start, and whether a query that loses a worker is restarted. The algorithms ask questions ("is
this output lost?", "may this channel draw?") and look at no part; a test checks that. A policy is only a name for a
choice of parts, so that one engine can run and measure the systems that the paper compares. See docs/protocol.md and
docs/howto/add-a-policy.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.errors import ConfigurationError
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A choice for each part. The default is write-ahead lineage."""

    #: Does every task commit a record of what it consumed? If not, the loss of a worker ends the run of a query.
    recorded: bool = True
    #: Is every output in the durable store before its commit? Then it outlives the worker that made it.
    durable: bool = False
    #: Are states written to the durable store from time to time, so that a lost channel need not start from the
    #: beginning?
    checkpoints: bool = False
    #: Does a stage start only when its inputs are complete, and not at once?
    staged: bool = False
    #: Is a query restarted if a loss has ended its run?
    run_again: bool = False

    @property
    def uses_durable_store(self) -> bool:
        """Does the policy write to the durable store?"""
        return self.durable or self.checkpoints

    @property
    def keeps_results(self) -> bool:
        """Can results be kept? If a worker is lost, the records must say how to make its part again."""
        return self.recorded and not self.durable

    @property
    def survives_losses(self) -> bool:
        """Can a query continue when it has lost a worker? The records say what to make again."""
        return self.recorded

    @property
    def rolls_back(self) -> bool:
        """Do all channels take snapshots together, and go back to them together? No record says how to go on alone."""
        return self.checkpoints and not self.recorded

    @property
    def holds_back(self) -> bool:
        """Are rows held back until the result is whole? Another run may give them in another order."""
        return self.run_again and not self.rolls_back

    @property
    def needs_records(self) -> bool:
        """Does a recovery read the records of all channels? They say which states were saved."""
        return self.checkpoints and self.recorded

    def may_save(self, graph: StageGraph, stage: int, *, ended: bool, rest: bool) -> bool:
        """May the state after a task be saved? Readers have none, ended channels need none, it would lack a rest."""
        return self.needs_records and not (ended or rest or graph.is_reader(stage))

    def lost_below(self, base: int, length: int, *, leaves: bool) -> int:
        """The first output of a channel that is not lost: earlier ones have to be made again if they are needed.

        A host has the outputs that it made itself, from the channel's base, until it leaves; the durable store has all
        of them.
        """
        if self.durable:
            return 0
        return length if leaves else base

    def at_hand(self, base: int, length: int) -> tuple[int, int]:
        """The outputs that a channel's host can send when the channel comes to it: the first, and the end."""
        return (0, length) if self.durable else (base, base)

    def rests(self, *, ended: bool) -> bool:
        """Does a channel have nothing more to do? One that has ended may still have to repeat lost outputs."""
        return ended and self.durable

    def may_draw(self, graph: StageGraph, stage: int, inbox: Inbox) -> bool:
        """May a channel choose its next inputs? In a staged query, something of every input must have arrived."""
        phases = graph.phases(stage) if self.staged else ()
        return all(inbox.has_begun(link) for links in phases for link in links)

    def may_send(self, *, ended: bool) -> bool:
        """May the outputs of a channel be sent? In a staged query, not before it has ended."""
        return ended or not self.staged


#: The setting that names a policy.
POLICY_KEY: Final = "spark.wallaby.faultTolerance.policy"
LINEAGE: Final = Tolerance()
#: The policy `off`: nothing is recorded, and a lost worker fails its queries.
OFF: Final = Tolerance(recorded=False)
POLICIES: Final = {
    "lineage": LINEAGE,
    "restart": Tolerance(recorded=False, run_again=True),
    "spool": Tolerance(durable=True),
    "stagewise": Tolerance(staged=True),
    "stagewise+spool": Tolerance(durable=True, staged=True),
    "checkpoint": Tolerance(recorded=False, checkpoints=True, run_again=True),
    "checkpoint+lineage": Tolerance(checkpoints=True),
    "spool+checkpoint": Tolerance(durable=True, checkpoints=True),
    "off": OFF,
}


def tolerance_of(policy: str) -> Tolerance:
    """The parts of a policy, by its name.

    Raises:
        ConfigurationError: there is no such policy.
    """
    name = policy.strip().lower()
    if name == "none":
        raise ConfigurationError(
            "There is no fault-tolerance policy 'none'.",
            fix="Choose restart (a query that loses a worker is restarted) or off (it fails).",
            key=POLICY_KEY,
        )
    if name not in POLICIES:
        raise ConfigurationError(
            f"Unknown fault-tolerance policy {policy!r}.",
            fix=f"Choose one of: {', '.join(POLICIES)}.",
            key=POLICY_KEY,
        )
    return POLICIES[name]
