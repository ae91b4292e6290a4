"""From a relation to stages: steps that need no exchange are fused, and a stage ends where rows must move.

Rows move for three reasons: to meet rows with the same key (a partitioned join, an aggregation), to be seen
all at once (a sort, a limit, an aggregation without keys), or to be in every channel (the small side of a
join). Every other step is put on top of the stage that already has the rows. Planning is a pure function of
the relation, the statistics and the settings: the same query gets the same stage graph everywhere.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from wallaby.lineage.graph import Routing, StageKind
from wallaby.plan.aggregation import NewColumn
from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.grouping import AggregatePlanner
from wallaby.plan.joins import JoinPlanner
from wallaby.plan.open_stage import (
    Feed,
    Flow,
    LimitBody,
    OpenStage,
    Partitioning,
    ReduceBody,
    ScanBody,
    StageAssembly,
    WriteBody,
    aligned,
    gathered,
    lies_by,
    on_top,
    renamed,
    sees_everything,
    tapped,
)
from wallaby.plan.physical import Ending, PhysicalPlan, RowSplit
from wallaby.plan.rules import RULES
from wallaby.plan.rules.filter_scans import filter_scans
from wallaby.plan.rules.prune_columns import prune_columns
from wallaby.plan.rules.share_subplans import SharedParts, share_subplans
from wallaby.plan.settings import PlanSettings
from wallaby.relations.expression import Column, Named
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Range,
    Relation,
    Rows,
    Scan,
    Single,
    Sort,
    Union,
    Unnest,
    Window,
)
from wallaby.relations.target import MANIFEST, WriteTarget
from wallaby.relations.tree import Rewrite, ids_of, kept, largest_id, narrow
from wallaby.relations.types import Kind

#: The rows in one split of a source that is generated, not read.
_MADE_ROWS = 1 << 20
#: Kinds of columns by whose hash rows are spread that may go to any channel.
_SPREADING = frozenset({Kind.INTEGER, Kind.LONG, Kind.DECIMAL, Kind.STRING, Kind.DATE, Kind.TIMESTAMP})


def plan(
    relation: Relation,
    statistics: Statistics,
    settings: PlanSettings,
    ending: Ending = StageKind.COLLECT,
) -> PhysicalPlan:
    """The stages that compute a relation in which `unplannable` finds nothing."""
    return plan_prepared(
        prepare(relation, statistics, settings), relation.columns, statistics, settings, ending
    )


def prepare(relation: Relation, statistics: Statistics, settings: PlanSettings) -> SharedParts:
    """The same rows, and by id the same columns, in the form that is cut into stages: all rules are applied."""
    return _shared(rewrite(relation, statistics), statistics, settings)


def plan_prepared(
    shared: SharedParts,
    columns: tuple[Column, ...],
    statistics: Statistics,
    settings: PlanSettings,
    ending: Ending = StageKind.COLLECT,
) -> PhysicalPlan:
    """The stages that compute these columns of a prepared relation, in their order."""
    first_id = 1 + max(map(largest_id, (shared.root, *shared.parts)))
    planner = _Planner(statistics, settings, StageAssembly(first_id), shared.parts)
    return planner.run(shared.root, columns, ending)


def rewrite(relation: Relation, statistics: Statistics) -> Relation:
    """Apply all rules, in their order."""
    for rule in RULES:
        relation = rule(relation, statistics)
    return relation


def _shared(relation: Relation, statistics: Statistics, settings: PlanSettings) -> SharedParts:
    """Find parts to share, and add run-time filters, whose sources are shared too."""
    shared = share_subplans(relation, statistics)

    def with_filters(tree: Relation) -> Relation:
        return prune_columns(filter_scans(tree, statistics, settings, shared.parts), statistics)

    return share_subplans(with_filters(shared.root), statistics, tuple(map(with_filters, shared.parts)))


class _Planner:
    """One query's planning. Each `_plan_…` gives the flow of a relation; columns may be in another order."""

    def __init__(
        self,
        statistics: Statistics,
        settings: PlanSettings,
        assembly: StageAssembly,
        parts: tuple[Relation, ...] = (),
    ) -> None:
        self._statistics = statistics
        self._settings = settings
        self._assembly = assembly
        self._parts = parts
        self._tapped: dict[int, Flow] = {}
        self._estimator = Estimator(statistics, dict(enumerate(parts)))
        self._joins = JoinPlanner(self._estimator, settings, assembly, self._plan)
        self._groups = AggregatePlanner(self._estimator, settings, assembly, self._plan)

    def run(self, relation: Relation, columns: tuple[Column, ...], ending: Ending) -> PhysicalPlan:
        outputs = _wanted(columns, self._assembly.new_column)
        given = tuple(named.column for named in outputs)

        def arranged(tree: Relation) -> Relation:
            return tree if ids_of(tree.columns) == ids_of(given) else Project(tree, outputs)

        flow = tuple(self._topped(open_stage, arranged) for open_stage in self._plan(relation))
        if isinstance(ending, WriteTarget):
            most = (
                self._estimator.of(relation).size_bytes // ending.file_bytes + 1 if ending.gathered else inf
            )
            written = gathered(self._assembly, self._written(flow, given, ending, most))
            return self._assembly.finish(StageKind.COLLECT, written, MANIFEST, MANIFEST)
        if ending is StageKind.KEEP:
            flow = tuple(map(self._assembly.keepable, flow))
        return self._assembly.finish(ending, gathered(self._assembly, flow), given, columns)

    def _written(self, flow: Flow, columns: tuple[Column, ...], target: WriteTarget, most: float) -> Flow:
        """Write rows where they are, or in `most` channels; all rows of a partition in one channel."""
        rows = Input(0, columns)
        if target.partitions:
            keys = tuple(range(len(columns) - len(target.partitions), len(columns)))
            feeds = tuple(Feed(self._assembly.close(open_stage), Routing.HASH, keys) for open_stage in flow)
            return (OpenStage(WriteBody(target), rows, self._settings.channels, "write partitions", feeds),)
        if most < sum(open_stage.channels for open_stage in flow):
            keys = tuple(at for at, column in enumerate(columns) if column.type.kind in _SPREADING)
            channels = int(most) if keys else 1
            keys = keys if channels > 1 else ()
            feeds = tuple(Feed(self._assembly.close(open_stage), Routing.HASH, keys) for open_stage in flow)
            return (OpenStage(WriteBody(target), rows, channels, "write", feeds),)
        return tuple(
            OpenStage(
                WriteBody(replace(target, job=f"{target.job}-{number}")),
                rows,
                open_stage.channels,
                "write",
                (Feed(self._assembly.close(open_stage), Routing.PASS_THROUGH),),
            )
            for number, open_stage in enumerate(flow)
        )

    def _plan(self, relation: Relation) -> Flow:
        flow = self._flow(relation)
        if isinstance(relation, Union):
            return flow
        rows = self._estimator.of(relation).rows if len(flow) == 1 else None
        return tuple(replace(open_stage, rows=rows) for open_stage in flow)

    def _flow(self, relation: Relation) -> Flow:
        match relation:
            case Scan():
                return (self._plan_scan(relation),)
            case Rows() | Range():
                return (self._plan_made(relation),)
            case Filter(child=child, condition=condition):
                return tuple(self._topped(p, lambda tree: Filter(tree, condition)) for p in self._plan(child))
            case Project(child=child, outputs=outputs):
                return tuple(self._projected(p, outputs) for p in self._plan(child))
            case Expand(child=child) | Unnest(child=child):
                return tuple(self._multiplied(open_stage, relation) for open_stage in self._plan(child))
            case Union():
                return self._plan_union(relation)
            case Join():
                return self._joins.plan(relation)
            case Aggregate():
                return self._groups.plan(relation)
            case Window():
                return (self._plan_window(relation),)
            case Sort() | Limit() | Single():
                return (self._plan_whole(relation),)
            case Input(number=number):
                return self._plan_shared(number)

    def _plan_whole(self, relation: Sort | Limit | Single) -> OpenStage:
        """Plan a step that needs all rows at once."""
        match relation:
            case Sort(child=child):
                return self._plan_sort(relation, self._plan(child))
            case Limit(child=Sort(child=child) as sort, count=int(count)):
                return self._plan_top(relation, count, sort, self._plan(child))
            case Limit(child=child):
                return self._plan_limit(relation, self._plan(child))
            case Single(child=child):
                return self._plan_single(relation, self._plan(child))

    # --- without exchange ----------------------------------------------------------------------------------

    def _plan_scan(self, scan: Scan) -> OpenStage:
        table = self._statistics.of(scan)
        assert table is not None, "unplannable() lets no unknown table through"
        channels = max(1, min(self._settings.channels, len(table.splits)))
        tree = Input(0, scan.columns)
        return OpenStage(ScanBody(scan, table.splits), tree, channels, f"scan {scan.label}".rstrip())

    def _plan_made(self, source: Rows | Range) -> OpenStage:
        count = len(source.rows) if isinstance(source, Rows) else source.count
        splits = tuple(
            RowSplit(first, min(_MADE_ROWS, count - first)) for first in range(0, count, _MADE_ROWS)
        )
        channels = max(1, min(self._settings.channels, len(splits)))
        label = "rows" if isinstance(source, Rows) else "range"
        return OpenStage(ScanBody(source, splits), Input(0, source.columns), channels, label)

    def _multiplied(self, open_stage: OpenStage, relation: Expand | Unnest) -> OpenStage:
        if isinstance(relation, Expand):
            topped = self._topped(open_stage, lambda tree: replace(relation, child=tree), "expand")
            return replace(topped, partitioning=None)
        topped = self._topped(open_stage, lambda tree: replace(relation, child=tree), "unnest")
        return replace(topped, partitioning=renamed(topped.partitioning, kept(relation.kept)))

    def _plan_shared(self, number: int) -> Flow:
        """Plan a part that several others use: its stages are made at the first use."""
        if number not in self._tapped:
            flow = self._plan(self._parts[number])
            self._tapped[number] = tuple(tapped(self._assembly, open_stage) for open_stage in flow)
        return self._tapped[number]

    def _projected(self, open_stage: OpenStage, outputs: tuple[Named, ...]) -> OpenStage:
        topped = self._topped(open_stage, lambda tree: Project(tree, outputs))
        return replace(topped, partitioning=renamed(topped.partitioning, outputs))

    def _plan_union(self, union: Union) -> Flow:
        """Plan a union. It has no stage of its own; the stage above gets a link from each branch."""
        flows = (
            (open_stage, tuple(map(Named, union.columns, child.columns)))
            for child in union.children
            for open_stage in self._plan(child)
        )
        branches = (
            p if _changes_nothing(p, outputs) else self._projected(p, outputs) for p, outputs in flows
        )
        return tuple(replace(open_stage, partitioning=None) for open_stage in branches)

    def _topped(self, open_stage: OpenStage, step: Rewrite, label: str = "") -> OpenStage:
        return on_top(self._assembly, open_stage, step, label)

    # --- with exchange -------------------------------------------------------------------------------------

    def _plan_sort(self, sort: Sort, flow: Flow) -> OpenStage:
        if sees_everything(flow):
            return self._topped(flow[0], lambda tree: replace(sort, child=tree), "sort")
        columns = flow[0].columns
        feeds = gathered(self._assembly, aligned(self._assembly, flow, columns))
        return OpenStage(ReduceBody(None), replace(sort, child=Input(0, columns)), 1, "sort", feeds)

    def _plan_top(self, limit: Limit, count: int, sort: Sort, flow: Flow) -> OpenStage:
        """Plan a sort with a limit: every task keeps its own first rows, and one channel the first of those."""

        def first(child: Relation) -> Relation:
            return Limit(replace(sort, child=child), count, limit.offset)

        def reach(child: Relation) -> Relation:
            return Limit(replace(sort, child=child), count + limit.offset)

        label = f"top {count}"
        if sees_everything(flow):
            return self._topped(flow[0], first, label)
        flow = aligned(self._assembly, flow, flow[0].columns)
        feeds = gathered(
            self._assembly, tuple(self._topped(open_stage, reach, f"partial {label}") for open_stage in flow)
        )
        rows = Input(0, flow[0].columns)
        return OpenStage(ReduceBody(reach(rows)), first(rows), 1, label, feeds)

    def _plan_limit(self, limit: Limit, flow: Flow) -> OpenStage:
        label = f"offset {limit.offset}" if limit.count is None else f"limit {limit.count}"
        if sees_everything(flow):
            return self._topped(flow[0], lambda tree: replace(limit, child=tree), label)
        flow = aligned(self._assembly, flow, flow[0].columns)
        if limit.count is not None:
            reach = limit.count + limit.offset
            flow = tuple(self._topped(open_stage, lambda tree: Limit(tree, reach)) for open_stage in flow)
        feeds = gathered(self._assembly, flow)
        body = LimitBody(limit.count, limit.offset)
        return OpenStage(body, Input(0, flow[0].columns), 1, label, feeds)

    def _plan_single(self, single: Single, flow: Flow) -> OpenStage:
        """Plan a scalar subquery: two rows of each task are enough to know that there is more than one."""
        if sees_everything(flow):
            return self._topped(flow[0], lambda tree: replace(single, child=tree), "single row")
        flow = aligned(self._assembly, flow, flow[0].columns)
        feeds = gathered(
            self._assembly,
            tuple(self._topped(open_stage, lambda tree: Limit(tree, 2)) for open_stage in flow),
        )
        rows = Input(0, flow[0].columns)
        return OpenStage(ReduceBody(Limit(rows, 2)), replace(single, child=rows), 1, "single row", feeds)

    def _plan_window(self, window: Window) -> OpenStage:
        """Plan a window: all rows of a partition must be in one channel at once."""
        flow, keys = self._joins.with_key_columns(self._plan(window.child), window.partition)
        flow = aligned(self._assembly, flow, flow[0].columns)

        def over(tree: Relation) -> Relation:
            made = Window(tree, keys, window.order, window.calls)
            return narrow(made, frozenset(ids_of(window.columns)))

        there = lies_by(flow, frozenset(ids_of(keys)))
        if there and isinstance(flow[0].body, ReduceBody):
            return self._topped(flow[0], over, "window")
        partitioning: Partitioning = None
        if there:
            feeds: tuple[Feed, ...] = (Feed(self._assembly.close(flow[0]), Routing.PASS_THROUGH),)
            channels, partitioning = flow[0].channels, flow[0].partitioning
        elif not keys or self._estimator.of(window.child).size_bytes <= self._settings.single_channel_bytes:
            feeds, channels = gathered(self._assembly, flow), 1
        else:
            positions = tuple(ids_of(flow[0].columns).index(key.id) for key in keys)
            feeds = tuple(
                Feed(self._assembly.close(open_stage), Routing.HASH, positions) for open_stage in flow
            )
            channels, partitioning = self._settings.channels, tuple(frozenset((key.id,)) for key in keys)
        tree = over(Input(0, flow[0].columns))
        partitioning = renamed(partitioning, kept(tree.columns))
        return OpenStage(ReduceBody(None), tree, channels, "window", feeds, (), partitioning)


def _changes_nothing(open_stage: OpenStage, outputs: tuple[Named, ...]) -> bool:
    same = all(named.expression == named.column for named in outputs)
    return same and ids_of(open_stage.columns) == ids_of(named.column for named in outputs)


def _wanted(columns: tuple[Column, ...], new_column: NewColumn) -> tuple[Named, ...]:
    """The result columns for the client. A column that is wanted twice gets a new id the second time."""
    outputs: dict[int, Named] = {}
    for column in columns:
        again = column.id in outputs
        named = Named(new_column(column.name, column.type) if again else column, column)
        outputs[named.column.id] = named
    return tuple(outputs.values())
