"""Tables of Delta Lake by path: the rows of a version, read by the TaskManagers, or a refusal that says what to do.

Some tables are made by `deltalake`, and some by hand, as other writers make them: it does not write every feature.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from tests.engine.conftest import on_spark

from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError, MissingPackageError, UnsupportedTableError

deltalake = pytest.importorskip("deltalake", reason="the extra wallaby[deltalake] is not installed")

ODD = ["a b", "c=d/e", "%41", "ü", "", None, "50%", "x'y"]
#: A file by hand: its name, its rows, and the values of its partition.
File = tuple[str, pa.Table, dict[str, str | None]]


def rows(engine: Engine, df: DataFrame) -> list[Any]:
    """The rows of a query, all of which runs in the TaskManagers, and is what Spark says of the same DataFrame."""
    assert engine.fallback_reasons(df) == []
    ours = sorted(map(repr, engine.collect(df)))
    assert ours == sorted(map(repr, on_spark(df.sparkSession, df.collect)))
    return ours


def expected(table: pa.Table) -> list[str]:
    """Rows as Spark's print."""
    names = table.column_names
    return sorted(f"Row({', '.join(f'{name}={row[name]!r}' for name in names)})" for row in table.to_pylist())


def field(name: str, kind: Any = "long", physical: str | None = None, number: int = 0) -> dict[str, Any]:
    metadata = (
        {}
        if physical is None
        else {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
    )
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def table_by_hand(
    folder: Path,
    fields: Sequence[dict[str, Any]],
    files: Sequence[File],
    *,
    partitions: Sequence[str] = (),
    features: Sequence[str] = (),
    **configuration: str,
) -> Path:
    """A table of one version."""
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        names = {"readerFeatures": list(features), "writerFeatures": list(features)}
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **names}
    log: list[dict[str, Any]] = [
        {"protocol": protocol},
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
                "partitionColumns": list(partitions),
                "configuration": {f"delta.{key.replace('__', '.')}": v for key, v in configuration.items()},
                "createdTime": 0,
            }
        },
    ]
    for name, table, values in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)
        size = (folder / name).stat().st_size
        log.append(
            {
                "add": {
                    "path": quote(name),
                    "partitionValues": values,
                    "size": size,
                    "modificationTime": 0,
                    "dataChange": True,
                }
            }
        )
    (folder / "_delta_log").mkdir(parents=True)
    text = "\n".join(json.dumps(action) for action in log)
    (folder / "_delta_log" / f"{0:020}.json").write_text(text, encoding="utf-8")
    return folder


def kinds(count: int) -> pa.Table:
    """Every type that both have."""
    ids = range(count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "i": pa.array(ids, pa.int32()),
            "f": pa.array([i / 4 for i in ids], pa.float32()),
            "d": [i / 3 for i in ids],
            "m": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(12, 2)),
            "s": [None if i % 5 == 0 else f"s{i}" for i in ids],
            "z": pa.array([b"\xff%d" % i for i in ids], pa.binary()),
            "b": [i % 2 == 0 for i in ids],
            "t": pa.array([date(2024, 1, 1 + i % 28) for i in ids], pa.date32()),
            "at": pa.array(
                [datetime(2024, 1, 1, 0, 0, i % 60, i, tzinfo=UTC) for i in ids], pa.timestamp("us", "UTC")
            ),
            "a": [[i, None] for i in ids],
            "o": [{"x": i, "y": f"y{i}"} for i in ids],
        }
    )


def test_every_kind_of_value_is_read(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    table = kinds(200)
    deltalake.write_deltalake(tmp_path / "t", table)
    df = engine.read_delta(tmp_path / "t")
    assert df.columns == table.column_names
    assert len(rows(engine, df)) == 200
    flat = [name for name in table.column_names if name not in ("o", "z", "at", "f")]
    assert rows(engine, df.select(flat)) == expected(table.select(flat))
    assert engine.count(df.where("o.x > 150 and at is not null")) == 49


def test_each_version_has_its_rows(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(3):
        deltalake.write_deltalake(path, pa.table({"id": [number], "k": [number % 2]}), mode="append")
    deltalake.DeltaTable(path).delete("id = 1")
    deltalake.write_deltalake(
        path, pa.table({"id": [9], "k": [9], "new": ["x"]}), mode="append", schema_mode="merge"
    )
    deltalake.DeltaTable(path).optimize.compact()
    found = [sorted(row.id for row in engine.collect(engine.read_delta(path, n))) for n in range(6)]
    assert found == [[0], [0, 1], [0, 1, 2], [0, 2], [0, 2, 9], [0, 2, 9]]
    assert rows(engine, engine.read_delta(path)) == expected(
        pa.table({"id": [0, 2, 9], "k": [0, 0, 9], "new": [None, None, "x"]})
    )
    before, after = engine.read_delta(path, 2), engine.read_delta(path)
    joined = before.join(after, "id").select("id", after.new)
    assert rows(engine, joined) == expected(
        pa.table({"id": [0, 2], "new": pa.array([None, None], pa.string())})
    )
    deltalake.write_deltalake(path, pa.table({"id": [10], "k": [1], "new": ["y"]}), mode="append")
    assert engine.count(after) == 3, "a DataFrame stays that of its version"


def test_partitions_have_the_values_of_the_log(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    count = len(ODD) * 4
    table = pa.table(
        {
            "id": list(range(count)),
            "w": [ODD[i % len(ODD)] for i in range(count)],
            "d": pa.array([i % 3 or None for i in range(count)], pa.int32()).cast(pa.date32()),
        }
    )
    deltalake.write_deltalake(tmp_path / "t", table, partition_by=["w", "d"])
    df = engine.read_delta(tmp_path / "t")
    values = [None if text == "" else text for text in table["w"].to_pylist()]  # as Delta has it
    table = table.set_column(1, "w", pa.array(values, pa.string()))
    assert rows(engine, df) == expected(table)
    assert rows(engine, df.where("w = 'c=d/e'").select("id")) == expected(pa.table({"id": [1, 9, 17, 25]}))
    assert engine.count(df.where(col("w").isNull() & col("d").isNull())) == len(
        [1 for w, d in zip(values, table["d"].to_pylist(), strict=True) if w is None and d is None]
    )
    pruned = df.where("w > 'c' and id % 2 = 1 and d = date'1970-01-02'")
    assert rows(engine, pruned.select("id")) == sorted(
        map(repr, on_spark(spark, pruned.select("id").collect))
    )


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        ("integer", ["-7", None], [-7, None]),
        ("short", ["7", None], [7, None]),
        ("long", [str(2**62), None], [2**62, None]),
        ("double", ["1.5E-7", "NaN"], [1.5e-7, float("nan")]),
        ("float", ["0.1", "-0.0"], [0.10000000149011612, -0.0]),
        ("decimal(10,3)", ["-1.500", "12.000"], [Decimal("-1.500"), Decimal("12.000")]),
        ("boolean", ["true", "false"], [True, False]),
        ("date", ["1500-01-01", "9999-12-31"], [date(1500, 1, 1), date(9999, 12, 31)]),
    ],
)
def test_partitions_of_every_type(
    engine: Engine, spark: SparkSession, tmp_path: Path, kind: str, texts: list[str | None], values: list[Any]
) -> None:
    files = [(f"{at}.parquet", pa.table({"id": [at]}), {"p": text}) for at, text in enumerate(texts)]
    path = table_by_hand(tmp_path / "t", [field("id"), field("p", kind)], files, partitions=["p"])
    df = engine.read_delta(path)
    found = {row.id: row.p for row in engine.collect(df)}
    assert repr([found[0], found[1]]) == repr(values)
    assert rows(engine, df.where("p is not null").select("id", "p"))


INNER = [field("a", "long", "col-3", 3), field("b", "long", "col-4", 4)]
MAPPED = [
    field("id", "long", "col-1", 1),
    field("was s", {"type": "struct", "fields": INNER}, "col-2", 2),
    field("p", "string", "col-5", 5),
]


def mapped(folder: Path, mode: str, files: Sequence[File]) -> Path:
    return table_by_hand(
        folder, MAPPED, files, partitions=["p"], features=["columnMapping"], columnMapping__mode=mode
    )


def test_columns_have_the_names_that_the_log_gives_them(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """A file may have another column by the name that the table has now."""
    inner = pa.array([{"col-4": 20, "col-3": 10}])
    file = pa.table({"col-2": inner, "id": ["no"], "col-1": [1]})
    path = mapped(tmp_path / "t", "name", [("x/f.parquet", file, {"col-5": "v"})])
    df = engine.read_delta(path)
    assert df.columns == ["id", "was s", "p"]
    assert [row.asDict(recursive=True) for row in engine.collect(df)] == [
        {"id": 1, "was s": {"a": 10, "b": 20}, "p": "v"}
    ]
    assert rows(engine, df.select("id", "p")) == ["Row(id=1, p='v')"]


def test_columns_are_found_by_ids_in_each_file(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    def numbered(name: str, number: int, kind: pa.DataType) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = pa.struct([numbered("b", 3, pa.int64()), numbered("a", 4, pa.int64())])
    first = pa.schema([numbered("id", 2, inner), numbered("x", 1, pa.int64())])
    second = pa.schema([numbered("id", 1, pa.int64()), numbered("col-2", 9, pa.int64())])
    files: list[File] = [
        ("1.parquet", pa.table([[{"b": 10, "a": 20}], [1]], schema=first), {"col-5": "v"}),
        ("2.parquet", pa.table([[2], [7]], schema=second), {"col-5": None}),
    ]
    df = engine.read_delta(mapped(tmp_path / "t", "id", files))
    found = sorted((row.asDict(recursive=True) for row in engine.collect(df)), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "was s": {"a": 10, "b": 20}, "p": "v"},
        {"id": 2, "was s": None, "p": None},
    ]
    assert rows(engine, df.select("id", "p")) == ["Row(id=1, p='v')", "Row(id=2, p=None)"]


def test_a_wider_type_is_read_from_older_files(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    files: list[File] = [
        ("1.parquet", pa.table({"id": pa.array([1], pa.int32())}), {}),
        ("2.parquet", pa.table({"id": [2**40]}), {}),
    ]
    path = table_by_hand(tmp_path / "t", [field("id")], files, features=["typeWidening"])
    assert rows(engine, engine.read_delta(path)) == ["Row(id=1)", f"Row(id={2**40})"]


def test_a_table_without_files_has_its_columns(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    path = table_by_hand(tmp_path / "t", [field("id"), field("p", "string")], [], partitions=["p"])
    df = engine.read_delta(path)
    assert (df.columns, on_spark(spark, df.collect), engine.collect(df)) == (["id", "p"], [], [])


def test_what_cannot_be_read_exactly_is_refused(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    file: File = ("1.parquet", pa.table({"id": [1, 2, 3]}), {})
    unknown = table_by_hand(tmp_path / "u", [field("id")], [file], features=["catalogManaged"])
    with pytest.raises(UnsupportedTableError):
        engine.read_delta(unknown)
    moment: list[File] = [("1.parquet", pa.table({"id": [1]}), {"p": "2024-01-01 00:00:00"})]
    instants = table_by_hand(tmp_path / "i", [field("id"), field("p", "timestamp")], moment, partitions=["p"])
    assert [str(row.p) for row in engine.collect(engine.read_delta(instants))] == ["2024-01-01 00:00:00"]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        with pytest.raises(UnsupportedTableError, match="depend on the time zone"):
            engine.read_delta(instants)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    with pytest.raises(InvalidArgumentError, match="There is no table"):
        engine.read_delta(tmp_path / "nothing")
    with pytest.raises(InvalidArgumentError, match="no version 7"):
        engine.read_delta(instants, 7)
    with pytest.raises(UnsupportedTableError, match="not on a file system of the hosts"):
        engine.read_delta("s3://bucket/table")


def test_texts_of_a_fixed_length_are_refused_and_those_of_a_limited_one_are_read(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    file: File = ("1.parquet", pa.table({"c": ["a   "]}), {})
    for kind in ("char(4)", "varchar(4)"):
        noted = {**field("c", "string"), "metadata": {"__CHAR_VARCHAR_TYPE_STRING": kind}}
        path = table_by_hand(tmp_path / kind, [noted], [file])
        if kind == "varchar(4)":
            assert rows(engine, engine.read_delta(path)) == ["Row(c='a   ')"]
            continue
        with pytest.raises(UnsupportedTableError, match="fixed length"):
            engine.read_delta(path)


def test_deleted_rows_are_never_read(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    """The vector of rows 0 and 2, in the log itself, as the protocol of Delta has it."""
    file: File = ("1.parquet", pa.table({"id": [1, 2, 3]}), {})
    path = table_by_hand(tmp_path / "t", [field("id")], [file], features=["deletionVectors"])
    assert engine.count(engine.read_delta(path)) == 3
    log = path / "_delta_log" / f"{0:020}.json"
    *before, add = log.read_text(encoding="utf-8").splitlines()
    action = json.loads(add)
    action["add"]["deletionVector"] = inline_vector([0, 2])
    for stats, why in ((None, "cannot read"), ('{"numRecords":3}', "1 files .* deleted by deletion vectors")):
        action["add"]["stats"] = stats
        log.write_text("\n".join([*before, json.dumps(action)]), encoding="utf-8")
        with pytest.raises(UnsupportedTableError, match=why) as caught:
            engine.read_delta(path)
        assert "Spark's catalog" in caught.value.fix


def inline_vector(places: Sequence[int]) -> dict[str, Any]:
    """A deletion vector of a few rows: a bitmap in Roaring's format, in base 85 with Z85's letters."""
    values = b"".join(place.to_bytes(2, "little") for place in places)
    head = (12346).to_bytes(4, "little") + (1).to_bytes(4, "little")  # no runs; one container
    container = (0).to_bytes(2, "little") + (len(places) - 1).to_bytes(2, "little")
    offset = (16).to_bytes(4, "little")
    bitmap = head + container + offset + values
    data = (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + bitmap
    padded = data + bytes(-len(data) % 4)
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    text = ""
    for at in range(0, len(padded), 4):
        number = int.from_bytes(padded[at : at + 4], "big")
        text += "".join(letters[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(places),
    }


def test_a_missing_package_is_named(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingPackageError, match=r"wallaby\[deltalake\]") as caught:
        engine.read_delta(tmp_path)
    assert caught.value.fields["extra"] == "deltalake"
