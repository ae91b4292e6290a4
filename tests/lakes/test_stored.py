"""Which field of a file has the values of which column: by ids, whatever the names are; or by the table's own names."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as sparks

from wallaby.errors import UnsupportedTableError
from wallaby.lakes.snapshot import _word, nullable
from wallaby.lakes.stored import ID, by_id, by_name

LONG = sparks.LongType()


def column(name: str, number: int, type_: sparks.DataType = LONG) -> sparks.StructField:
    return sparks.StructField(name, type_, nullable=False, metadata={ID: number})


def field(name: str, number: int | None, type_: pa.DataType | None = None) -> pa.Field:
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(name, type_ or pa.int64(), metadata=metadata)


def stored(table: list[sparks.StructField], file: list[pa.Field]) -> list[tuple[str, str] | None]:
    found = by_id(table, pa.schema(file), "f")
    return [None if each is None else (each.name, each.dataType.simpleString()) for each in found]


def test_a_column_is_found_by_its_id_under_whatever_name() -> None:
    file = [field("b", 1), field("a", 2), field("gone", 9)]
    assert stored([column("a", 1), column("b", 2)], file) == [("b", "bigint"), ("a", "bigint")]


def test_a_column_that_was_made_again_is_not_the_one_that_was_dropped() -> None:
    assert stored([column("a", 3)], [field("a", 1)]) == [None]


def test_an_id_of_zero_is_an_id() -> None:
    assert stored([column("a", 0)], [field("x", 0)]) == [("x", "bigint")]


def test_fields_of_structs_in_everything_are_found_by_their_ids() -> None:
    inner = sparks.StructType([column("x", 4), column("new", 5)])
    table = [
        column("s", 1, inner),
        column("l", 2, sparks.ArrayType(inner)),
        column("m", 3, sparks.MapType(sparks.StringType(), inner)),
    ]
    struct = pa.struct([field("was_x", 4), field("new", 6)])
    file = [
        field("s", 1, struct),
        field("l", 2, pa.list_(field("element", 7, struct))),
        field("m", 3, pa.map_(pa.string(), struct)),
    ]
    inside = "struct<was_x:bigint,_wallaby_absent_5:bigint>"
    assert stored(table, file) == [
        ("s", inside),
        ("l", f"array<{inside}>"),
        ("m", f"map<string,{inside}>"),
    ]


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ([field("a", None)], "have no ids"),
        ([field("a", 1), field("A", 2)], "only by their case"),
        ([field("a", 1, pa.struct([field("y", 3)]))], "none of the fields"),
    ],
)
def test_files_that_cannot_be_told_are_refused(file: list[pa.Field], why: str) -> None:
    with pytest.raises(UnsupportedTableError, match=why) as caught:
        stored([column("a", 1, sparks.StructType([column("x", 2)]))], file)
    assert caught.value.fix
    assert caught.value.fields["path"] == "f"


def test_a_file_without_columns_has_none() -> None:
    assert stored([column("a", 1)], []) == [None]


def test_names_that_a_table_gives_hold_for_fields_of_structs_too() -> None:
    inner = sparks.StructType([sparks.StructField("x", LONG, metadata={"name": "c-2"})])
    whole = sparks.StructField("s", sparks.ArrayType(inner), metadata={"name": "c-1"})
    found = by_name(whole, lambda each: each.metadata["name"])
    assert (found.name, found.dataType.simpleString()) == ("c-1", "array<struct<c-2:bigint>>")


def test_nothing_of_what_a_table_promises_is_believed() -> None:
    inner = sparks.StructType([sparks.StructField("x", LONG, nullable=False, metadata={"a": 1})])
    whole = sparks.ArrayType(sparks.MapType(LONG, inner, valueContainsNull=False), containsNull=False)
    expected = sparks.StructType([sparks.StructField("x", LONG)])
    assert nullable(whole) == sparks.ArrayType(sparks.MapType(LONG, expected))


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, ""),
        ("", "="),
        ("a=b", "=a=b"),
        (True, "=true"),
        (-7, "=-7"),
        (date(1969, 12, 31), "=-1"),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), "=-1"),  # noqa: DTZ001 - without a zone on purpose
        (datetime(1970, 1, 2, tzinfo=UTC), "=86400000000"),
        (Decimal("1E+3"), "=1000"),
        (Decimal("-0.10"), "=-0.10"),
        (float("-inf"), "=-Infinity"),
        (float("nan"), "=NaN"),
        (1e300, "=1e+300"),
        (b"\xff", "=/w=="),
    ],
)
def test_values_of_partitions_go_to_java_as_words(value: Any, word: str) -> None:
    assert _word(value) == word
