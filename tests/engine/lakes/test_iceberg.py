"""Iceberg tables by path: the rows of a snapshot, read by the TaskManagers, or a refusal that says what to do.

`pyiceberg` makes the tables, with a catalog that is a file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engine.lakes.test_delta import expected, rows

from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError, MissingPackageError, UnsupportedTableError

pytest.importorskip("pyiceberg", reason="the extra wallaby[pyiceberg] is not installed")
sql = pytest.importorskip("pyiceberg.catalog.sql", reason="pyiceberg's catalog for tests needs SQLAlchemy")
types = pytest.importorskip("pyiceberg.types")

#: What pyiceberg says of files that it writes for a table, while it reads them again.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    made = sql.SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/ware house"
    )
    made.create_namespace("db")
    yield made
    made.close()


def made(catalog: Any, *tables: pa.Table, name: str = "db.t", **given: Any) -> Any:
    table = catalog.create_table(name, schema=given.pop("schema", tables[0].schema), **given)
    for each in tables:
        table.append(each)
    return table


def test_every_kind_of_value_is_read(engine: Engine, spark: SparkSession, catalog: Any) -> None:
    ids = range(300)
    rows_made = pa.table(
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
            "here": pa.array(
                [datetime(2024, 1, 1, 0, 0, i % 60, i) for i in ids],  # noqa: DTZ001 - it has none
                pa.timestamp("us"),
            ),
            "a": [[i, None] for i in ids],
            "o": [{"x": i, "y": f"y{i}"} for i in ids],
        }
    )
    table = made(catalog, rows_made)
    df = engine.read_iceberg(table)
    assert df.columns == rows_made.column_names
    assert len(rows(engine, df)) == 300
    flat = [name for name in rows_made.column_names if name not in ("o", "z", "at", "f")]
    assert rows(engine, df.select(flat)) == expected(rows_made.select(flat))
    assert engine.count(df.where("o.x > 150 and at is not null")) == 149
    by_file = engine.read_iceberg(table.metadata_location.removeprefix("file://"))
    assert rows(engine, by_file.select(flat)) == rows(engine, df.select(flat))


def test_each_snapshot_has_its_rows_and_its_columns(
    engine: Engine, spark: SparkSession, catalog: Any
) -> None:
    table = made(catalog, pa.table({"id": [0], "k": ["a"]}), pa.table({"id": [1], "k": ["b"]}))
    first, second = (entry.snapshot_id for entry in table.history())
    table.manage_snapshots().create_tag(first, "begin").create_branch(first, "side").commit()
    with table.update_schema() as change:
        change.add_column("new", types.StringType())
    table.overwrite(pa.table({"id": [2], "k": ["c"], "new": ["x"]}), "id = 0")
    now = [(1, "b", None), (2, "c", "x")]
    assert sorted(map(tuple, engine.collect(engine.read_iceberg(table)))) == now
    assert rows(engine, engine.read_iceberg(table)) == expected(
        pa.table({"id": [1, 2], "k": ["b", "c"], "new": [None, "x"]})
    )
    assert rows(engine, engine.read_iceberg(table, second)) == expected(
        pa.table({"id": [0, 1], "k": ["a", "b"]})
    )
    assert rows(engine, engine.read_iceberg(table, "begin")) == ["Row(id=0, k='a')"]
    assert rows(engine, engine.read_iceberg(table, "side")) == ["Row(id=0, k='a', new=None)"]
    for unknown in (7, "nothing"):
        with pytest.raises(InvalidArgumentError, match="no "):
            engine.read_iceberg(table, unknown)


def test_columns_are_found_by_their_ids(engine: Engine, spark: SparkSession, catalog: Any) -> None:
    """Renamed, exchanged, made again, and made wider: no value turns up in another column."""
    before = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "a": ["a1", "a2"],
            "b": ["b1", "b2"],
            "gone": ["no", "no"],
            "o": [{"x": 1, "y": 2}, None],
        }
    )
    table = made(catalog, before)
    with table.update_schema() as change:
        change.rename_column("a", "c")
    with table.update_schema() as change:
        change.rename_column("b", "a")
    with table.update_schema() as change:
        change.rename_column("c", "b")
        change.delete_column("gone")
        change.update_column("id", types.LongType())
        change.rename_column("o.x", "was_x")
    with table.update_schema() as change:
        change.add_column("gone", types.StringType())
        change.add_column(("o", "x"), types.LongType())
    inner = pa.struct([("was_x", pa.int64()), ("y", pa.int64()), ("x", pa.int64())])
    values = {
        "id": pa.array([2**40]),
        "b": ["a3"],
        "a": ["b3"],
        "o": pa.array([{"was_x": 5, "y": 6, "x": 7}], inner),
        "gone": ["yes"],
    }
    names = [field.name for field in table.schema().fields]
    table.append(pa.table({name: values[name] for name in names}))
    df = engine.read_iceberg(table)
    found = sorted((row.asDict(recursive=True) for row in engine.collect(df)), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "b": "a1", "a": "b1", "o": {"was_x": 1, "y": 2, "x": None}, "gone": None},
        {"id": 2, "b": "a2", "a": "b2", "o": None, "gone": None},
        {"id": 2**40, "b": "a3", "a": "b3", "o": {"was_x": 5, "y": 6, "x": 7}, "gone": "yes"},
    ]
    arrow = table.scan().to_arrow().select(["id", "a", "b", "gone"])
    assert rows(engine, df.select("id", "a", "b", "gone")) == expected(arrow)


def test_partitioned_tables_are_read_whatever_divides_them(
    engine: Engine, spark: SparkSession, catalog: Any
) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    days = pa.array([i % 3 for i in range(40)], pa.int32()).cast(pa.date32())
    words = [["a b", "c=d/e", None, ""][i % 4] for i in range(40)]
    parted = pa.table({"id": list(range(40)), "w": words, "d": days})
    fields: list[Any] = [(3, 1000, IdentityTransform(), "d"), (2, 1001, IdentityTransform(), "w")]
    spec = PartitionSpec(*(PartitionField(*each) for each in fields))
    schema = types_of(("id", types.LongType()), ("w", types.StringType()), ("d", types.DateType()))
    df = engine.read_iceberg(made(catalog, parted, schema=schema, partition_spec=spec))
    assert rows(engine, df) == expected(parted)
    assert rows(engine, df.where("w = 'c=d/e'").select("id")) == expected(
        pa.table({"id": list(range(1, 40, 4))})
    )


def types_of(*columns: tuple[str, Any]) -> Any:
    from pyiceberg.schema import Schema

    return Schema(
        *(
            types.NestedField(number, name, kind, required=False)
            for number, (name, kind) in enumerate(columns, 1)
        )
    )


def test_a_table_is_found_by_its_folder(
    engine: Engine, spark: SparkSession, catalog: Any, tmp_path: Path
) -> None:
    """As tables of Hadoop's catalog are; where nobody says which metadata is current, nobody guesses."""
    table = made(catalog, pa.table({"id": [1]}))
    folder = Path(table.location().removeprefix("file://"))
    with pytest.raises(InvalidArgumentError, match="which of its metadata is current") as caught:
        engine.read_iceberg(folder)
    assert "metadata.json" in caught.value.fix
    (folder / "metadata" / "version-hint.text").write_text(Path(table.metadata_location).name)
    assert rows(engine, engine.read_iceberg(folder)) == ["Row(id=1)"]
    with pytest.raises(InvalidArgumentError):
        engine.read_iceberg(tmp_path / "nothing")


def test_a_table_without_rows_has_its_columns(engine: Engine, spark: SparkSession, catalog: Any) -> None:
    schema = types_of(("id", types.LongType()), ("s", types.StringType()))
    df = engine.read_iceberg(catalog.create_table("db.empty", schema=schema))
    assert (df.columns, engine.collect(df)) == (["id", "s"], [])


def test_what_cannot_be_read_exactly_is_refused(
    engine: Engine, spark: SparkSession, catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(catalog, pa.table({"id": [1]}))

    def planned(**facts: Any) -> None:
        file = next(iter(type(table.scan()).plan_files(table.scan()))).file
        about = {
            name: getattr(file, name)
            for name in ("file_path", "file_size_in_bytes", "file_format", "key_metadata")
        }
        deletes = facts.pop("deletes", set())
        task = SimpleNamespace(file=SimpleNamespace(**{**about, **facts}), delete_files=deletes)
        monkeypatch.setattr(type(table.scan()), "plan_files", lambda _: [task])

    refused: Sequence[tuple[dict[str, Any], str]] = (
        ({"deletes": {"d"}}, "deleted by a delete file"),
        ({"file_format": SimpleNamespace(value="ORC")}, "only Parquet"),
        ({"key_metadata": b"k"}, "encrypted"),
        ({"file_path": "s3://bucket/f.parquet"}, "not on a file system of the hosts"),
        ({"file_path": "/nothing.parquet"}, "does not exist any more"),
    )
    for facts, why in refused:
        with monkeypatch.context():
            planned(**facts)
            with pytest.raises(UnsupportedTableError, match=why) as caught:
                engine.read_iceberg(table)
            assert caught.value.fix
        monkeypatch.undo()
    odd = catalog.create_table("db.odd", schema=types_of(("u", types.UUIDType())))
    with pytest.raises(UnsupportedTableError, match="type uuid"):
        engine.read_iceberg(odd)


def test_a_missing_package_is_named(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(MissingPackageError, match=r"wallaby\[pyiceberg\]") as caught:
        engine.read_iceberg(tmp_path)
    assert caught.value.fields["extra"] == "pyiceberg"
