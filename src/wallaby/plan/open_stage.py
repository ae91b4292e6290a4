"""Stages under construction: an open stage is a stage that can still take more steps; closing it makes it final.

Planning walks the relation from its leaves up and puts every step that needs no exchange on top of the open stage's
tree. Several open stages that together give one relation's rows are a `Flow`; a union is nothing more than that. At an
exchange the open stages of a flow are closed, which gives them their stage numbers, and a new one begins with links
from them. So a stage has a higher number than all stages that feed it, as `StageGraph` requires.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wallaby.lineage.graph import SIDES_MAX, Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.plan.physical import (
    CollectFragment,
    Fragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    PhysicalPlan,
    ReduceFragment,
    RowSplit,
    ScanFragment,
    Split,
    WriteFragment,
)
from wallaby.relations.expression import Column, Expression, Named
from wallaby.relations.relation import Filter, Input, Project, Relation, Source, children_of
from wallaby.relations.target import WriteTarget
from wallaby.relations.tree import Rewrite, arrange, conjuncts, is_choice
from wallaby.relations.types import DataType


@dataclass(frozen=True, slots=True)
class ScanBody:
    """A stage that begins with the splits of a source."""

    scan: Source
    splits: tuple[Split | RowSplit, ...]


@dataclass(frozen=True, slots=True)
class JoinBody:
    """A stage that begins with a partitioned join."""


@dataclass(frozen=True, slots=True)
class ReduceBody:
    """A stage that begins with all rows of a channel; steps on top run once, at the end."""

    combine: Relation | None


@dataclass(frozen=True, slots=True)
class MapBody:
    """A stage that begins with batches of other stages."""


@dataclass(frozen=True, slots=True)
class LimitBody:
    """A stage that is only a limit."""

    count: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class WriteBody:
    """A stage that writes its rows to files."""

    target: WriteTarget


@dataclass(frozen=True, slots=True)
class TapBody:
    """A closed stage that may feed several others: it gets more links, or a new stage after it."""

    stage: int


Body = ScanBody | JoinBody | ReduceBody | MapBody | LimitBody | WriteBody | TapBody

#: How rows are spread over channels: by the hash of keys. Each key is a set of equivalent columns (after a join on a =
#: b, rows are partitioned by either). None: not by known values.
Partitioning = tuple[frozenset[int], ...] | None


@dataclass(frozen=True, slots=True)
class Feed:
    """A main link to be made: from a closed stage, with the positions of the columns by whose hash rows are spread."""

    producer: int
    routing: Routing = Routing.HASH
    keys: tuple[int, ...] = ()
    phase: int = 0


@dataclass(frozen=True, slots=True)
class OpenStage:
    """An open stage. `sides` are the stages whose whole output it gets in addition to its main inputs, in order."""

    body: Body
    tree: Relation
    channels: int
    label: str
    feeds: tuple[Feed, ...] = ()
    sides: tuple[int, ...] = ()
    partitioning: Partitioning = None
    #: Its estimated number of rows so far; None: there is no estimate for its last steps.
    rows: float | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The output columns so far."""
        return self.tree.columns

    @property
    def sees_everything(self) -> bool:
        """Do steps on top see all rows of the relation at once?"""
        return isinstance(self.body, ReduceBody) and self.channels == 1

    @property
    def first_side(self) -> int | None:
        """The number of the first side input, or None if the body can have none."""
        match self.body:
            case ScanBody() | MapBody():
                return 1
            case JoinBody():
                return 2
            case ReduceBody() | LimitBody() | WriteBody() | TapBody():
                return None

    @property
    def has_room_for_a_side(self) -> bool:
        """Can a broadcast join be put on top?"""
        return self.first_side is not None and len(self.sides) < SIDES_MAX


Flow = tuple[OpenStage, ...]


class StageAssembly:
    """The stages and links of one plan under construction."""

    def __init__(self, first_id: int) -> None:
        self._next_id = first_id
        self._stages: list[Stage] = []
        self._fragments: list[Fragment] = []
        self._labels: list[str] = []
        self._rows: list[int | None] = []
        self._links: list[Link] = []
        self._keys: list[tuple[int, ...]] = []

    def new_column(self, name: str, type_: DataType, *, nullable: bool = True) -> Column:
        """A new column."""
        self._next_id += 1
        return Column(self._next_id - 1, name, type_, nullable)

    def close(self, open_stage: OpenStage) -> int:
        """Turn an open stage into a stage and return its number."""
        if isinstance(open_stage.body, TapBody):
            return open_stage.body.stage
        kind = StageKind.READ if isinstance(open_stage.body, ScanBody) else StageKind.EXECUTE
        splits = len(open_stage.body.splits) if isinstance(open_stage.body, ScanBody) else 0
        rows = None if open_stage.rows is None else round(open_stage.rows)
        self._add(
            Stage(kind, open_stage.channels, splits),
            _fragment(open_stage),
            open_stage.label,
            open_stage.feeds,
            rows,
        )
        number = len(self._stages) - 1
        for side in open_stage.sides:
            self._links.append(Link(side, number, LinkKind.SIDE, routing=Routing.BROADCAST))
            self._keys.append(())
        return number

    def keepable(self, open_stage: OpenStage) -> OpenStage:
        """A stage whose outputs can be kept: if a scan would be the last stage, one that passes its rows on.

        What a lost reader made is read again by anybody; what stays has to be where its channel is.
        """
        body = open_stage.body
        reads = isinstance(body, ScanBody) or (
            isinstance(body, TapBody) and self._stages[body.stage].kind is StageKind.READ
        )
        return passed_on(self, open_stage) if reads else open_stage

    def finish(
        self, kind: StageKind, feeds: tuple[Feed, ...], given: tuple[Column, ...], wanted: tuple[Column, ...]
    ) -> PhysicalPlan:
        """End with the client's stage, which collects or keeps the result; `wanted` are the columns of the client."""
        self._add(Stage(kind, 1), CollectFragment(given), kind.value, feeds)
        return PhysicalPlan(
            StageGraph(tuple(self._stages), tuple(self._links)),
            tuple(self._fragments),
            tuple(self._keys),
            wanted,
            tuple(self._labels),
            tuple(self._rows),
        )

    def _add(
        self,
        stage: Stage,
        fragment: Fragment,
        label: str,
        feeds: tuple[Feed, ...],
        rows: int | None = None,
    ) -> None:
        number = len(self._stages)
        self._stages.append(stage)
        self._fragments.append(fragment)
        self._labels.append(label)
        self._rows.append(rows)
        for feed in feeds:
            self._links.append(Link(feed.producer, number, phase=feed.phase, routing=feed.routing))
            self._keys.append(feed.keys)


def on_top(assembly: StageAssembly, open_stage: OpenStage, step: Rewrite, label: str = "") -> OpenStage:
    """Put a step on top of an open stage. A limit or a tap takes no steps, so a new stage begins there."""
    tree = step(open_stage.tree)
    if tree is open_stage.tree:
        return open_stage
    if isinstance(open_stage.body, LimitBody | TapBody):
        open_stage = passed_on(assembly, open_stage)
        tree = step(open_stage.tree)
    if not label:
        return replace(open_stage, tree=tree)
    return replace(open_stage, tree=tree, label=f"{open_stage.label}, {label}", rows=None)


def tapped(assembly: StageAssembly, open_stage: OpenStage) -> OpenStage:
    """An open stage with the rows of another one, which can be used any number of times."""
    tap = TapBody(assembly.close(open_stage))
    return OpenStage(
        tap,
        Input(0, open_stage.columns),
        open_stage.channels,
        open_stage.label,
        (),
        (),
        open_stage.partitioning,
        open_stage.rows,
    )


def passed_on(assembly: StageAssembly, open_stage: OpenStage) -> OpenStage:
    """A new open stage that continues another one, channel by channel."""
    feed = Feed(assembly.close(open_stage), Routing.PASS_THROUGH)
    tree = Input(0, open_stage.columns)
    return OpenStage(
        MapBody(), tree, open_stage.channels, "map", (feed,), (), open_stage.partitioning, open_stage.rows
    )


def aligned(assembly: StageAssembly, flow: Flow, columns: tuple[Column, ...]) -> Flow:
    """Make open stages that feed the same input give the same columns in the same order."""
    return tuple(on_top(assembly, open_stage, lambda tree: arrange(tree, columns)) for open_stage in flow)


def gathered(assembly: StageAssembly, flow: Flow) -> tuple[Feed, ...]:
    """All rows of a flow, to one channel."""
    return tuple(Feed(assembly.close(open_stage)) for open_stage in flow)


def sees_everything(flow: Flow) -> bool:
    """Do steps on top of a flow see all rows of its relation at once?"""
    return len(flow) == 1 and flow[0].sees_everything


def lies_by(flow: Flow, keys: frozenset[int]) -> bool:
    """Are all rows with the same keys in one channel already?"""
    if sees_everything(flow):
        return True
    spread = flow[0].partitioning if len(flow) == 1 else None
    return spread is not None and all(same & keys for same in spread)


def renamed(partitioning: Partitioning, outputs: tuple[Named, ...]) -> Partitioning:
    """How rows are spread, in terms of a projection's outputs; None if it drops a key."""
    if partitioning is None:
        return None
    same = tuple(
        frozenset(n.column.id for n in outputs if isinstance(n.expression, Column) and n.expression.id in ids)
        for ids in partitioning
    )
    return same if all(same) else None


def _fragment(open_stage: OpenStage) -> Fragment:
    match open_stage.body:
        case ScanBody(scan=scan, splits=splits):
            return ScanFragment(scan, splits, _scan_conditions(open_stage.tree), open_stage.tree)
        case JoinBody():
            return JoinFragment(open_stage.tree)
        case ReduceBody(combine=combine):
            return ReduceFragment(combine, open_stage.tree)
        case MapBody():
            return MapFragment(open_stage.tree)
        case LimitBody(count=count, offset=offset):
            return LimitFragment(open_stage.columns, count, offset)
        case WriteBody(target=target):
            return WriteFragment(open_stage.columns, target)
        case TapBody():
            raise AssertionError("a tap is a stage already")


def _scan_conditions(tree: Relation) -> tuple[Expression, ...]:
    """The conditions that every row of a split must meet: those of the filters right above the split."""
    found: list[Expression] = []
    while not isinstance(tree, Input):
        match tree:
            case Filter(child=child, condition=condition):
                found[:0] = conjuncts(condition)
                tree = child
            case Project(child=child) if is_choice(tree):
                tree = child
            case _:
                found.clear()
                tree = children_of(tree)[0]
    return tuple(found)
