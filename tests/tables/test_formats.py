"""Files of lines: what is plain is read, and what Spark might read otherwise is a doubt."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.trees import file_of

from wallaby.relations.expression import Column
from wallaby.relations.formats import Csv, Json, Text
from wallaby.relations.relation import Constant, Scan
from wallaby.relations.types import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, STRING, DataType, Kind, decimal
from wallaby.tables.formats import TABLE_BYTES_MAX, csv_lines, json_lines
from wallaby.tables.formats.content import Asked, DoubtError
from wallaby.tables.formats.lines import TEXT_BYTES_MAX, parse_text
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits, scan_reason

BYTE = DataType(Kind.BYTE)
NAMES = ("s", "n")
PLAIN = Csv(NAMES, ",", header=False, null_value="")


def asked(*types: DataType, names: tuple[str, ...] = NAMES) -> Asked:
    return tuple(zip(names, types, strict=False))


def csv(data: bytes, *types: DataType, form: Csv = PLAIN) -> list[tuple[object, ...]]:
    table = csv_lines.parse(data, form, asked(*types))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def json(data: str, type_: DataType) -> list[object]:
    found: list[object] = json_lines.parse(data.encode(), asked(type_, names=("a",))).column(0).to_pylist()
    return found


def test_plain_lines_of_csv_are_read() -> None:
    assert csv(b"a,1\n,-2\nb b,\n", STRING, LONG) == [("a", 1), (None, -2), ("b b", None)]
    assert csv(b'"a,b",1\r\n\r\n"c",2', STRING, INTEGER) == [("a,b", 1), ("c", 2)]
    assert csv(b"\nx,y\na,1\n", STRING, BYTE, form=Csv(NAMES, ",", header=True, null_value="")) == [("a", 1)]
    assert csv(b"a|NA\nNA|\n", STRING, STRING, form=Csv(NAMES, "|", header=False, null_value="NA")) == [
        ("a", None),
        (None, ""),
    ]
    assert csv(b"0.1,true\n-1e3,false\n", DOUBLE, BOOLEAN) == [(0.1, True), (-1000.0, False)]
    assert csv(b"2020-02-29,1.5\n9999-12-31,-12\n", DATE, decimal(4, 2)) == [
        (datetime.date(2020, 2, 29), Decimal("1.50")),
        (datetime.date(9999, 12, 31), Decimal("-12.00")),
    ]
    assert csv(b"", STRING) == []
    assert csv_lines.parse(b"a,1\nb,2\n", PLAIN, ()).num_rows == 2


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (b"a\n", STRING),
        (b"a,b,c\n", STRING),
        (b"   \na,b\n", STRING),
        (b'a"b,c\n', STRING),
        (b'"a""b",c\n', STRING),
        (b'"",c\n', STRING),
        (b'"a"b,c\n', STRING),
        (b'"a\nb",c\n', STRING),
        (b"a\\b,c\n", STRING),
        (b"a\rb,c\n", STRING),
        (b"\xef\xbb\xbfa,b\n", STRING),
        (b"\xff,b\n", STRING),
        (b"a\0,b\n", STRING),
        (b" 1,b\n", LONG),
        (b"+1,b\n", LONG),
        (b"1.0,b\n", LONG),
        ("١,b\n".encode(), LONG),
        (b"9999999999999999999,b\n", LONG),
        (b"128,b\n", BYTE),
        (b"NaN,b\n", DOUBLE),
        (b"1d,b\n", DOUBLE),
        (b"1e400,b\n", DOUBLE),
        (b"TRUE,b\n", BOOLEAN),
        (b"2020-2-3,b\n", DATE),
        (b"2021-02-29,b\n", DATE),
        (b"1500-01-01,b\n", DATE),
        (b"1.234,b\n", decimal(4, 2)),
        (b"123,b\n", decimal(4, 2)),
        (b"0.1,b\n", decimal(2, 2)),
        (b"1.5,b\n", DataType(Kind.FLOAT)),
    ],
)
def test_an_odd_line_of_csv_is_a_doubt(data: bytes, type_: DataType) -> None:
    with pytest.raises(DoubtError):
        csv(data, type_)


def test_plain_lines_of_json_are_read() -> None:
    assert json('{"a": 1, "b": [1]}\n\n{"b": {}}\n{"a": null}\n{"a": -7}', LONG) == [1, None, None, -7]
    assert json('{"a": 1}\n{"a": 0.1}\n{"a": 1E2}', DOUBLE) == [1.0, 0.1, 100.0]
    assert json('{"a": "\\u00e9 \\ud83d\\ude00"}\r\n{"a": ""}\n', STRING) == ["é 😀", ""]
    assert json('{"a": "2020-02-29"}', DATE) == [datetime.date(2020, 2, 29)]
    assert json('{"a": true}\n{"a": false}', BOOLEAN) == [True, False]
    longs = DataType(Kind.ARRAY, children=(LONG,))
    assert json('{"a": [1, null]}\n{"a": []}', longs) == [[1, None], []]
    assert json_lines.parse(b'{"a": 1}\n{}\n', ()).num_rows == 2


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        ("[1]", LONG),
        ("nonsense", LONG),
        (' {"a": 1}', LONG),
        ('{"a": 1} x', LONG),
        ("{'a': 1}", LONG),
        ('{"a": 01}', LONG),
        ('{"a": 1.0}', LONG),
        ('{"a": "1"}', LONG),
        ('{"a": true}', LONG),
        ('{"a": 9223372036854775808}', LONG),
        ('{"a": 300}', BYTE),
        ('{"a": -0}', DOUBLE),
        ('{"a": NaN}', DOUBLE),
        ('{"a": 1e999}', DOUBLE),
        ('{"a": "0.5"}', DOUBLE),
        ('{"a": 1}', STRING),
        ('{"a": {"b": 1}}', STRING),
        ('{"a": "\\ud800"}', STRING),
        ('{"a": 1, "a": 2}', LONG),
        ('{"a": "2020-1-2"}', DATE),
        ('{"a": "2020-02-30"}', DATE),
        ('{"a": "1200-01-01"}', DATE),
        ('{"a": 1}', BOOLEAN),
        ('{"a": 1.5}', decimal(4, 2)),
        ('{"a": 1}', DataType(Kind.ARRAY, children=(LONG,))),
        ('{"a": "2020-01-01 00:00:00"}', DataType(Kind.TIMESTAMP)),
        ('{"x": [NaN]}', LONG),
    ],
)
def test_an_odd_line_of_json_is_a_doubt(line: str, type_: DataType) -> None:
    with pytest.raises(DoubtError):
        json(line, type_)


def test_lines_of_text_are_read() -> None:
    found = parse_text(b"a\r\n\n\xc3\xa9", asked(STRING, names=("value",)))
    assert found.column("value").to_pylist() == ["a", "", "é"]
    with pytest.raises(DoubtError):
        parse_text(b"a\rb", asked(STRING))


def test_a_file_is_a_split_with_the_columns_that_it_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,1\nb,2\n")
    file = file_of(path)
    partition = Constant("day", 7, INTEGER)
    named = (("n", LONG), ("day", INTEGER))
    columns = tuple(Column(10 + i, name, type_, nullable=True) for i, (name, type_) in enumerate(named))
    files = (type(file)(file.path, file.size_bytes, file.modified_ms, (partition,)),)
    scan = Scan(files, columns, ("n", "day"), "t", PLAIN)
    assert scan_reason(scan) is None
    (split,) = list_splits(scan, 1)
    assert (split.rows, split.pieces) == (2, (0,))
    assert [column.to_pylist() for column in read_split(scan, split).columns] == [[1, 2], [7, 7]]
    none = Scan(files, (), (), "t", PLAIN)
    assert read_split(none, split).num_rows == 2


def test_a_large_file_of_text_is_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    with path.open("wb") as file:
        file.truncate(TEXT_BYTES_MAX + 1)
    for form in (Text(), Json()):
        found = scan_reason(Scan((file_of(path),), (), (), "t", form))
        assert found is not None
        assert "16 MiB" in found.why


def test_a_table_of_much_text_is_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("a")
    file = file_of(path)
    many = tuple(
        replace(file, size_bytes=TEXT_BYTES_MAX) for _ in range(TABLE_BYTES_MAX // TEXT_BYTES_MAX + 1)
    )
    found = scan_reason(Scan(many, (), (), "t", Text()))
    assert found is not None
    assert "too many to check" in found.why


def test_a_doubt_is_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(b'a,1\n"b""",2\n')
    columns = (Column(1, "s", STRING, nullable=True), Column(2, "n", LONG, nullable=True))
    scan = Scan((file_of(path),), columns, NAMES, "t", PLAIN)
    reads: list[object] = []
    parse = csv_lines.parse

    def counting(*arguments: Any) -> Any:
        reads.append(arguments)
        return parse(*arguments)

    monkeypatch.setattr(csv_lines, "parse", counting)
    first = scan_reason(scan)
    assert first is not None
    assert "quote" in first.why
    assert scan_reason(scan) == first
    assert len(reads) == 1
    path.write_bytes(b"a,1\nb,2\n\n")
    assert scan_reason(replace(scan, files=(file_of(path),))) is None
