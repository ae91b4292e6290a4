"""An upper bound of what a part of a Spark query saves, computed in one walk over it before it is planned.

Planning takes longer than everything before it, and most parts are too small by far to be worth it. The walk counts
what `choice.work_of` counts for a plan; where planning has a choice, it counts what saves more and costs less. It may
promise too much, but it should not promise too little: what it rejects is left to Spark without a plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.plan.aggregation import is_mergeable
from wallaby.plan.choice import RATES, CostBenefit, PlanWork, Rates, worth_of
from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.grouping import TASKS_PER_CHANNEL
from wallaby.plan.joins import broadcast_pays, smaller_side
from wallaby.plan.leaf import leaf_number
from wallaby.plan.rules.share_subplans import SharedParts
from wallaby.plan.settings import PlanSettings
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Join, Relation, Scan, Sort, Window, children_of
from wallaby.relations.tree import width_bytes

#: The joins are counted in the order in which they are written; another order may mean more work.
_MARGIN: Final = 1.1
#: They are in order now.
_MARGIN_PREPARED: Final = 1.01


def most_worth(
    relation: Relation,
    statistics: Statistics,
    settings: PlanSettings,
    rates: Rates = RATES,
    *,
    written: bool = False,
) -> CostBenefit:
    """Estimate the most that a part can save, and the least that it costs. `written` is as in `choice.worth`."""
    walk = _Walk(Estimator(statistics), statistics, settings)
    walk.rows(relation)
    return worth_of(walk.work(relation, _MARGIN), rates, written=written)


def prepared_worth(
    prepared: SharedParts,
    statistics: Statistics,
    settings: PlanSettings,
    rates: Rates = RATES,
    *,
    written: bool = False,
) -> CostBenefit:
    """Estimate what a part saves and costs whose joins are ordered and whose equal parts are shared.

    This is very nearly what `choice.worth` says about its plan.
    """
    estimator = Estimator(statistics, dict(enumerate(prepared.parts)))
    walk = _Walk(estimator, statistics, settings, is_prepared=True)
    for tree in (prepared.root, *prepared.parts):
        walk.rows(tree)
    return worth_of(walk.work(prepared.root, _MARGIN_PREPARED), rates, written=written)


@dataclass(slots=True)
class _Walk:
    """Adds up the work of a relation."""

    estimator: Estimator
    statistics: Statistics
    settings: PlanSettings
    #: Will its joins be made in the order in which they are? Otherwise either side may probe.
    is_prepared: bool = False
    read: float = 0.0
    probed: float = 0.0
    joined: float = 0.0
    reduced: float = 0.0
    leaf_rows: float = 0.0
    channels: int = 1

    def work(self, relation: Relation, margin: float) -> PlanWork:
        """The work so far, and a little more, if it gives the rows of this relation."""
        rows = self.estimator.of(relation).rows
        return PlanWork(
            self.read * margin,
            self.probed * margin,
            self.joined * margin,
            self.reduced * margin,
            self.leaf_rows,
            rows,
            rows * _width(relation),
            self.channels,
        )

    def rows(self, relation: Relation) -> float:
        """Add a relation; return at most how many rows its stage takes."""
        below = [self.rows(child) for child in children_of(relation)]
        estimated = self.estimator.of(relation).rows
        match relation:
            case Scan():
                return self._scanned(relation)
            case Join() if self._is_broadcast(relation):
                probing = self._probing(relation, *below)
                self.probed += probing
                return max(probing, estimated)
            case Join():
                self.joined += sum(below)
                self._divided()
                return max(sum(below), estimated)
            case Aggregate(keys=keys):
                self.reduced += self._exchanged(relation, *below) if keys else 0.0
                return estimated
            case Sort(child=child) | Window(child=child):
                self.reduced += self.estimator.of(child).rows
            case _:
                pass
        return max(*below, estimated) if below else estimated

    def _probing(self, join: Join, left: float, right: float) -> float:
        """How many rows are looked up in what is broadcast."""
        if not self.is_prepared:
            return max(left, right)
        return right if smaller_side(join, self.estimator) is join.left else left

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
        apart = groups > self.settings.partial_groups_share * below.rows or not is_mergeable(aggregate)
        sent = below.rows if apart else min(below.rows, groups * self.settings.channels * TASKS_PER_CHANNEL)
        few = sent * _width(aggregate) <= self.settings.single_channel_bytes
        if not few:
            self._divided()
        if apart:
            return below.rows
        # Rows that a join has divided by the same keys stay so; the plan counts them nevertheless.
        return 0.0 if few and not self.joined else most

    def _divided(self) -> None:
        """Rows are divided by keys, so all channels have some of them."""
        if self.is_prepared:
            self.channels = self.settings.channels


def _width(relation: Relation) -> int:
    return sum(map(width_bytes, relation.columns))
