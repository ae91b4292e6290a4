"""Formats other than Parquet: a large stripe or file of lines is read window by window, always the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from tests.trees import file_of, tuples

from wallaby.batches.sizes import value_bytes
from wallaby.errors import MemoryLimitError
from wallaby.plan.physical import Split
from wallaby.relations.expression import Column
from wallaby.relations.formats import Csv, Format, Json, Orc, Text
from wallaby.relations.relation import Input, Scan
from wallaby.relations.types import BOOLEAN, LONG, STRING, DataType
from wallaby.statements.connection import KernelSettings
from wallaby.tables.formats import orc as orc_format
from wallaby.tables.formats import pieces
from wallaby.tables.formats.content import blocks_of
from wallaby.tables.formats.json_lines import LINE_LENGTH_MAX
from wallaby.tables.formats.orc_stripe import StripedFile
from wallaby.tables.reading import Reading
from wallaby.tables.row_windows import RowWindow, piece_windows
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits, scan_reason

PORTION = 64 << 10
ROWS = 30_000
WORDS = [f"{number:02d} " + "wombat " * 30 for number in range(20)]
COMPRESSIONS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")


@pytest.fixture
def settings(tmp_path: Path) -> KernelSettings:
    directory = tmp_path / "spill"
    directory.mkdir()
    return KernelSettings(memory_bytes=32 << 20, portion_bytes=PORTION, temp_directory=directory)


def scan_of(path: Path, form: Format, *named: tuple[str, DataType]) -> Scan:
    columns = tuple(Column(10 + i, name, type_, nullable=True) for i, (name, type_) in enumerate(named))
    scan = Scan((file_of(path),), columns, tuple(name for name, _ in named), "t", form)
    assert scan_reason(scan) is None
    return scan


def texts(path: Path, **options: Any) -> Scan:
    """Eight megabytes of text, which is a dictionary in the file."""
    columns = {
        "n": range(ROWS),
        "t": [WORDS[n % 20] for n in range(ROWS)],
        "u": [None if n % 3 else f"own text {n}" for n in range(ROWS)],
        "b": [n % 2 == 0 for n in range(ROWS)],
    }
    options = {"dictionary_key_size_threshold": 0.5, "batch_size": 1000, **options}
    orc.write_table(pa.table(columns), path, **options)
    return scan_of(path, Orc(), ("u", STRING), ("n", LONG), ("t", STRING), ("b", BOOLEAN))


def rows_of_texts(begin: int, end: int) -> list[tuple[object, ...]]:
    return [(None if n % 3 else f"own text {n}", n, WORDS[n % 20], n % 2 == 0) for n in range(begin, end)]


def read(scan: Scan, split: Split, settings: KernelSettings, row: int = 0) -> Iterator[RowWindow]:
    wanted = Reading(scan, None, (), Input(0, scan.columns))
    return piece_windows(scan, split, (), wanted, settings, row)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_large_stripe_is_read_in_windows(
    settings: KernelSettings, tmp_path: Path, compression: str
) -> None:
    scan = texts(tmp_path / "t.orc", compression=compression, stripe_size=256 << 10)
    splits = list_splits(scan, 1)
    begin = 0
    for split in splits:
        found = list(read(scan, split, settings))
        assert max(value_bytes(window.rows) for window in found) <= PORTION
        assert [window.end for window in found[:-1]] == [window.begin for window in found[1:]]
        assert found[-1].end is None
        rows = [row for window in found for row in tuples(window.rows)]
        assert rows == rows_of_texts(begin, begin + len(rows))
        begin += len(rows)
    assert begin == ROWS
    assert not list((settings.temp_directory or tmp_path).iterdir()), "no copy of a stripe is left"


def test_several_stripes_are_each_copied_with_their_own_rows(
    settings: KernelSettings, tmp_path: Path
) -> None:
    scan = texts(tmp_path / "t.orc", compression="uncompressed", stripe_size=64 << 10)
    splits = list_splits(scan, 1)
    assert len(splits) > 2
    starts = [next(read(scan, split, settings)).rows[0].column(1)[0].as_py() for split in splits]
    assert starts == sorted(set(starts))


def test_a_reader_that_goes_on_at_a_row_of_a_stripe_finds_the_same_windows(
    settings: KernelSettings, tmp_path: Path
) -> None:
    scan = texts(tmp_path / "t.orc", compression="zstd", stripe_size=64 << 20)
    (split,) = list_splits(scan, 1)
    found = list(read(scan, split, settings))
    for at in (1, len(found) // 2, len(found) - 1):
        again = list(read(scan, split, settings, found[at].begin))
        assert [(w.begin, w.end) for w in again] == [(w.begin, w.end) for w in found[at:]]
        assert tuples(again[0].rows) == tuples(found[at].rows)


def test_what_is_decoded_of_a_stripe_at_a_time_is_bounded(settings: KernelSettings, tmp_path: Path) -> None:
    scan = texts(tmp_path / "t.orc", compression="zstd", stripe_size=64 << 20)
    (split,) = list_splits(scan, 1)
    whole = value_bytes(read_split(scan, split).to_batches())

    def peak() -> int:
        before, most = pa.total_allocated_bytes(), 0
        for window in read(scan, split, settings):
            assert window.rows
            most = max(most, pa.total_allocated_bytes() - before)
            del window
        return most

    most = min(peak() for _ in range(3))  # other threads of this process may allocate meanwhile
    assert most < 48 * PORTION < whole / 2  # some of it are the buffers of streams


def test_many_columns_of_a_stripe_are_read_in_groups(
    settings: KernelSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = texts(tmp_path / "t.orc", compression="zlib", stripe_size=64 << 20)
    (split,) = list_splits(scan, 1)
    grouped = orc_format._grouped
    seen: list[int] = []

    def narrow(names: list[str], sizes: list[Any], _limit_bytes: int) -> list[list[str]]:
        seen.append(len(grouped(names, sizes, 1)))
        return grouped(names, sizes, 1)

    monkeypatch.setattr(orc_format, "_grouped", narrow)
    rows = [row for window in read(scan, split, settings) for row in tuples(window.rows)]
    assert seen == [4]
    assert rows == rows_of_texts(0, ROWS)


def test_a_small_stripe_is_one_window(settings: KernelSettings, tmp_path: Path) -> None:
    scan = texts(tmp_path / "t.orc", compression="zstd", stripe_size=64 << 20)
    (split,) = list_splits(scan, 1)
    (window,) = read(scan, split, replace(settings, read_bytes=64 << 20))
    assert (window.begin, window.end) == (0, None)
    assert sum(batch.num_rows for batch in window.rows) == ROWS


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_a_file_tells_how_large_its_stripes_are(tmp_path: Path, compression: str, threshold: float) -> None:
    path = tmp_path / "t.orc"
    texts(path, compression=compression, stripe_size=64 << 20, dictionary_key_size_threshold=threshold)
    file = orc.ORCFile(path)
    with path.open("rb") as source:
        found = StripedFile(source, path.stat().st_size).sizes(0, file.schema.names, file.schema.types)
    for size, column in zip(found, file.read_stripe(0).columns, strict=True):
        assert column.nbytes <= size.decoded_bytes <= 12 * column.nbytes + 12 * len(column)
        assert size.row_bytes * len(column) >= size.decoded_bytes * 0.99


def test_a_dictionary_that_does_not_fit_ends_the_query_before(
    settings: KernelSettings, tmp_path: Path
) -> None:
    path = tmp_path / "t.orc"
    words = [f"{n}" + "long word " * 7000 for n in range(1000)]
    orc.write_table(
        pa.table({"t": words * 2}), path, compression="zstd", stripe_size=1 << 30,
        dictionary_key_size_threshold=0.9,
    )  # fmt: skip
    scan = scan_of(path, Orc(), ("t", STRING))
    (split,) = list_splits(scan, 1)
    with pytest.raises(MemoryLimitError, match="must be decompressed at once"):
        next(read(scan, split, settings))


def test_lines_come_in_whole_blocks() -> None:
    data = b"a\nbcd\n\nefghij\nk"
    for size in range(1, 20):
        found = list(blocks_of(data, size))
        assert b"".join(block for block, _ in found) == data
        assert all(block.endswith(b"\n") for block, _ in found[:-1])
        assert [last for _, last in found] == [False] * (len(found) - 1) + [True]
    assert list(blocks_of(b"", 5)) == [(b"", True)]


LINES: dict[str, tuple[Format, str, str]] = {
    "csv": (Csv(("n", "t"), ",", header=False, null_value=""), "", "{n},word {n}\n"),
    "csv with a header": (
        Csv(("n", "t"), ",", header=True, null_value=""),
        "\r\n\nn,t\n",
        "{n},word {n}\r\n",
    ),
    "json": (Json(), "", '{{"n": {n}, "t": "word {n}"}}\n'),
}


@pytest.mark.parametrize("name", LINES)
def test_many_lines_are_read_in_windows(settings: KernelSettings, tmp_path: Path, name: str) -> None:
    form, header, line = LINES[name]
    path, rows = tmp_path / "t.txt", 150_000
    path.write_bytes((header + "".join(line.format(n=n) for n in range(rows))).encode())
    scan = scan_of(path, form, ("n", LONG), ("t", STRING))
    (split,) = list_splits(scan, 1)
    assert pieces(scan, scan.files[0]).rows == rows
    found = list(read(scan, split, settings))
    assert len(found) > 2
    assert found[-1].end is None
    assert [row for w in found for row in tuples(w.rows)] == [(n, f"word {n}") for n in range(rows)]
    again = list(read(scan, split, settings, found[1].begin + 1))
    assert [(w.begin, w.end) for w in again] == [(w.begin, w.end) for w in found[1:]]


def test_short_lines_of_text_are_read_in_windows(settings: KernelSettings, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"a\n" * (3 << 20))
    scan = scan_of(path, Text(), ("value", STRING))
    (split,) = list_splits(scan, 1)
    counts = [sum(batch.num_rows for batch in window.rows) for window in read(scan, split, settings)]
    assert counts == [1 << 19] * 6


def test_a_long_line_of_json_is_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"t": "' + "x" * LINE_LENGTH_MAX + '"}\n')
    columns = (Column(1, "t", STRING, nullable=True),)
    found = scan_reason(Scan((file_of(path),), columns, ("t",), "t", Json()))
    assert found is not None
    assert "a line has more than 1024 KiB" in found.why
