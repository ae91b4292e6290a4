"""Entry point: read a DataFrame's optimized plan as a relation, or list every reason why Spark has to run it.

Nothing that a user can write makes this raise: whatever is unknown, unresolved, too deep or broken becomes a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from wallaby.catalyst.jvm import part_of, plan_of, zone_rules
from wallaby.catalyst.node import PlanPart, PlanText, UnreadablePlanError
from wallaby.plan.leaf import SparkLeaf
from wallaby.reading.defect import DEFECTS, defect
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.leaves import LeafCutter, Path
from wallaby.reading.operators import RelationReader
from wallaby.reading.prune import prune
from wallaby.relations.expression import Column, Named
from wallaby.relations.reason import LOCAL_ROWS, Reason
from wallaby.relations.relation import DataFile, Project, Range, Relation, Scan, children_of
from wallaby.relations.storage import Storage
from wallaby.relations.types import Kind
from wallaby.relations.zone import UTC

#: Spark generates and scans this many numbers in less time than a query takes to start.
_LONG_RANGE: Final = 1 << 20
ALL_READABLE: Final[Mapping[DataFile, str]] = {}


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The outcome of reading a plan: a relation, or the reasons why it cannot be read.

    `leaves` are the parts that Spark has to run first, each with its reasons. `columns` is the output as Catalyst
    describes it (names, types, nullability), in order, under the relation's ids; it is empty if one of its types cannot
    be read.
    """

    relation: Relation | None
    reasons: tuple[Reason, ...]
    columns: tuple[Column, ...]
    leaves: tuple[SparkLeaf, ...] = ()
    #: The remote storages of files, by the names that the files use for them.
    storages: Mapping[str, Storage] = field(default_factory=dict)
    #: The plan that was read, so that Spark need not write it again.
    text: PlanText | None = None


def read_plan(
    query: Any,
    *,
    leaves: bool = False,
    unreadable: Mapping[DataFile, str] = ALL_READABLE,
    text: PlanText | None = None,
    to_driver: bool = True,
    runs: bool = False,
) -> ReadResult:
    """Read the optimized plan of a DataFrame, or of a `QueryExecution` that lives in the JVM.

    With `leaves`, parts at the bottom of the plan that cannot be read become Spark leaves instead of reasons to refuse;
    so do tables with a file in `unreadable`, which says why. `text` is the plan if Spark has already written it.
    Rows that go `to_driver` go there as Arrow arrays. A query that `runs` now has the same files when it runs again.
    """
    try:
        describe = partial(part_of, query) if leaves else None
        text = text or plan_of(query, collects=to_driver, runs=runs)
        return replace(read_text(text, describe, unreadable, zone_rules, to_driver=to_driver), text=text)
    except UnreadablePlanError as error:
        return _refused(error.what)
    except DEFECTS as error:
        return ReadResult(None, (defect("reading", error),), ())


def read_text(
    text: PlanText,
    describe: Callable[[Path], PlanPart] | None = None,
    unreadable: Mapping[DataFile, str] = ALL_READABLE,
    zone: Callable[[str], str | None] | None = None,
    *,
    to_driver: bool = True,
) -> ReadResult:
    """Read a plan that Spark has written; `describe` describes parts that may become Spark leaves.

    `zone` looks up the rules of time zones; without it, only UTC is known.
    """
    reader = expression_reader(text, zone)
    if text.streaming:
        reader.refuse("plan", "streaming queries stay on Spark")
    found = [reader.column(attribute) for attribute in text.root.output]
    columns = tuple(column for column in found if column is not None)
    for column in columns:
        if to_driver and column.type.kind is Kind.YEAR_MONTH:
            reader.refuse(
                str(column), "Arrow has no arrays of intervals of months in Python", "cast it to text"
            )
    if not found:
        reader.refuse("plan", "it has no columns")
    cutter = LeafCutter(reader, text.root, describe)
    relations = RelationReader(reader, text.settings, cutter, unreadable)
    relation = relations.read(text.root)
    if relation is not None and not reads_something(relation):
        reader.refuse("plan", LOCAL_ROWS)
    if reader.reasons or relation is None:
        reasons = (*reader.reasons, *(reason for leaf in cutter.leaves for reason in leaf.reasons))
        known = columns if len(columns) == len(found) else ()
        return ReadResult(None, tuple(dict.fromkeys(reasons)), known)
    finished = with_columns(relation, columns, text.largest_id)
    numbered = (replace(c, id=own.id) for c, own in zip(columns, finished.columns, strict=True))
    return ReadResult(finished, (), tuple(numbered), tuple(cutter.leaves), relations.storages)


def expression_reader(text: PlanText, zone: Callable[[str], str | None] | None) -> ExpressionReader:
    """The reader of a plan's expressions; `zone` looks up the rules of time zones."""
    reader = ExpressionReader(text.largest_id, text.settings)
    if zone is not None:
        reader.zone = zone
        reader.session_zone = zone(text.settings.get("spark.sql.session.timeZone", "UTC")) or UTC
    return reader


def reads_something(relation: Relation) -> bool:
    """Does the relation read a table or a long range? Spark answers queries over literal rows at once."""
    long = isinstance(relation, Range) and relation.count >= _LONG_RANGE
    return long or isinstance(relation, Scan) or any(map(reads_something, children_of(relation)))


def with_columns(relation: Relation, columns: tuple[Column, ...], largest_id: int) -> Relation:
    """The relation with only the columns that it needs, and the output columns in their order."""
    pruned = prune(relation, frozenset(column.id for column in columns))
    own = pruned.columns
    # A column that is selected twice gets a new id the second time.
    same = (own[i].id == c.id or own[i].id > largest_id for i, c in enumerate(columns) if i < len(own))
    if len(own) == len(columns) and all(same):
        return pruned
    return Project(pruned, tuple(Named(column, column) for column in columns))


def _refused(why: str) -> ReadResult:
    return ReadResult(None, (Reason("plan", why),), ())
