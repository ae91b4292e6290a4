"""The physical plan: a stage graph, what the channels of each stage compute, and how rows go over the links.

A stage's work is a `Fragment`; its trees have `Input`s as leaves:

- in a `ScanFragment`, input 0 is the rows of one split, and inputs 1, 2, … are its side links in order;
- in a `JoinFragment`, input 0 is the whole build side (all rows so far of link phase 0), input 1 one batch
  of the probe side, inputs 2, … its side links;
- in a `ReduceFragment`, input 0 is all rows of the channel's main inputs: `combine` shrinks them and may be
  applied to any part of them and to its own results, `finish` is applied once, at the end;
- in a `MapFragment`, input 0 is one batch of the main inputs, inputs 1, … its side links;
- a `LimitFragment` passes rows on until it has `count` of them;
- a `WriteFragment` writes its rows to files, and gives a row for each file.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.lineage.graph import StageGraph, StageKind
from wallaby.relations.expression import Column, Expression
from wallaby.relations.relation import DataFile, Relation, Source
from wallaby.relations.target import WriteTarget


@dataclass(frozen=True, slots=True)
class Split:
    """Some pieces of one file, which one read takes: row groups of Parquet, stripes of ORC, ranges of lines."""

    file: DataFile
    pieces: tuple[int, ...]
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RowSplit:
    """Some rows of a source that is not a file, which one read takes."""

    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class ScanFragment:
    """Read a split, then run `tree` on its rows. `conditions` are those of the scan, for pruning row groups."""

    scan: Source
    splits: tuple[Split | RowSplit, ...]
    conditions: tuple[Expression, ...]
    tree: Relation


@dataclass(frozen=True, slots=True)
class JoinFragment:
    """Collect the build side, then run `tree` on it and each batch of the probe side.

    Only for join kinds in which each probe batch can be answered alone: inner; and left outer, semi, anti and existence
    with the probe side on the left.
    """

    tree: Relation


@dataclass(frozen=True, slots=True)
class ReduceFragment:
    """Collect all rows, reduce them with `combine` if given, and run `finish` at the end.

    Aggregations, sorts and top-k are of this kind.
    """

    combine: Relation | None
    finish: Relation


@dataclass(frozen=True, slots=True)
class MapFragment:
    """Run `tree` on each batch. Unions and repartitionings are of this kind."""

    tree: Relation


@dataclass(frozen=True, slots=True)
class LimitFragment:
    """Any `count` rows (None: all) after skipping `offset`; then end early."""

    columns: tuple[Column, ...]
    count: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class WriteFragment:
    """Write all rows of the channel to files; give the manifest of these files."""

    #: The columns of the rows: those of the files, then the texts of partition columns.
    columns: tuple[Column, ...]
    target: WriteTarget


@dataclass(frozen=True, slots=True)
class CollectFragment:
    """The head's stage: hand all rows to the client, or watch over a kept result."""

    columns: tuple[Column, ...]


Fragment = (
    ScanFragment
    | JoinFragment
    | ReduceFragment
    | MapFragment
    | LimitFragment
    | WriteFragment
    | CollectFragment
)


#: How a query ends: the client collects its rows, or they stay with the workers, or they are written as a target says
#: and the client collects the manifest.
Ending = StageKind | WriteTarget


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """A query ready to run."""

    graph: StageGraph
    #: One for each stage.
    fragments: tuple[Fragment, ...]
    #: For each link, the positions of the columns whose hash determines a row's channel; empty if all rows go to every
    #: channel (broadcast) or to the only one, or if nobody needs to know it (pass-through, but not to a join).
    partition_keys: tuple[tuple[int, ...], ...]
    #: The columns that the client gets, in order.
    columns: tuple[Column, ...]
    #: One line per stage, for users.
    labels: tuple[str, ...]
    #: For users: the estimated number of rows of each stage, over all its channels; None: no estimate.
    rows: tuple[int | None, ...] = ()


def trees_of(fragment: Fragment) -> tuple[Relation, ...]:
    """The relations that a fragment runs."""
    match fragment:
        case ScanFragment() | JoinFragment() | MapFragment():
            return (fragment.tree,)
        case ReduceFragment():
            return (fragment.finish,) if fragment.combine is None else (fragment.combine, fragment.finish)
        case LimitFragment() | WriteFragment() | CollectFragment():
            return ()
