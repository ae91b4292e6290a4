"""Large row groups: rows are decoded window by window, whatever the file's encoding hides, and always the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.trees import call, column, file_of, literal, rows_of, scan_of, tuples

from wallaby.batches.sizes import value_bytes
from wallaby.errors import DoubtfulValueError, MemoryLimitError
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.operators.program import NOTHING
from wallaby.operators.scan_kernel import ScanKernel
from wallaby.plan.physical import ScanFragment, Split
from wallaby.relations.expression import Column, Expression
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import DataFile, Filter, Input, Join, Relation, Scan, Unnest
from wallaby.relations.types import BOOLEAN, LONG, STRING, array
from wallaby.statements.connection import OVER_PORTIONS, KernelSettings, close_thread_session
from wallaby.tables.decoded import decoded_bytes_max, planned_decoding
from wallaby.tables.footer import footer
from wallaby.tables.pages import pages_of
from wallaby.tables.reading import Reading, planned_reading
from wallaby.tables.row_windows import RowWindow, is_read_in_windows, windows
from wallaby.tables.scan import LargeSplitError, read_split

PORTION = 64 << 10
ROWS = 4000
WORDS = [f"{number:02d} " + "wombat " * 140 for number in range(20)]


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[KernelSettings]:
    yield KernelSettings(memory_bytes=32 << 20, portion_bytes=PORTION, temp_directory=tmp_path)
    close_thread_session()


def written(path: Path, columns: dict[str, Any], **options: Any) -> DataFile:
    pq.write_table(pa.table(columns), path, row_group_size=options.pop("group", ROWS), **options)
    return file_of(path)


def texts(path: Path, **options: Any) -> DataFile:
    """Four megabytes of text, of which some twenty kilobytes are in the file if it is a dictionary."""
    return written(path, {"n": range(ROWS), "t": [WORDS[n % 20] for n in range(ROWS)]}, **options)


def all_of(scan: Scan) -> Reading:
    return Reading(scan, None, (), Input(0, scan.columns))


def split_of(file: DataFile) -> Split:
    groups = tuple(range(footer(file).num_row_groups))
    return Split(file, groups, footer(file).num_rows, 1000)


def read(
    scan: Scan, wanted: Reading, settings: KernelSettings, row: int = 0, conditions: Sequence[Expression] = ()
) -> list[RowWindow]:
    return list(windows(scan, split_of(scan.files[0]), (), conditions, wanted, settings, row))


ENCODINGS: dict[str, dict[str, Any]] = {
    "a dictionary": {"use_dictionary": True},
    "plain": {"use_dictionary": False},
    "a dictionary that gets too large": {"use_dictionary": True, "dictionary_pagesize_limit": 4000},
    "prefixes": {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}},
    "pages of the second version": {"use_dictionary": True, "data_page_version": "2.0"},
    "compressed": {"use_dictionary": False, "compression": "zstd", "data_page_size": 8192},
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_windows_have_all_rows_and_are_about_a_portion(
    settings: KernelSettings, tmp_path: Path, name: str
) -> None:
    file = texts(tmp_path / "t.parquet", **ENCODINGS[name], group=1500)
    scan = scan_of(file, ("n", LONG), ("t", STRING))
    large = is_read_in_windows(scan, split_of(file), (), all_of(scan), settings)
    if not large:
        with pytest.raises(LargeSplitError):
            read_split(scan, split_of(file), (), all_of(scan), OVER_PORTIONS * PORTION)
    assert large == (name not in ("a dictionary", "pages of the second version"))
    found = read(scan, all_of(scan), settings)
    assert max(value_bytes(window.rows) for window in found) <= PORTION
    assert [window.end for window in found[:-1]] == [window.begin for window in found[1:]]
    assert found[-1].end is None
    rows = [row for window in found for row in tuples(window.rows)]
    assert rows == [(n, WORDS[n % 20]) for n in range(ROWS)]


def test_what_is_decoded_at_a_time_is_bounded(settings: KernelSettings, tmp_path: Path) -> None:
    scan = scan_of(texts(tmp_path / "t.parquet"), ("n", LONG), ("t", STRING))
    before, most = pa.total_allocated_bytes(), 0
    for window in windows(scan, split_of(scan.files[0]), (), (), all_of(scan), settings):
        assert window.rows
        most = max(most, pa.total_allocated_bytes() - before)
        del window
    assert most < 8 * PORTION < value_bytes(read_split(scan, split_of(scan.files[0])).to_batches()) / 4


def test_a_reader_that_goes_on_at_a_row_finds_the_same_windows(
    settings: KernelSettings, tmp_path: Path
) -> None:
    scan = scan_of(texts(tmp_path / "t.parquet", group=900), ("n", LONG), ("t", STRING))
    found = read(scan, all_of(scan), settings)
    for at in (0, 1, len(found) // 2, len(found) - 1):
        again = read(scan, all_of(scan), settings, found[at].begin)
        assert [(w.begin, w.end) for w in again] == [(w.begin, w.end) for w in found[at:]]
        assert tuples(again[0].rows) == tuples(found[at].rows)


def test_small_row_groups_make_a_window_together_and_large_ones_do_not(
    settings: KernelSettings, tmp_path: Path
) -> None:
    """Half a million numbers in row groups of 32 KiB; as many as may be read at once come together."""
    count, group = 1 << 18, 1 << 11
    file = written(tmp_path / "n.parquet", {"n": range(count), "m": range(count)}, group=group)
    scan = scan_of(file, ("n", LONG), ("m", LONG))
    assert is_read_in_windows(scan, split_of(file), (), all_of(scan), settings)
    found = read(scan, all_of(scan), settings)
    sizes = [value_bytes(window.rows) for window in found]
    assert len(found) < count / group, "not each by itself"
    assert max(sizes) <= OVER_PORTIONS * PORTION
    assert [row for window in found for row in tuples(window.rows)] == [(n, n) for n in range(count)]
    # What another input says drops whole windows, and no window begins elsewhere because of it.
    late = less(literal(count // 2, LONG), scan.columns[0])
    fewer = read(scan, all_of(scan), settings, conditions=(late,))
    assert 0 < len(fewer) < len(found)
    assert {window.begin for window in fewer} <= {window.begin for window in found}
    again = read(scan, all_of(scan), settings, row=fewer[1].begin + 5)
    assert again[0].begin == fewer[1].begin


def test_ordinary_row_groups_are_read_at_once(settings: KernelSettings, tmp_path: Path) -> None:
    words = [f"word {n % 50}" for n in range(2000)]
    file = written(tmp_path / "t.parquet", {"n": range(2000), "t": words})
    scan = scan_of(file, ("n", LONG), ("t", STRING))
    assert not is_read_in_windows(scan, split_of(file), (), all_of(scan), settings)
    assert read_split(scan, split_of(file), (), all_of(scan), OVER_PORTIONS * PORTION).num_rows == 2000
    size = sum(map(len, words))
    bound = decoded_bytes_max(file, (0,), (1,), OVER_PORTIONS * PORTION)
    assert size <= bound <= 20 * size


def test_pages_tell_their_sizes_and_values(tmp_path: Path) -> None:
    file = texts(tmp_path / "t.parquet", data_page_size=1024)
    chunk = footer(file).row_group(0).column(1)
    with (tmp_path / "t.parquet").open("rb") as source:
        first, *others = pages_of(source, chunk)
    assert first.is_dictionary
    assert (first.values, first.size_bytes) == (20, sum(len(word) + 4 for word in WORDS))
    assert all(page.has_indices for page in others)
    assert sum(page.values for page in others) == ROWS


def test_a_page_that_no_memory_has_room_for_is_refused_before_it_is_read(
    settings: KernelSettings, tmp_path: Path
) -> None:
    file = written(tmp_path / "t.parquet", {"t": ["x" * (70 << 20), "y"]}, use_dictionary=False)
    scan = scan_of(file, ("t", STRING))
    with pytest.raises(MemoryLimitError, match=r"column t\) has 70 MiB"):
        read(scan, all_of(scan), settings)


def test_many_columns_are_decoded_in_groups(settings: KernelSettings, tmp_path: Path) -> None:
    """Each has a page of its own in memory: 40 of a megabyte would be too much at once."""
    names = [f"c{number}" for number in range(40)]
    columns = {name: [f"{name} {n}" + "x" * 50_000 for n in range(20)] for name in names}
    file = written(tmp_path / "t.parquet", columns, use_dictionary=False, data_page_size=1 << 20)
    scan = scan_of(file, *((name, STRING) for name in names))
    settings = replace(settings, portion_bytes=4 << 20)
    how = planned_decoding(file, 0, tuple(range(40)), 1 << 20, settings)
    assert len(how.groups) > 1
    assert sorted(place for group in how.groups for place in group) == list(range(40))
    found = read(scan, all_of(scan), settings)
    assert max(value_bytes(window.rows) for window in found) <= settings.portion_bytes
    rows = [row for window in found for row in tuples(window.rows)]
    assert rows == list(zip(*columns.values(), strict=True))


@pytest.mark.parametrize("dictionary", [True, False])
def test_text_that_is_none_leaves_the_query_to_spark(
    settings: KernelSettings, tmp_path: Path, *, dictionary: bool
) -> None:
    odd = pa.array([WORDS[0].encode(), b"\xff" * 900] * (ROWS // 2)).view(pa.string())
    file = written(tmp_path / "t.parquet", {"n": range(ROWS), "t": odd}, use_dictionary=dictionary)
    scan = scan_of(file, ("n", LONG), ("t", STRING))
    with pytest.raises(DoubtfulValueError):
        read(scan, all_of(scan), settings)


def test_nested_columns_are_read_in_windows(settings: KernelSettings, tmp_path: Path) -> None:
    lists = [[WORDS[n % 20]] * (n % 4) for n in range(ROWS // 2)]
    file = written(tmp_path / "t.parquet", {"n": range(ROWS // 2), "a": lists})
    scan = scan_of(file, ("n", LONG), ("a", array(STRING)))
    found = read(scan, all_of(scan), settings)
    assert len(found) > 10
    assert [row for window in found for row in tuples(window.rows)] == list(enumerate(lists))


def less(left: Expression, right: Expression) -> Expression:
    return call("lt", BOOLEAN, left, right)


def test_a_filter_leaves_windows_that_are_counted_as_before(settings: KernelSettings, tmp_path: Path) -> None:
    scan = scan_of(texts(tmp_path / "t.parquet", group=1500), ("n", LONG), ("t", STRING))
    n, _ = scan.columns
    tree = Filter(Input(0, scan.columns), less(n, literal(700, LONG)))
    wanted = planned_reading(scan, tree)
    assert wanted.keep is not None
    plain, found = read(scan, all_of(scan), settings), read(scan, wanted, settings)
    assert [(w.begin, w.end) for w in found] == [(w.begin, w.end) for w in plain]
    assert [row[0] for window in found for row in tuples(window.rows)] == list(range(700))


def steps(fragment: ScanFragment, settings: KernelSettings, **beside: Any) -> list[tuple[int, list[Any]]]:
    """The steps of one kernel through a split: where each begins, and its rows."""
    kernel = make_kernel(fragment, settings)
    found: list[tuple[int, list[Any]]] = []
    begin: int | None = 0
    while begin is not None:
        _, result = kernel.step(EMPTY, split=fragment.splits[0], begin=begin, **beside)
        assert value_bytes(result.batches) <= OVER_PORTIONS * PORTION
        found.append((begin, tuples(result.batches)))
        begin = result.begin
    return found


@pytest.mark.parametrize("filtered", [False, True])
def test_a_kernel_reads_windows_task_by_task(
    settings: KernelSettings, tmp_path: Path, *, filtered: bool
) -> None:
    """Any task alone, by a kernel that has read nothing before, gives the same rows."""
    scan = scan_of(texts(tmp_path / "t.parquet", group=1500), ("n", LONG), ("t", STRING))
    n, _ = scan.columns
    tree: Relation = Input(0, scan.columns)
    wanted = [(i, WORDS[i % 20]) for i in range(ROWS)]
    if filtered:
        odd = call("eq", BOOLEAN, call("remainder", LONG, n, literal(7, LONG)), literal(0, LONG))
        tree = Filter(Filter(tree, less(literal(2000, LONG), n)), odd)
        wanted = [row for row in wanted if row[0] > 2000 and row[0] % 7 == 0]
    fragment = ScanFragment(scan, (split_of(scan.files[0]),), (), tree)
    found = steps(fragment, settings)
    assert [row for _, rows in found for row in rows] == wanted
    for begin, rows in found[:: max(len(found) // 5, 1)]:
        _, alone = make_kernel(fragment, settings).step(EMPTY, split=fragment.splits[0], begin=begin)
        assert tuples(alone.batches) == rows


def exploded(source: Input, length: Expression, value: Column) -> Unnest:
    numbers = call("sequence", array(LONG), literal(1, LONG), length)
    return Unnest(source, numbers, source.columns, None, (value,), fields=False, outer=False)


def semi(left: Relation, key: Column, right: Input) -> Join:
    return Join(left, right, JoinKind.SEMI, (key,), (right.columns[0],), None, left.columns)


def test_a_filter_that_comes_while_a_split_is_read_does_not_change_how_its_rows_are_counted(
    settings: KernelSettings, tmp_path: Path
) -> None:
    """A run-time filter may come between two tasks of one split, and then rules row groups out."""
    file = written(tmp_path / "t.parquet", {"n": range(300), "m": [400] * 300}, group=100)
    scan = scan_of(file, ("n", LONG), ("m", LONG))
    n, m = scan.columns
    keys = Input(1, (column(50, LONG),))
    tree = exploded(Input(0, scan.columns), m, column(51, LONG))
    fragment = ScanFragment(scan, (split_of(file),), (), semi_below(tree, n, keys))
    sides = {1: rows_of(keys.columns, [(key,) for key in range(200, 300)])}
    kernel = make_kernel(fragment, settings, optional=frozenset({1}))
    found: list[Any] = []
    begin: int | None = 0
    count = 0
    while begin is not None:
        late = sides if count else NOTHING
        _, result = kernel.step(EMPTY, split=fragment.splits[0], begin=begin, sides=late)
        found += tuples(result.batches)
        begin, count = result.begin, count + 1
    assert count > 3
    wanted = [(i, 400, j) for i in range(200, 300) for j in range(1, 401)]
    assert [row for row in found if row[0] >= 200] == wanted


def semi_below(tree: Unnest, key: Column, keys: Input) -> Unnest:
    return Unnest(
        semi(tree.child, key, keys),
        tree.array,
        tree.kept,
        tree.position,
        tree.values,
        tree.fields,
        tree.outer,
    )


def test_portions_of_one_row_do_not_change_when_a_filter_comes(
    settings: KernelSettings, tmp_path: Path
) -> None:
    file = written(tmp_path / "t.parquet", {"n": [1, 2], "m": [100_000, 3]})
    scan = scan_of(file, ("n", LONG), ("m", LONG))
    n, m = scan.columns
    keys = Input(1, (column(50, LONG),))
    tree = semi_below(exploded(Input(0, scan.columns), m, column(51, LONG)), n, keys)
    fragment = ScanFragment(scan, (split_of(file),), (), tree)
    begins: list[int] = []
    found: list[Any] = []
    begin: int | None = 0
    kernel = make_kernel(fragment, settings, optional=frozenset({1}))
    while begin is not None:
        begins.append(begin)
        _, result = kernel.step(EMPTY, split=fragment.splits[0], begin=begin)
        found.append(tuples(result.batches))
        begin = result.begin
    none = {1: rows_of(keys.columns, [(2,)])}
    for at in (1, len(begins) // 2):
        fresh = make_kernel(fragment, settings, optional=frozenset({1}))
        _, result = fresh.step(EMPTY, split=fragment.splits[0], begin=begins[at], sides=none)
        assert tuples(result.batches) == found[at]


def test_what_a_reader_keeps_for_its_next_task_can_lie_elsewhere(
    settings: KernelSettings, tmp_path: Path
) -> None:
    file = written(tmp_path / "t.parquet", {"n": range(300), "t": [WORDS[n % 20] for n in range(300)]})
    scan = scan_of(file, ("n", LONG), ("t", STRING))
    tree = exploded(Input(0, scan.columns), literal(10, LONG), column(51, LONG))
    fragment = ScanFragment(scan, (split_of(scan.files[0]),), (), tree)
    wanted = steps(fragment, settings)
    kernel = make_kernel(fragment, settings)
    assert isinstance(kernel, ScanKernel)
    found: list[tuple[int, list[Any]]] = []
    begin: int | None = 0
    most = 0
    while begin is not None:
        _, result = kernel.step(EMPTY, split=fragment.splits[0], begin=begin)
        found.append((begin, tuples(result.batches)))
        kept = kernel.kept
        most = max(most, value_bytes(kept.batches))
        moved = tuple(batch.take(pa.array(range(batch.num_rows))) for batch in kept.pending)
        kernel.kept = type(kept)(pending=moved, outgoing=kept.outgoing, files=kept.files)
        begin = result.begin
    assert found == wanted
    assert 0 < most <= PORTION
    kernel.forget()
    assert not list(kernel.kept.batches)


def test_texts_that_are_missing_take_no_room(settings: KernelSettings, tmp_path: Path) -> None:
    values = [None if n % 3 else WORDS[n % 20] for n in range(ROWS)]
    file = written(tmp_path / "t.parquet", {"n": range(ROWS), "t": values})
    scan = scan_of(file, ("n", LONG), ("t", STRING))
    rows = [row for window in read(scan, all_of(scan), settings) for row in tuples(window.rows)]
    assert rows == list(enumerate(values))
    assert pc.sum(pa.array([n for n, _ in rows])).as_py() == ROWS * (ROWS - 1) // 2
