"""Nested columns in and out: fields by name, missing ones, slices, sizes, and the labels of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trees import map_of

from wallaby.batches.checksum import checksum
from wallaby.batches.sizes import value_bytes
from wallaby.relations.types import INTEGER, LONG, STRING, DataType, array, struct
from wallaby.sql.types import arrow_type
from wallaby.tables.nested_columns import conformed, labelled, leaf_columns

POINT = pa.struct([("Y", pa.string()), ("x", pa.int32()), ("z", pa.float64())])
FILE = pa.struct([("p", pa.list_(POINT)), ("m", pa.map_(pa.string(), POINT)), ("other", pa.int64())])
WANTED = struct(m=map_of(STRING, struct(x=INTEGER, w=LONG)), P=array(struct(y=STRING)))
ROWS = [
    {"p": [{"Y": "a", "x": 1, "z": 0.5}, None], "m": [("k", {"Y": "b", "x": 2, "z": None})], "other": 1},
    None,
    {"p": None, "m": None, "other": 2},
    {"p": [], "m": [], "other": 3},
    {
        "p": [{"Y": None, "x": 3, "z": 1.5}],
        "m": [("k", None), ("k", {"Y": "", "x": 4, "z": 2.5})],
        "other": 4,
    },
]
CONFORMED: list[dict[str, Any] | None] = [
    {"f0": [{"f0": "k", "f1": {"f0": 2, "f1": None}}], "f1": [{"f0": "a"}, None]},
    None,
    {"f0": None, "f1": None},
    {"f0": [], "f1": []},
    {"f0": [{"f0": "k", "f1": None}, {"f0": "k", "f1": {"f0": 4, "f1": None}}], "f1": [{"f0": None}]},
]


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_a_column_has_the_wanted_fields_under_their_places(begin: int) -> None:
    made = conformed(pa.array(ROWS, FILE).slice(begin), WANTED)
    made.validate(full=True)
    assert made.type == arrow_type(WANTED)
    assert made.to_pylist() == CONFORMED[begin:]


def test_large_lists_become_lists() -> None:
    found = pa.array([["a", None], None], pa.large_list(pa.large_string()))
    assert conformed(found, array(STRING)).to_pylist() == [["a", None], None]


def test_only_what_is_needed_of_a_file_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"before": [1] * 5, "s": pa.array(ROWS, FILE)}), tmp_path / "f.parquet")
    metadata = pq.read_metadata(tmp_path / "f.parquet")
    paths = [metadata.schema.column(place).path for place in leaf_columns(metadata, "s", WANTED)]
    assert paths == ["s.m.key_value.key", "s.m.key_value.value.x", "s.p.list.element.Y"]


@pytest.mark.parametrize("begin", [0, 2])
def test_a_result_has_the_users_names_and_flags(begin: int) -> None:
    user = pa.struct(
        [
            pa.field(
                "m",
                pa.map_(
                    pa.string(), pa.struct([pa.field("x", pa.int32(), nullable=False), ("x", pa.int64())])
                ),
                nullable=False,
            ),
            pa.field(
                "l", pa.list_(pa.field("element", pa.struct([("`", pa.large_string())]), nullable=False))
            ),
        ]
    )
    made = labelled(pa.array(CONFORMED, arrow_type(WANTED)).slice(begin), user)
    assert str(made.type) == str(user)
    assert made.field("l").to_pylist()[-1] == [{"`": None}]
    assert made.is_null().to_pylist() == [row is None for row in CONFORMED[begin:]]


@pytest.mark.parametrize("type_", [WANTED, array(LONG), array(array(STRING)), map_of(STRING, INTEGER)])
def test_size_and_checksum_are_the_same_wherever_a_slice_lies(type_: DataType) -> None:
    values: dict[str, list[object]] = {
        str(WANTED): list(CONFORMED),
        str(array(LONG)): [[1, None], None, [], [2]],
        str(array(array(STRING))): [[["a"], None], None, [["é", None]], []],
        str(map_of(STRING, INTEGER)): [[("a", 1)], None, [], [("b", None)]],
    }
    rows = values[str(type_)]
    kind = arrow_type(type_)
    whole = pa.array(rows * 3, kind)
    slices = [whole.slice(len(rows), len(rows)), pa.array(rows, kind)]
    batches = [pa.record_batch([part], names=["c"]) for part in slices]
    assert len({value_bytes([batch]) for batch in batches}) == 1
    assert len({checksum([[batch]]) for batch in batches}) == 1
