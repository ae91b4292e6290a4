"""Columns with ids: a file is read by names only where they lead to the same columns; and files without a time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.trees import parquet, scan_of

from wallaby.errors import SourceChangedError
from wallaby.relations.formats import FieldId, Parquet
from wallaby.relations.relation import ANY_TIME, DataFile
from wallaby.relations.types import LONG, STRING, array, struct
from wallaby.tables.footer import check_unchanged, footer
from wallaby.tables.tables import scan_reason, table_statistics


def numbered(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


@pytest.fixture
def file(tmp_path: Path) -> DataFile:
    inner = pa.list_(numbered("element", pa.struct([numbered("x", pa.int64(), 4)]), 3))
    schema = pa.schema(
        [numbered("id", pa.int64(), 1), numbered("l", inner, 2), pa.field("loose", pa.string())]
    )
    rows = pa.table({"id": [1], "l": [[{"x": 1}]], "loose": ["a"]}, schema=schema)
    return parquet(tmp_path / "t.parquet", rows, 1)


def reason(file: DataFile, *ids: FieldId) -> str | None:
    kinds = {"id": LONG, "l": array(struct(x=LONG)), "loose": STRING, "new": STRING}
    scan = scan_of(file, *((each.path[0], kinds[each.path[0]]) for each in ids if len(each.path) == 1))
    found = scan_reason(replace(scan, format=Parquet(ids)))
    return None if found is None else found.why


def an_id(number: int, *path: str, must: bool = False) -> FieldId:
    return FieldId(path, number, must)


def test_a_file_in_which_names_and_ids_say_the_same_is_read(file: DataFile) -> None:
    within = an_id(4, "l", "element", "x")
    assert reason(file, an_id(1, "id"), an_id(2, "l"), within, an_id(9, "new")) is None


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ([an_id(7, "id")], "has another column by the name id"),
        ([an_id(1, "new")], "the column new has the name id in"),
        ([an_id(9, "new", must=True)], "does not have the column new"),
        ([an_id(5, "loose")], "has another column by the name loose"),
        ([an_id(2, "l"), an_id(6, "l", "element", "x")], "has another column by the name l.element.x"),
        (
            [an_id(2, "l"), an_id(4, "l", "element", "y")],
            "the column l.element.y has the name l.element.x in",
        ),
    ],
)
def test_a_file_with_other_columns_by_these_names_is_not_read(
    file: DataFile, ids: list[FieldId], why: str
) -> None:
    assert why in (reason(file, *ids) or "")


def test_only_columns_that_are_read_matter(file: DataFile) -> None:
    scan = scan_of(file, ("id", LONG))
    assert scan_reason(replace(scan, format=Parquet((an_id(1, "id"), an_id(7, "l"))))) is None
    assert scan_reason(replace(scan, format=Parquet(renamed=("l",)))) is None
    found = scan_reason(replace(scan, format=Parquet(renamed=("id",))))
    assert found is not None
    assert "fields of the struct id have other names" in found.why


def test_statistics_are_found_by_the_format_of_their_scan(file: DataFile) -> None:
    scan = replace(scan_of(file, ("id", LONG)), format=Parquet((an_id(1, "id"),)))
    assert table_statistics(scan, 1 << 20).format == scan.format


def test_a_file_without_a_time_may_have_any_but_keeps_its_size(file: DataFile) -> None:
    timeless = replace(file, modified_ms=ANY_TIME)
    os.utime(file.path, (1_000_000_000, 1_000_000_000))
    assert footer(timeless).num_rows == 1
    with pytest.raises(SourceChangedError):
        check_unchanged(file)
    with pytest.raises(SourceChangedError):
        check_unchanged(replace(timeless, size_bytes=file.size_bytes + 1))
