"""DuckDB reads files itself where that pays: the same rows, no other files, and the reader's errors."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.trees import (
    SETTINGS,
    aggregation,
    column,
    literal,
    named,
    parquet,
    scan_of,
    test,
    tuples,
)

from wallaby.errors import CorruptFileError, KernelError, SourceChangedError
from wallaby.operators import scan_kernel
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.plan.physical import ScanFragment, Split
from wallaby.relations.expression import Call, Named
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    DataFile,
    Filter,
    Input,
    Join,
    Project,
    Relation,
    Scan,
)
from wallaby.relations.types import BOOLEAN, DATE, DOUBLE, LONG, STRING, DataType, decimal
from wallaby.statements.connection import DuckDbSession, TableView, close_thread_session
from wallaby.tables.in_place import readable_files, reads_in_place, rows_in_place
from wallaby.tables.tables import list_splits

TYPES: dict[str, DataType] = {
    "n": LONG,
    "price": decimal(15, 2),
    "day": DATE,
    "text": STRING,
    "flag": BOOLEAN,
}
N, PRICE, DAY, TEXT = (
    column(10 + at, type_, name) for at, (name, type_) in enumerate(list(TYPES.items())[:4])
)
ROWS = 9000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DataFile:
    numbers = range(ROWS)
    table = pa.table(
        {
            "n": pa.array([n if n % 13 else None for n in numbers], pa.int64()),
            "price": pa.array(
                [Decimal(n).scaleb(-2) if n % 9 else None for n in numbers], pa.decimal128(15, 2)
            ),
            "day": pa.array([datetime.date(1992, 1, 1) + datetime.timedelta(n % 900) for n in numbers]),
            "text": pa.array([f"ä{n % 5}" if n % 7 else None for n in numbers]),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
        }
    )
    return parquet(tmp_path_factory.mktemp("files") / "it's a=b.parquet", table, row_group_size=2000)


@pytest.fixture
def scan(file: DataFile) -> Scan:
    return scan_of(file, *TYPES.items())


def summed(child: Relation) -> Aggregate:
    return Aggregate(
        child,
        (named(30, TEXT),),
        (named(31, aggregation("sum", decimal(25, 2), PRICE)), named(32, aggregation("count", LONG))),
    )


def rows_of(
    scan: Scan, tree: Relation, *, in_place: bool, groups: tuple[int, ...] = (0, 1, 2, 3, 4)
) -> list[object]:
    fragment = ScanFragment(scan, (), (), tree)
    readable = tuple(file.path for file in scan.files) if in_place else ()
    (split,) = list_splits(scan, 1 << 30)
    kernel = make_kernel(fragment, replace(SETTINGS, readable=readable))
    try:
        _, result = kernel.step(EMPTY, split=replace(split, pieces=groups))
        return sorted(tuples(result.batches), key=str)
    finally:
        close_thread_session()


TREES: dict[str, Callable[[Relation], Relation]] = {
    "aggregate": summed,
    "filtered aggregate": lambda rows: summed(
        Filter(rows, test("le", DAY, literal(datetime.date(1993, 1, 1), DATE)))
    ),
    "chosen, then aggregated": lambda rows: summed(
        Project(Filter(rows, test("gt", N, literal(70, LONG))), (Named(TEXT, TEXT), Named(PRICE, PRICE)))
    ),
    "a condition for SQL": lambda rows: Filter(rows, test("like", TEXT, literal("%3", STRING))),
    "computed": lambda rows: Project(
        rows, (named(40, Call("is_null", (N,), BOOLEAN, nullable=False)), Named(DAY, DAY))
    ),
}


@pytest.mark.parametrize("groups", [(0, 1, 2, 3, 4), (1, 2), (4,), (0, 2)], ids=str)
@pytest.mark.parametrize("name", TREES)
def test_the_rows_are_those_that_the_reader_gives(
    scan: Scan, name: str, groups: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = TREES[name](Input(0, scan.columns))
    assert reads_in_place(ScanFragment(scan, (), (), tree))
    expected = rows_of(scan, tree, in_place=False, groups=groups)
    if groups != (0, 2):  # these are not neighbours
        monkeypatch.delattr(scan_kernel, "read_split")
    assert rows_of(scan, tree, in_place=True, groups=groups) == expected
    assert expected


def test_joins_and_what_the_reader_does_alone_are_left_to_it(scan: Scan) -> None:
    rows, keys = Input(0, scan.columns), Input(1, (column(50, LONG),))
    joined = Join(rows, keys, JoinKind.SEMI, (N,), (keys.columns[0],), None, rows.columns)
    simple = Filter(rows, test("le", N, literal(5, LONG)))
    for tree in (rows, joined, simple, Project(simple, (Named(DAY, DAY),)), summed(joined)):
        assert not reads_in_place(ScanFragment(scan, (), (), tree))
    by_number = replace(summed(rows), keys=(Named(N, N),))
    assert not reads_in_place(ScanFragment(scan, (), (), by_number)), "it is counted, from Arrow data"
    assert reads_in_place(ScanFragment(scan, (), (), summed(rows)))
    floats = scan_of(scan.files[0], ("n", LONG), ("ratio", DOUBLE))
    assert not reads_in_place(ScanFragment(floats, (), (), summed(Input(0, floats.columns))))


def test_a_file_that_is_not_as_the_table_says_is_not_read_in_place(scan: Scan, tmp_path: Path) -> None:
    (split,) = list_splits(scan, 1 << 30)
    readable = {split.file.path}
    assert rows_in_place(scan, split, [0, 1], readable) is not None
    assert rows_in_place(scan, split, [0, 1], ()) is None
    assert rows_in_place(scan, split, [], readable) is None
    assert rows_in_place(scan, split, [0, 2], readable) is None
    other = parquet(tmp_path / "other.parquet", pa.table({"N": pa.array([1], pa.int64())}))
    assert rows_in_place(scan_of(other, ("n", LONG)), Split(other, (0,), 1, 1), [0], {other.path}) is None


def test_only_files_of_large_tables_with_plain_names_may_be_read(scan: Scan, tmp_path: Path) -> None:
    pattern = parquet(tmp_path / "pattern*.parquet", pa.table({"n": pa.array([1], pa.int64())}))
    for file, rows, expected in (
        (scan.files[0], 10_000_000, (scan.files[0].path,)),
        (scan.files[0], 1000, ()),
        (pattern, 10_000_000, ()),
    ):
        table = scan_of(file, ("n", LONG), ("price", decimal(15, 2)), ("day", DATE), ("text", STRING))
        splits = (Split(file, (0,), rows, 1),)
        large = ScanFragment(table, splits, (), summed(Input(0, table.columns)))
        plain = ScanFragment(table, splits, (), Input(0, table.columns))
        assert readable_files([large, plain]) == expected
        assert readable_files([plain]) == ()


def test_no_other_file_can_be_read(file: DataFile, tmp_path: Path) -> None:
    secret = tmp_path / "secret.parquet"
    parquet(secret, pa.table({"n": [1]}))
    session = DuckDbSession(replace(SETTINGS, readable=(file.path,)))
    allowed = TableView("SELECT count(*) AS n FROM read_parquet('" + file.path.replace("'", "''") + "')")
    assert session.query("SELECT n FROM v", {"v": allowed}).to_pylist() == [{"n": ROWS}]
    with pytest.raises(KernelError) as refused:
        session.query("SELECT * FROM v", {"v": TableView(f"SELECT * FROM read_parquet('{secret}')")})
    assert re.search(r"(?i)permission|disabled", str(refused.value.fields["detail"]))
    with pytest.raises(KernelError):
        session.query("SELECT * FROM v", {"v": TableView(f"SELECT * FROM read_csv('{secret}')")})
    session.close()


def test_a_damaged_file_is_the_reader_s_matter(file: DataFile, tmp_path: Path) -> None:
    data = bytearray(Path(file.path).read_bytes())
    data[100 : len(data) // 2] = b"\xff" * (len(data) // 2 - 100)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(bytes(data))
    found = damaged.stat()
    broken = DataFile(str(damaged), found.st_size, found.st_mtime_ns // 1_000_000)
    scan = scan_of(broken, *TYPES.items())
    with pytest.raises(CorruptFileError):
        rows_of(scan, summed(Input(0, scan.columns)), in_place=True)


def test_a_file_that_changed_is_refused(scan: Scan, file: DataFile) -> None:
    changed = replace(file, modified_ms=file.modified_ms + 1)
    other = replace(scan, files=(changed,))
    with pytest.raises(SourceChangedError):
        rows_of(other, summed(Input(0, other.columns)), in_place=True)
