"""Spark leaves: sub-plans at the bottom of a query that Spark runs, and whose rows the engine then reads.

In the tree, a leaf is a `Scan` of one file that does not exist yet, so rules, planner and kernels need not know about
leaves. Column pruning determines which columns Spark has to hand over. Once Spark has done so, `handed_over` replaces
the placeholder by the files. Nothing that still has a placeholder is ever run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wallaby.plan.estimates.statistics import TableStatistics
from wallaby.plan.physical import Split
from wallaby.relations.expression import Column
from wallaby.relations.reason import Reason
from wallaby.relations.relation import DataFile, Filter, Limit, Project, Relation, Scan, Union, children_of
from wallaby.relations.tree import rewrite_up

#: The path of a leaf's placeholder file, followed by the leaf's number.
_PENDING: Final = "spark-leaf:"
#: The assumed bytes and rows of a leaf that has not run yet, if Spark has no estimate.
_UNKNOWN_BYTES: Final = 64 << 20
_COLUMN_BYTES: Final = 8
#: The largest table that Spark broadcasts by default (`spark.sql.autoBroadcastJoinThreshold`).
_BROADCAST_BYTES: Final = 10 << 20
#: The operators of tables whose rows are in memory already: in Spark's cache, or in the TaskManagers (`above`).
_CACHED: Final = frozenset({"InMemoryRelation", "KeptPlans$Relation"})


@dataclass(frozen=True, slots=True)
class SparkLeaf:
    """A sub-plan that Spark runs for a query.

    `path` leads to it from the root of the optimized plan, by numbers of children. `outputs` are the ids of all its
    output columns in order, including those whose types cannot be read here.
    """

    number: int
    path: tuple[int, ...]
    outputs: tuple[int, ...]
    reasons: tuple[Reason, ...]
    #: The operators that Spark runs, outermost first.
    operators: tuple[str, ...]
    #: Spark's estimate of the bytes that it has to read; None if it has none.
    size_bytes: int | None

    def scan(self, columns: tuple[Column, ...]) -> Scan:
        """The scan that represents the leaf in a tree."""
        names = tuple(f"c{column.id}" for column in columns)
        return Scan(
            (DataFile(f"{_PENDING}{self.number}", 0, 0),), columns, names, f"Spark leaf {self.number}"
        )

    def __str__(self) -> str:
        return f"Spark leaf {self.number} ({' ← '.join(self.operators)})"


def leaf_number(scan: Scan) -> int | None:
    """The number of the leaf that a scan represents; None for a scan of files that exist."""
    first = scan.files[0].path if scan.files else ""
    return int(first.removeprefix(_PENDING)) if first.startswith(_PENDING) else None


def scans_in(relation: Relation) -> tuple[Scan, ...]:
    """All scans of a tree, from left to right."""
    if isinstance(relation, Scan):
        return (relation,)
    return tuple(scan for child in children_of(relation) for scan in scans_in(child))


def tables_in(relation: Relation | None) -> list[Scan]:
    """The scans of a tree whose files exist already."""
    scans = () if relation is None else scans_in(relation)
    return [scan for scan in scans if leaf_number(scan) is None]


def whole_scan(relation: Relation, leaf: SparkLeaf) -> Scan:
    """One scan of a leaf with all columns that its scans in a tree need."""
    scans = [scan for scan in scans_in(relation) if leaf_number(scan) == leaf.number]
    return leaf.scan(tuple(dict.fromkeys(column for scan in scans for column in scan.columns)))


def handed_over(relation: Relation, files: Mapping[int, tuple[DataFile, ...]]) -> Relation:
    """Replace the leaves of a tree by the files that Spark has written."""

    def fill(part: Relation) -> Relation:
        if not isinstance(part, Scan):
            return part
        number = leaf_number(part)
        return part if number is None else replace(part, files=files[number])

    return rewrite_up(relation, fill)


def assumed_statistics(leaf: SparkLeaf, scan: Scan) -> TableStatistics:
    """The statistics to plan with until the leaf has run."""
    size = _UNKNOWN_BYTES if leaf.size_bytes is None else leaf.size_bytes
    rows = max(1, size // (_COLUMN_BYTES * max(1, len(scan.columns))))
    return TableStatistics(scan.files, rows, (), (Split(scan.files[0], (0,), rows, size),))


def not_worthwhile(relation: Relation, leaves: Sequence[SparkLeaf], minimum_bytes: int) -> Reason | None:
    """Why Spark should run all of a query with leaves; None if the hand-over pays."""
    if not has_work(relation):
        return Reason("Spark leaf", "there is no join, aggregation or sort above it")
    if _mostly_cached(relation, leaves):
        return Reason(
            "Spark leaf",
            "Spark has the rows in memory, and all other tables are small: handing them over costs more than it saves",
        )
    files = {file for scan in scans_in(relation) if leaf_number(scan) is None for file in scan.files}
    known = sum(file.size_bytes for file in files) + sum(leaf.size_bytes or 0 for leaf in leaves)
    if known < minimum_bytes:
        return Reason(
            "Spark leaf",
            f"the query reads {known} bytes, as far as is known: a hand-over would not pay",
            "lower spark.wallaby.leaf.minimum",
        )
    return None


def _mostly_cached(relation: Relation, leaves: Sequence[SparkLeaf]) -> bool:
    """Is one table by far the largest, and cached?

    Spark then aggregates it, sorts it, or joins small tables to it in place, with one shuffle at most. Handing it over
    costs as much as a shuffle of the whole table: that pays only if Spark could broadcast none of the other tables.
    """
    by_number = {leaf.number: leaf for leaf in leaves}
    cached: list[int] = []
    others: list[int] = []
    for scan in scans_in(relation):
        number = leaf_number(scan)
        if number is None:
            others.append(sum(file.size_bytes for file in scan.files))
            continue
        leaf = by_number[number]
        size = _UNKNOWN_BYTES if leaf.size_bytes is None else leaf.size_bytes
        (cached if leaf.operators[-1] in _CACHED else others).append(size)
    if not cached:
        return False
    largest = max(cached)
    return sum(cached) - largest + sum(others) <= min(largest, _BROADCAST_BYTES)


def has_work(relation: Relation) -> bool:
    """Is there more to do than to process rows one by one?"""
    if not isinstance(relation, Scan | Filter | Project | Limit | Union):
        return True
    return any(map(has_work, children_of(relation)))
