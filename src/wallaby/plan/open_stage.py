"""Stages under construction: a pipe is a stage that can still take more steps; closing it makes it final.

Planning walks the relation from its leaves up and puts every step that needs no exchange on top of the open pipe's
tree. Several pipes that together give one relation's rows are a `Flow`; a union is nothing more than that. At an
exchange the pipes of a flow are closed, which gives them their stage numbers, and a new pipe begins with links from
them. So a stage has a higher number than all stages that feed it, as `StageGraph` requires.
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
)
from wallaby.relations.expression import Column, Expression, Named
from wallaby.relations.relation import Filter, Input, Project, Relation, Source, children_of
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
class TapBody:
    """A closed stage that may feed several others: it gets more links, or a new stage after it."""

    stage: int


Body = ScanBody | JoinBody | ReduceBody | MapBody | LimitBody | TapBody

#: How rows are spread over channels: by the hash of keys. Each key is a set of equivalent columns (after a join on a =
#: b, rows are partitioned by either). None: not by known values.
Partitioning = tuple[frozenset[int], ...] | None


@dataclass(frozen=True, slots=True)
class Feed:
    """A main link to be made: from a closed stage, with the positions of the columns to hash."""

    producer: int
    routing: Routing = Routing.HASH
    keys: tuple[int, ...] = ()
    phase: int = 0


@dataclass(frozen=True, slots=True)
class Pipe:
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
            case ReduceBody() | LimitBody() | TapBody():
                return None

    @property
    def has_room_for_a_side(self) -> bool:
        """Can a broadcast join be put on top?"""
        return self.first_side is not None and len(self.sides) < SIDES_MAX


Flow = tuple[Pipe, ...]


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

    def close(self, pipe: Pipe) -> int:
        """Turn a pipe into a stage and return its number."""
        if isinstance(pipe.body, TapBody):
            return pipe.body.stage
        kind = StageKind.READ if isinstance(pipe.body, ScanBody) else StageKind.EXECUTE
        splits = len(pipe.body.splits) if isinstance(pipe.body, ScanBody) else 0
        rows = None if pipe.rows is None else round(pipe.rows)
        self._add(Stage(kind, pipe.channels, splits), _fragment(pipe), pipe.label, pipe.feeds, rows)
        number = len(self._stages) - 1
        for side in pipe.sides:
            self._links.append(Link(side, number, LinkKind.SIDE, routing=Routing.BROADCAST))
            self._keys.append(())
        return number

    def keepable(self, pipe: Pipe) -> Pipe:
        """A pipe whose outputs can stay: where a reader would be the last stage, one that passes its rows on.

        What a lost reader made is read again by anybody; what stays has to be where its channel is.
        """
        body = pipe.body
        reads = isinstance(body, ScanBody) or (
            isinstance(body, TapBody) and self._stages[body.stage].kind is StageKind.READ
        )
        return passed_on(self, pipe) if reads else pipe

    def finish(
        self, kind: StageKind, feeds: tuple[Feed, ...], given: tuple[Column, ...], wanted: tuple[Column, ...]
    ) -> PhysicalPlan:
        """End with the client's stage, which collects or keeps; `wanted` are the columns as the client knows them."""
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


def on_top(assembly: StageAssembly, pipe: Pipe, step: Rewrite, label: str = "") -> Pipe:
    """Put a step on top of a pipe. A limit or a tap takes no steps, so a new stage begins there."""
    tree = step(pipe.tree)
    if tree is pipe.tree:
        return pipe
    if isinstance(pipe.body, LimitBody | TapBody):
        pipe = passed_on(assembly, pipe)
        tree = step(pipe.tree)
    if not label:
        return replace(pipe, tree=tree)
    return replace(pipe, tree=tree, label=f"{pipe.label}, {label}", rows=None)


def tapped(assembly: StageAssembly, pipe: Pipe) -> Pipe:
    """A pipe with the rows of another one, which can be used any number of times."""
    tap = TapBody(assembly.close(pipe))
    return Pipe(tap, Input(0, pipe.columns), pipe.channels, pipe.label, (), (), pipe.partitioning, pipe.rows)


def passed_on(assembly: StageAssembly, pipe: Pipe) -> Pipe:
    """A new pipe that continues another one, channel by channel."""
    feed = Feed(assembly.close(pipe), Routing.PASS_THROUGH)
    tree = Input(0, pipe.columns)
    return Pipe(MapBody(), tree, pipe.channels, "map", (feed,), (), pipe.partitioning, pipe.rows)


def aligned(assembly: StageAssembly, flow: Flow, columns: tuple[Column, ...]) -> Flow:
    """Make pipes that feed the same input give the same columns in the same order."""
    return tuple(on_top(assembly, pipe, lambda tree: arrange(tree, columns)) for pipe in flow)


def renamed(partitioning: Partitioning, outputs: tuple[Named, ...]) -> Partitioning:
    """How rows are spread, in terms of a projection's outputs; None if it drops a key."""
    if partitioning is None:
        return None
    same = tuple(
        frozenset(n.column.id for n in outputs if isinstance(n.expression, Column) and n.expression.id in ids)
        for ids in partitioning
    )
    return same if all(same) else None


def _fragment(pipe: Pipe) -> Fragment:
    match pipe.body:
        case ScanBody(scan=scan, splits=splits):
            return ScanFragment(scan, splits, _scan_conditions(pipe.tree), pipe.tree)
        case JoinBody():
            return JoinFragment(pipe.tree)
        case ReduceBody(combine=combine):
            return ReduceFragment(combine, pipe.tree)
        case MapBody():
            return MapFragment(pipe.tree)
        case LimitBody(count=count, offset=offset):
            return LimitFragment(pipe.columns, count, offset)
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
