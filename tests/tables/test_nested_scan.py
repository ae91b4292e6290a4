"""Nested columns of files: rows are filtered while they are read, also beside texts that Arrow has as views."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.trees import literal, parquet, scan_of, test

from wallaby.plan.physical import Split
from wallaby.relations.relation import Filter, Input
from wallaby.relations.types import STRING, array
from wallaby.tables.footer import footer
from wallaby.tables.reading import planned_reading
from wallaby.tables.scan import read_split


@pytest.mark.parametrize("texts", [pa.string(), pa.string_view(), pa.large_string()])
@pytest.mark.parametrize("nested", [False, True])
def test_rows_are_filtered_while_they_are_read(tmp_path: Path, texts: pa.DataType, nested: bool) -> None:
    columns = {"t": pa.array(["a", "b", None, "a"], texts), "l": [["x"], None, [], ["y", None]]}
    file = parquet(tmp_path / "f.parquet", pa.table(columns), 3)
    wanted = (("t", STRING), ("l", array(STRING))) if nested else (("t", STRING),)
    scan = scan_of(file, *wanted)
    tree = Filter(Input(0, scan.columns), test("eq", scan.columns[0], literal("a", STRING)))
    groups = tuple(range(footer(file).num_row_groups))
    found = read_split(scan, Split(file, groups, 4, 100), (), planned_reading(scan, tree))
    assert found.column(0).to_pylist() == ["a", "a"]
    if nested:
        assert found.column(1).to_pylist() == [["x"], ["y", None]]
