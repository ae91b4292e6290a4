"""The fault-tolerance policy under which a seed runs.

By default every seed has its own: half of them `lineage`, a quarter `checkpoint+lineage`, where a channel may be
rewound in place, and the rest one of the others. The policy depends on the seed alone.
"""

from __future__ import annotations

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.tolerance import POLICIES, Tolerance, tolerance_of

#: The mixture of all policies: every seed runs under its own one.
MIXED = "mixed"
_OTHERS = (
    "checkpoint+lineage",
    "spool+checkpoint",
    "checkpoint+lineage",
    "stagewise",
    "checkpoint+lineage",
    "spool",
    "checkpoint+lineage",
    "stagewise+spool",
)
MIXTURE = tuple(name for other in _OTHERS for name in ("lineage", other))


def policy_of(seed: int, policy: str) -> str:
    """The policy under which a seed runs: the requested one or, in the mixture, its own."""
    return MIXTURE[seed % len(MIXTURE)] if policy == MIXED else policy


def policies_of(policy: str) -> tuple[str, ...]:
    """The policies that a name stands for: one, or all of the mixture."""
    return tuple(dict.fromkeys(MIXTURE)) if policy == MIXED else (policy,)


def simulated(policy: str) -> Tolerance:
    """The parts of a policy. Those that keep nothing are refused: after a loss a query simply starts anew, or fails."""
    tolerance = tolerance_of(MIXTURE[0] if policy == MIXED else policy)
    if not (tolerance.recorded or tolerance.rolls_back):
        raise InvalidArgumentError(
            f"Under the policy {policy} a loss ends the query: there is nothing to simulate.",
            fix="Choose one that records lineage, or checkpoint.",
        )
    return tolerance


def policy_named(tolerance: Tolerance) -> str:
    """The name of a policy with these parts."""
    return next(name for name, parts in POLICIES.items() if parts == tolerance)
