"""At most what a part of a Spark query saves, found in one walk over it, before it is planned.

Planning takes longer than everything before it, and most parts are too small by far to be worth it. The walk counts
what `choice.work_of` counts for a plan; where planning has a choice, it counts what saves more and costs less. It may
promise too much, but it should not promise too little: what it rejects is left to Spark without a plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.plan.aggregation import is_mergeable
from wallaby.plan.choice import RATES, PlanWork, Rates, Worth, worth_of
from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.joins import broadcast_pays
from wallaby.plan.leaf import leaf_number
from wallaby.plan.planner import TASKS_PER_CHANNEL
from wallaby.plan.settings import PlanSettings
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Join, Relation, Scan, Sort, Window, children_of
from wallaby.relations.tree import width_bytes

#: The joins are counted in the order in which they are written; another order may mean more work.
_MARGIN: Final = 1.1


def most_worth(
    relation: Relation,
    statistics: Statistics,
    settings: PlanSettings,
    rates: Rates = RATES,
    *,
    written: bool = False,
) -> Worth:
    """At most what a part saves, and at least what it costs. `written` is as in `choice.worth`."""
    walk = _Walk(Estimator(statistics), statistics, settings)
    walk.rows(relation)
    rows = walk.estimator.of(relation).rows
    work = PlanWork(
        walk.read * _MARGIN,
        walk.probed * _MARGIN,
        walk.joined * _MARGIN,
        walk.reduced * _MARGIN,
        walk.leaf_rows,
        rows,
        rows * _width(relation),
        walk.channels,
    )
    return worth_of(work, rates, written=written)


@dataclass(slots=True)
class _Walk:
    """Adds up the work of a relation."""

    estimator: Estimator
    statistics: Statistics
    settings: PlanSettings
    read: float = 0.0
    probed: float = 0.0
    joined: float = 0.0
    reduced: float = 0.0
    leaf_rows: float = 0.0
    channels: int = 1

    def rows(self, relation: Relation) -> float:
        """Add a relation; return at most how many rows its stage takes."""
        below = [self.rows(child) for child in children_of(relation)]
        estimated = self.estimator.of(relation).rows
        match relation:
            case Scan():
                return self._scanned(relation)
            case Join() if self._is_broadcast(relation):
                self.probed += max(below)
            case Join():
                self.joined += sum(below)
                return max(sum(below), estimated)
            case Aggregate(keys=keys):
                self.reduced += self._exchanged(relation, *below) if keys else 0.0
                return estimated
            case Sort(child=child) | Window(child=child):
                self.reduced += self.estimator.of(child).rows
            case _:
                pass
        return max(*below, estimated) if below else estimated

    def _scanned(self, scan: Scan) -> float:
        table = self.statistics.of(scan)
        if table is None:
            return 0.0
        self.channels = max(self.channels, min(self.settings.channels, len(table.splits)))
        if leaf_number(scan) is None:
            self.read += table.rows
        else:
            self.leaf_rows += table.rows
        return float(table.rows)

    def _is_broadcast(self, join: Join) -> bool:
        return join.kind is not JoinKind.FULL and broadcast_pays(join, self.estimator, self.settings)

    def _exchanged(self, aggregate: Aggregate, most: float) -> float:
        """How many rows move for an aggregation: none to speak of if each task aggregates its own to a few first."""
        below = self.estimator.of(aggregate.child)
        groups = below.groups(tuple(named.expression for named in aggregate.keys))
        if groups > self.settings.partial_groups_share * below.rows or not is_mergeable(aggregate):
            return below.rows
        sent = min(below.rows, groups * self.settings.channels * TASKS_PER_CHANNEL)
        return 0.0 if sent * _width(aggregate) <= self.settings.single_channel_bytes else most


def _width(relation: Relation) -> int:
    return sum(map(width_bytes, relation.columns))
