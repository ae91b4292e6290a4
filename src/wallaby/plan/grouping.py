"""Plan aggregations: what tasks aggregate of their own rows, and where the rows of a group meet.

If most groups have several rows in a task, each task aggregates its own rows first, and the partial results are merged.
Otherwise rows move as they are. They move by the hash of their keys, unless all rows of each group are in one channel
already, or are so few that one channel takes them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wallaby.lineage.graph import Routing
from wallaby.plan.aggregation import AggregationParts, take_apart, with_arguments_computed
from wallaby.plan.early_groups import EarlyGroups, early_groups
from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.open_stage import (
    Feed,
    Flow,
    OpenStage,
    Partitioning,
    ReduceBody,
    StageAssembly,
    gathered,
    lies_by,
    on_top,
    renamed,
)
from wallaby.plan.settings import PlanSettings
from wallaby.relations.expression import Column
from wallaby.relations.relation import Aggregate, Expand, Input, Project, Relation
from wallaby.relations.tree import Rewrite, width_bytes

#: The assumed number of tasks per channel.
TASKS_PER_CHANNEL = 8
#: With this many distinct values per channel, their hash spreads rows evenly enough.
_GROUPS_PER_CHANNEL = 256


@dataclass(frozen=True, slots=True)
class AggregatePlanner:
    """Plans aggregations; `plan_relation` plans their input."""

    estimator: Estimator
    settings: PlanSettings
    assembly: StageAssembly
    plan_relation: Callable[[Relation], Flow]

    def plan(self, aggregate: Aggregate) -> Flow:
        """The flow of an aggregation."""
        early = self._early_groups(aggregate)
        if early is not None:
            flow = tuple(
                self._topped(open_stage, early.partial, "partial aggregate, expand")
                for open_stage in self.plan_relation(early.expand.child)
            )
            return self._merged(aggregate, early.parts, tuple(replace(p, partitioning=None) for p in flow))
        flow = self.plan_relation(aggregate.child)
        if isinstance(flow[0].body, ReduceBody) and self._in_place(flow, aggregate):
            # All rows of each group are already in one place, at once.
            parts = take_apart(aggregate, self.assembly.new_column)
            whole = self._topped(flow[0], parts.whole, "aggregate")
            return (replace(whole, partitioning=renamed(whole.partitioning, aggregate.keys)),)
        parts = take_apart(aggregate, self.assembly.new_column)
        if parts.mergeable and self._partial_pays(aggregate):
            flow = tuple(self._topped(open_stage, parts.partial, "partial aggregate") for open_stage in flow)
            return self._merged(aggregate, parts, flow)
        sent, aggregate_sent = with_arguments_computed(aggregate, self.assembly.new_column)
        flow = tuple(self._topped(open_stage, lambda tree: Project(tree, sent)) for open_stage in flow)
        finish = take_apart(aggregate_sent, self.assembly.new_column).whole(Input(0, flow[0].columns))
        feeds, channels, partitioning = self._grouped(aggregate, flow, partial=False)
        return (OpenStage(ReduceBody(None), finish, channels, "aggregate", feeds, (), partitioning),)

    def _merged(self, aggregate: Aggregate, parts: AggregationParts, flow: Flow) -> Flow:
        """Merge the partial results of tasks."""
        rows = Input(0, flow[0].columns)
        feeds, channels, partitioning = self._grouped(aggregate, flow, partial=True)
        body = ReduceBody(parts.combine(rows))
        return (OpenStage(body, parts.finish(rows), channels, "aggregate", feeds, (), partitioning),)

    def _grouped(
        self, aggregate: Aggregate, flow: Flow, *, partial: bool
    ) -> tuple[tuple[Feed, ...], int, Partitioning]:
        """Bring the rows of each group into one channel: the links, the number of channels, and how rows are spread."""
        if self._in_place(flow, aggregate):
            feed = Feed(self.assembly.close(flow[0]), Routing.PASS_THROUGH)
            return (feed,), flow[0].channels, renamed(flow[0].partitioning, aggregate.keys)
        if not aggregate.keys or self._fits_one_channel(aggregate, flow, partial=partial):
            return gathered(self.assembly, flow), 1, None
        positions = self._hashed(aggregate)
        feeds = tuple(Feed(self.assembly.close(open_stage), Routing.HASH, positions) for open_stage in flow)
        partitioning = tuple(frozenset((aggregate.keys[i].column.id,)) for i in positions)
        return feeds, self.settings.channels, partitioning

    def _topped(self, open_stage: OpenStage, step: Rewrite, label: str = "") -> OpenStage:
        return on_top(self.assembly, open_stage, step, label)

    # --- choices -------------------------------------------------------------------------------------------

    def _in_place(self, flow: Flow, aggregate: Aggregate) -> bool:
        """Are all rows of each group in one channel already?"""
        columns = (named.expression for named in aggregate.keys)
        return lies_by(flow, frozenset(column.id for column in columns if isinstance(column, Column)))

    def _partial_pays(self, aggregate: Aggregate) -> bool:
        if not self.settings.partial_aggregation:
            return False
        rows, groups = self._rows_and_groups(aggregate)
        return not aggregate.keys or groups <= self.settings.partial_groups_share * rows

    def _early_groups(self, aggregate: Aggregate) -> EarlyGroups | None:
        """Aggregate before grouping sets multiply the rows, if that is possible and pays."""
        if not isinstance(aggregate.child, Expand) or not self.settings.partial_aggregation:
            return None
        early = early_groups(aggregate, take_apart(aggregate, self.assembly.new_column))
        if early is None:
            return None
        below = self.estimator.of(early.expand.child)
        pays = below.groups(early.finest) <= self.settings.partial_groups_share * below.rows
        return early if pays else None

    def _fits_one_channel(self, aggregate: Aggregate, flow: Flow, *, partial: bool) -> bool:
        """Are there so few rows to exchange that several channels would only cost more tasks?"""
        rows, groups = self._rows_and_groups(aggregate)
        sent = min(rows, groups * self.settings.channels * TASKS_PER_CHANNEL) if partial else rows
        return sent * sum(map(width_bytes, flow[0].columns)) <= self.settings.single_channel_bytes

    def _hashed(self, aggregate: Aggregate) -> tuple[int, ...]:
        """The keys to hash: a single key that spreads the groups evenly, if there is one, otherwise all.

        One number is cheaper to hash than several texts, and more of the later steps can use that partitioning.
        """
        below = self.estimator.of(aggregate.child)
        spread = [
            below.distinct(named.expression)
            if named.column.type.is_integral and below.is_counted(named.expression)
            else 0.0
            for named in aggregate.keys
        ]
        best = max(range(len(spread)), key=spread.__getitem__)
        enough = self.settings.channels * _GROUPS_PER_CHANNEL
        return (best,) if spread[best] >= enough else tuple(range(len(spread)))

    def _rows_and_groups(self, aggregate: Aggregate) -> tuple[float, float]:
        below = self.estimator.of(aggregate.child)
        return below.rows, below.groups(tuple(named.expression for named in aggregate.keys))
