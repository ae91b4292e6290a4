"""Read a DataFrame, or parts of a plan, as relations over the files that matter.

This reads the files' footers, which may take long the first time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from wallaby.catalyst.node import PlanPart, PlanText
from wallaby.frontend.partitions import without_excluded_files
from wallaby.frontend.preflight import LeafChecks, unreadable_files
from wallaby.plan.leaf import tables_in
from wallaby.reading.leaves import Path
from wallaby.reading.native_parts import NativeParts, native_parts
from wallaby.reading.parts import NativePart
from wallaby.reading.reader import ReadResult, read_plan
from wallaby.relations.reason import Reason
from wallaby.tables.file_systems import make_known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_query(
    df: DataFrame, checks: LeafChecks, begin: Callable[[], object] | None, *, to_driver: bool = True
) -> ReadResult:
    """Read Spark's plan; tables whose files Wallaby cannot read become leaves.

    `begin` is called before the first file is opened, unless Spark has to run the query anyway; a query that does not
    run now has none. Spark writes the plan once. Which files matter is known only when it has been read. If one of them
    is unreadable, its table becomes a leaf together with operators above it, so the text is read again.
    """
    read = _checked(read_plan(df, leaves=True, to_driver=to_driver, runs=begin is not None), checks)
    if read.relation is None:
        return read
    make_known(read.storages)
    if begin is not None:
        begin()
    unreadable = unreadable_files(tables_in(read.relation))
    if not unreadable:
        return read
    again = read_plan(df, leaves=True, unreadable=unreadable, text=read.text, to_driver=to_driver)
    return _checked(again, checks)


def _checked(read: ReadResult, checks: LeafChecks) -> ReadResult:
    """The query without files that its filters exclude, or the reasons why its leaves do not pay."""
    if read.relation is None:
        return read
    relation = without_excluded_files(read.relation)
    reasons = checks.leaf_reasons(relation, read.leaves)
    if reasons:
        return replace(read, relation=None, reasons=reasons)
    return replace(read, relation=relation)


def read_parts(
    text: PlanText,
    describe: Callable[[Path], PlanPart],
    against: Callable[[NativePart], Reason | None],
    written: Path | None = None,
) -> list[tuple[NativePart, Reason | None]]:
    """The largest parts of a plan that can be read, each as a query, with the reason that speaks `against` it.

    The files of the others are looked at. Tables that Wallaby cannot read become leaves, or make parts smaller. The
    rows of the part at `written` may be written here.
    """
    read = native_parts(text, describe, written=written)
    found = _whole_parts(read, text, describe, against)
    unreadable = unreadable_files(
        scan for part, why in found if why is None for scan in tables_in(part.relation)
    )
    if unreadable:
        read = native_parts(text, describe, unreadable, written=written)
        found = _whole_parts(read, text, describe, against)
    return found


def _whole_parts(
    read: NativeParts,
    text: PlanText,
    describe: Callable[[Path], PlanPart],
    against: Callable[[NativePart], Reason | None],
) -> list[tuple[NativePart, Reason | None]]:
    make_known(read.storages)
    found: list[tuple[NativePart, Reason | None]] = []
    for part in read.parts:
        why = against(part)
        output = () if why else describe(part.path).output if part.path else text.root.output
        whole = why or read.whole(part, output)
        if isinstance(whole, Reason):
            found.append((part, whole))
        else:
            found.append((replace(part, relation=without_excluded_files(whole)), None))
    return found
