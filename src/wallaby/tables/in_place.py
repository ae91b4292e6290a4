"""Let DuckDB itself read the rows of a file, where its statement is most of a scan's work.

Rows that go from a file to DuckDB through Arrow are converted twice, and texts lose their dictionaries. For a scan that
aggregates, or whose conditions the reader cannot apply, reading in place took half of the time (TPC-H 1). DuckDB may
read the files of its query and no others. Floats are excluded, because bounds of row groups ignore NaN, and timestamps,
because files encode them in several ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from wallaby.plan.physical import Fragment, ScanFragment, Split
from wallaby.relations.formats import Parquet
from wallaby.relations.relation import (
    Aggregate,
    DataFile,
    Filter,
    Input,
    Project,
    Relation,
    Scan,
    children_of,
)
from wallaby.relations.tree import is_choice
from wallaby.relations.types import Kind
from wallaby.sql.words import column_identifier, identifier, text
from wallaby.statements.connection import TableView
from wallaby.statements.counting import is_counted
from wallaby.statements.growth import path_above, tree_grows
from wallaby.statements.ordinary import makes_arrays
from wallaby.tables.file_columns import is_as_in_the_table
from wallaby.tables.file_systems import is_local, local_path
from wallaby.tables.footer import first_rows_of_groups
from wallaby.tables.reading import planned_reading

_KINDS: Final = frozenset(
    {Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.DECIMAL, Kind.STRING, Kind.DATE}
)
#: DuckDB would read a path with one of these characters as a pattern.
_PATTERN: Final = frozenset("*?[]{}")
#: With more files, each is too small for it to matter.
_FILES_MAX: Final = 1 << 10
#: To read other files, a new instance has to be opened, which takes as long as reading some hundred thousand rows.
_ROWS_MIN: Final = 4_000_000
#: DuckDB's own buffers need some room.
MEMORY_BYTES_MIN: Final = 256 << 20


def reads_in_place(fragment: Fragment) -> bool:
    """Should DuckDB itself read the rows of a fragment?"""
    if not isinstance(fragment, ScanFragment) or not isinstance(fragment.scan, Scan):
        return False
    scan = fragment.scan
    if (
        not scan.columns
        or not isinstance(scan.format, Parquet)
        or len(scan.files) > _FILES_MAX
        or any(c.type.kind not in _KINDS for c in scan.columns)
        or tree_grows(fragment.tree)
        or makes_arrays(path_above(fragment.tree, 0))
    ):
        return False
    return _is_computed(planned_reading(scan, fragment.tree).tree)


def _is_computed(tree: Relation) -> bool:
    """Is something other than a join or a selection of columns computed on the rows of the split?"""
    below = children_of(tree)
    if any(_is_split(child) for child in below):
        if isinstance(tree, Aggregate):
            return not is_counted(tree)
        return isinstance(tree, Filter) or (isinstance(tree, Project) and not is_choice(tree))
    return any(_is_computed(child) for child in below)


def _is_split(relation: Relation) -> bool:
    while isinstance(relation, Project) and is_choice(relation):
        relation = relation.child
    return isinstance(relation, Input) and relation.number == 0


def readable_files(fragments: Iterable[Fragment]) -> tuple[str, ...]:
    """The files that DuckDB may read for a query: those of large tables."""
    files = {
        file
        for fragment in fragments
        if isinstance(fragment, ScanFragment) and isinstance(fragment.scan, Scan)
        if sum(split.rows for split in fragment.splits) >= _ROWS_MIN and reads_in_place(fragment)
        for file in fragment.scan.files
    }
    return tuple(sorted(str(local_path(file)) for file in files if _is_plain(file)))


def _is_plain(file: DataFile) -> bool:
    return is_local(file) and not _PATTERN & set(str(local_path(file)))


def rows_in_place(
    scan: Scan, split: Split, groups: Sequence[int], readable: Collection[str]
) -> TableView | None:
    """The rows of adjacent row groups of a split, if the file has all columns exactly as the table has them."""
    path = str(local_path(split.file))
    if not groups or groups[-1] - groups[0] != len(groups) - 1 or path not in readable:
        return None
    pairs = list(zip(scan.columns, scan.names, strict=True))
    if not all(is_as_in_the_table(split.file, column, name) for column, name in pairs):
        return None
    firsts = first_rows_of_groups(split.file)
    first, end = firsts[groups[0]], firsts[groups[-1] + 1]
    listed = ", ".join(f"{identifier(name)} AS {column_identifier(column.id)}" for column, name in pairs)
    source = f"read_parquet({text(path)}, file_row_number = true, hive_partitioning = false)"
    return TableView(f"SELECT {listed} FROM {source} WHERE file_row_number BETWEEN {first} AND {end - 1}")  # noqa: S608 - made of typed parts
