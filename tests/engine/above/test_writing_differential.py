"""Every way to write beside every kind of column: what readers find is what they find in what Spark wrote.

One case writes the same rows twice, through the TaskManagers and by Spark alone, and compares folders, schemas, and the
rows that Spark, DuckDB and pyarrow read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter
from tests.engine.above.test_writing import TYPES, files, is_clean, listed, read
from tests.engine.conftest import on_spark

from wallaby.engine import Engine
from wallaby.errors import WriteError

__all__ = ["files"]

#: Columns that can name partitions, with NULL in each and with texts that are hard to name.
PARTS = """
    id % 3 whole, cast(id % 2 as tinyint) tiny, nullif(id % 4, 3) maybe, id % 2 = 0 flag,
    cast(id % 5 / 4 as decimal(6, 2)) money, date_add(date'1969-12-30', cast(id % 4 as int)) day,
    timestamp_micros(id % 3 * 1500000) moment, cast(timestamp_micros(id % 3 * 1500000) as timestamp_ntz) local,
    element_at(array('a b', 'x=y', '50%', '', cast(null as string), 'é/ü', '..', 'a:b'), cast(id % 8 + 1 as int)) text,
    cast(id % 3 as float) / 4 single
"""


@dataclass(frozen=True)
class Case:
    """A way to write rows of a view to a path."""

    name: str
    query: str
    by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    conf: tuple[tuple[str, str], ...] = ()
    #: Writes that come first, in this mode.
    first: str | None = None
    mode: str = "error"
    #: Does Spark write it, from rows that are handed over?
    left: bool = False


ALL = "select * from everything"
CASES = (
    Case("every type", ALL),
    Case("no rows", ALL + " where id < 0"),
    Case("no rows of partitions", ALL + " where id < 0", by=("flag",)),
    Case("one row", ALL + " where id = 7"),
    Case("whole and day", ALL, by=("whole", "day")),
    Case("nulls and tiny", ALL, by=("maybe", "tiny")),
    Case("money and flag", ALL, by=("money", "flag")),
    Case("moment", ALL, by=("moment",)),
    Case("local", ALL, by=("local",)),
    Case("single", ALL, by=("single",)),
    Case("odd texts", ALL, by=("text",)),
    Case("the first columns", "select id, tiny, whole from everything", by=("id",)),
    Case("few records", ALL, options=(("maxRecordsPerFile", "3"),)),
    Case("few records of partitions", ALL, by=("flag",), options=(("maxRecordsPerFile", "3"),)),
    Case("any number of records", ALL, by=("flag",), options=(("maxRecordsPerFile", "-1"),)),
    Case("lz4_raw", ALL, options=(("compression", "lz4_raw"),)),
    Case("append", ALL, first="error", mode="append"),
    Case("append to partitions", ALL, by=("whole",), first="error", mode="append"),
    Case("overwrite", ALL + " where id < 5", first="error", mode="overwrite"),
    Case(
        "overwrite partitions by others",
        ALL + " where id < 3",
        by=("whole", "flag"),
        first="error",
        mode="overwrite",
    ),
    Case(
        "dynamic",
        ALL + " where whole = 1",
        by=("whole", "maybe"),
        conf=(("spark.sql.sources.partitionOverwriteMode", "dynamic"),),
        first="error",
        mode="overwrite",
    ),
    Case("ignore", ALL, first="error", mode="ignore"),
    Case("in another zone", ALL, by=("moment",), conf=(("spark.sql.session.timeZone", "Asia/Kolkata"),)),
    Case(
        "int96",
        "select id, moment, numbers from everything",
        conf=(("spark.sql.parquet.outputTimestampType", "INT96"),),
    ),
    Case("a zone of its own", ALL, by=("moment",), options=(("timeZone", "Asia/Kolkata"),), left=True),
    Case("names in capitals", "select id ID, text `Te xt`, pair from everything"),
    Case("sorted", "select * from everything sort by id desc", by=("flag",)),
)


@pytest.fixture(scope="module")
def everything(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("everything") / "in")
    parts = spark.sql(f"select id other, {PARTS} from range(20)")
    rows = spark.sql(TYPES).drop(*parts.columns)
    on_spark(spark, lambda: rows.join(parts, rows.id == parts.other).coalesce(1).write.parquet(path))
    table = spark.read.parquet(path)
    table.createOrReplaceTempView("everything")


def write(spark: SparkSession, case: Case, path: Path) -> None:
    for key, value in case.conf:
        spark.conf.set(key, value)
    try:
        for mode in (case.first, case.mode):
            if mode is not None:
                query = case.query if mode == case.mode else ALL
                writer(spark.sql(query), case).mode(mode).parquet(str(path))
    finally:
        for key, _ in case.conf:
            spark.conf.set(key, "UTC") if "Zone" in key else spark.conf.unset(key)
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def writer(df: DataFrame, case: Case) -> DataFrameWriter:
    return df.write.partitionBy(*case.by).options(**dict(case.options))


def folders(path: Path) -> set[str]:
    return {str(file.parent.relative_to(path)) for file in listed(path)}


def arrow_rows(path: Path) -> list[str]:
    partitioning = ds.partitioning(flavor="hive")
    table = ds.dataset(str(path), format="parquet", partitioning=partitioning).to_table()
    return sorted(map(repr, table.select(sorted(table.column_names)).to_pylist()))


def duck_rows(path: Path) -> list[str]:
    files = [str(file) for file in listed(path) if file.suffix == ".parquet"]
    if not files:
        return []
    # A connection of its own: whatever else this process tests may have left the module's one in use
    with duckdb.connect() as connection:
        relation = connection.read_parquet(files, hive_partitioning=False)
        return sorted(
            map(repr, relation.select(*sorted(f'"{name}"' for name in relation.columns)).fetchall())
        )


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_readers_find_what_spark_writes(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    ours, sparks = tmp_path / "ours", tmp_path / "sparks"
    write(spark, case, ours)
    on_spark(spark, lambda: write(spark, case, sparks))
    writes = (case.first is not None) + (case.mode != "ignore")
    assert len(files) == (0 if case.left else writes), "the TaskManagers wrote"
    assert folders(ours) == folders(sparks)
    assert is_clean(ours)
    if any(file.suffix == ".parquet" for file in listed(sparks)):
        assert spark.read.parquet(str(ours)).schema == spark.read.parquet(str(sparks)).schema
        assert read(spark, ours) == read(spark, sparks)
    assert arrow_rows(ours) == arrow_rows(sparks)
    assert duck_rows(ours) == duck_rows(sparks)


def statements(name: str) -> list[str]:
    """SQL that writes tables of the catalog in every way."""
    return [
        f"create table {name} (v bigint, t string, d date, p int) using parquet partitioned by (d, p)",
        f"insert into {name} select id, text, day, cast(whole as int) from everything",
        f"insert into {name} (p, d, t, v) select cast(tiny as int), day, 'x', id from everything",
        f"insert overwrite {name} partition (d = '1970-01-01', p) select id, text, cast(whole as int) from everything",
        f"insert overwrite {name} partition (d = '1500-01-01', p = 1) select id, text from everything where id < 0",
        f"insert into {name} partition (d = '2020-02-02', p = 2) select id, text from everything where id < 4",
        f"insert overwrite {name} partition (d = '2020-02-02', p = 2) if not exists select 1L, text from everything",
        f"create table {name}_copy using parquet as select * from {name}",
        f"insert overwrite {name}_copy select * from {name} where v < 10",
    ]


@pytest.mark.usefixtures("everything")
def test_tables_of_the_catalog_end_as_spark_ends_them(
    above: Engine, files: list[int], spark: SparkSession
) -> None:
    spark.conf.set("spark.sql.statistics.size.autoUpdate.enabled", "true")
    found: dict[str, list[Any]] = {}
    try:
        for name, run in (("ours", _directly), ("sparks", on_spark)):
            said = []
            for statement in statements(name):
                run(spark, partial(spark.sql, statement))
                table = statement.split()[2] if "create" in statement else name
                said.append(on_spark(spark, partial(state_of, spark, table)))
            found[name] = said
        assert found["ours"] == found["sparks"]
        assert len(files) == 7, "all but the one that has nothing to do"
        for name in ("ours", "sparks"):
            detail = spark.sql(f"describe extended {name}_copy").where("col_name = 'Statistics'").collect()
            assert int(detail[0].data_type.split()[0]) > 0, "its size is known"
    finally:
        spark.conf.unset("spark.sql.statistics.size.autoUpdate.enabled")
        for name in ("ours", "sparks", "ours_copy", "sparks_copy"):
            spark.sql(f"drop table if exists {name}")


def _directly(_: SparkSession, action: Callable[[], Any]) -> Any:
    return action()


def state_of(spark: SparkSession, table: str) -> tuple[list[str], list[str]]:
    """The rows and the partitions of a table."""
    rows = sorted(row.j for row in spark.table(table).selectExpr("to_json(struct(*)) j").collect())
    partitions = (
        [] if "copy" in table else [row[0] for row in spark.sql(f"show partitions {table}").collect()]
    )
    return rows, sorted(partitions)


@pytest.mark.usefixtures("everything")
def test_what_cannot_be_written_says_so_and_changes_nothing(
    above: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    rows, path = spark.sql("select id, text from everything"), tmp_path / "t"
    rows.write.parquet(str(path))
    (tmp_path / "file").write_text("not a folder")
    before = listed(tmp_path)
    spark.sql(f"create table shaped (id bigint, text string) using parquet location '{path}'")
    try:
        refused: list[tuple[Callable[[], Any], type[Exception], str]] = [
            (lambda: rows.write.parquet(str(path)), AnalysisException, "PATH_ALREADY_EXISTS"),
            (lambda: spark.sql("insert overwrite shaped select * from shaped"), AnalysisException, ""),
            (lambda: spark.sql("insert into shaped select id from everything"), AnalysisException, ""),
            (lambda: rows.selectExpr("text", "id").write.insertInto("shaped"), PySparkException, ""),
            (
                lambda: rows.selectExpr("id", "id ID").write.parquet(str(tmp_path / "n")),
                AnalysisException,
                "ALREADY",
            ),
            (lambda: rows.write.mode("append").parquet(str(tmp_path / "file")), Exception, ""),
            (
                lambda: rows.write.partitionBy("id", "text").parquet(str(tmp_path / "n")),
                AnalysisException,
                "",
            ),
        ]
        for action, error, words in refused:
            with pytest.raises(error, match=words or None):
                action()
            assert [file for file in listed(tmp_path) if file.is_file()] == before
    finally:
        spark.sql("drop table if exists shaped")
    assert len(files) == 1
    spark.read.parquet(str(path)).where("id < 5").write.mode("overwrite").parquet(str(path))
    assert len(read(spark, path)) == 5, "the rows that a query reads are there until it has ended"
    rows.write.mode("overwrite").parquet(str(tmp_path / "file"))
    assert len(read(spark, tmp_path / "file")) == 20, "a file that is in the way is overwritten, as on Spark"


@pytest.mark.usefixtures("everything")
def test_a_partition_whose_name_is_too_long_says_so_and_changes_nothing(
    above: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    spark.sql("select id, 'x' p from everything").write.partitionBy("p").parquet(str(path))
    before = listed(tmp_path)
    long = spark.sql("select id, repeat('é', 130) p from everything")
    for mode in ("append", "overwrite"):
        with pytest.raises(WriteError, match="too long") as caught:
            long.write.mode(mode).partitionBy("p").parquet(str(path))
        assert "shorter values" in caught.value.fix
        assert listed(tmp_path) == before


@pytest.mark.usefixtures("everything")
def test_a_disk_that_is_full_leaves_the_table_as_it_was(
    above: Engine, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    spark.sql(ALL).write.parquet(str(path))
    before = listed(tmp_path)
    rename = Path.rename

    def full(self: Path, target: Path) -> Path:
        if "_new" in str(target):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    for mode in ("append", "overwrite"):
        with pytest.raises(WriteError, match="No space left"):
            spark.sql(ALL).write.mode(mode).parquet(str(path))
        assert listed(tmp_path) == before
    assert not list(tmp_path.glob("**/.*.wallaby*"))
