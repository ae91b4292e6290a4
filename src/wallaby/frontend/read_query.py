"""Read a DataFrame as a relation over the files that matter. This reads their footers, which may take long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wallaby.frontend.partitions import without_excluded_files
from wallaby.plan.leaf import not_worthwhile, tables_in
from wallaby.reading.reader import ReadResult, read_plan
from wallaby.relations.relation import Relation
from wallaby.tables.file_systems import make_known
from wallaby.tables.tables import scan_reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_query(
    df: DataFrame, leaf_minimum_bytes: int, begin: Callable[[], object]
) -> tuple[ReadResult, Relation | None]:
    """Read Spark's plan; tables whose files Wallaby cannot read become leaves.

    `begin` is called before the first file is opened, unless Spark has to run the query anyway.
    """
    read = read_plan(df, leaves=True)
    make_known(read.storages)
    relation = None if read.relation is None else without_excluded_files(read.relation)
    if relation is not None and not (
        read.leaves and not_worthwhile(relation, read.leaves, leaf_minimum_bytes)
    ):
        begin()
    odd = [scan_reason(scan) for scan in tables_in(relation)]
    unreadable = {reason.file: reason.why for reason in odd if reason is not None}
    if unreadable:
        read = read_plan(df, leaves=True, unreadable=unreadable, text=read.text)
        relation = None if read.relation is None else without_excluded_files(read.relation)
    return read, relation
