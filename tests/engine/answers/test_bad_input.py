"""Bad input: missing, damaged, replaced and mismatched files end in Spark's error or ours, never in a wrong row."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from tests.engine.outcome import outcome
from tests.engine.test_ends import until

from wallaby.engine import Engine
from wallaby.errors import CorruptFileError, SourceChangedError

ROWS = 3000
SCHEMA = "k long, v string"


def write(path: Path, first: int = 0, **columns: pa.Array) -> Path:
    numbers = range(first, first + ROWS)
    table = pa.table({"k": pa.array(numbers), "v": [f"row {n}" for n in numbers], **columns})
    pq.write_table(table, path, row_group_size=500)
    return path


def table(spark: SparkSession, directory: Path) -> DataFrame:
    """With a schema, so that Spark does not look at the files before they are read."""
    return spark.read.schema(SCHEMA).parquet(str(directory)).agg(F.count("*"), F.sum("k"), F.max("v"))


def test_a_file_that_is_gone_is_an_error(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    gone = write(tmp_path / "b.parquet", ROWS)
    df = table(spark, tmp_path)
    assert engine.collect(df) == df.collect()
    df = table(spark, tmp_path)
    gone.unlink()
    with pytest.raises(PySparkException) as error:
        engine.collect(df)
    assert isinstance(error.value, SourceChangedError)
    assert error.value.getCondition() == "FAILED_READ_FILE.FILE_NOT_EXIST"
    assert error.value.getSqlState() == "KD001"
    assert error.value.getMessageParameters() == {"path": f"file://{gone}"}


def footer_of_garbage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-600] + bytes(random.Random(1).randbytes(592)) + content[-8:])


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3000])


def text(path: Path) -> None:
    path.write_text("This is no Parquet file at all, but long enough to be one.")


def pages_of_garbage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:200] + random.Random(2).randbytes(2000) + content[2200:])


@pytest.mark.parametrize("damage", [footer_of_garbage, cut_short, text, pages_of_garbage])
def test_a_damaged_file_is_an_error(
    engine: Engine, spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    write(tmp_path / "a.parquet")
    damage(write(tmp_path / "b.parquet", ROWS))
    df = table(spark, tmp_path)
    assert outcome(df.collect) == "FAILED_READ_FILE.NO_HINT"
    assert outcome(lambda: engine.collect(df)) == "FAILED_READ_FILE.NO_HINT"


def test_spark_says_what_is_wrong_with_a_damaged_file(
    engine: Engine, spark: SparkSession, tmp_path: Path, setting: Callable[[str, str], None]
) -> None:
    pages_of_garbage(write(tmp_path / "b.parquet", ROWS))
    df = table(spark, tmp_path)
    with pytest.raises(CorruptFileError) as own:
        engine.collect(df)
    assert own.value.getMessageParameters() == {"path": f"file://{tmp_path}/b.parquet"}
    assert isinstance(own.value, Py4JJavaError), "as Spark's is"
    setting("sparkErrors", "true")
    with pytest.raises(Py4JJavaError, match=r"SparkException: \[FAILED_READ_FILE\.NO_HINT") as sparks:
        engine.collect(df)
    assert not isinstance(sparks.value, CorruptFileError)


def not_utf_8(directory: Path, rows: int) -> Path:
    """Text columns, plain and in lists, of which the last value is no text."""
    values = [*(b"row %d" % n for n in range(rows - 1)), b"\xff\xfe is none"]
    text = pa.Array.from_buffers(pa.string(), rows, pa.array(values).buffers())
    lists = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), text)
    directory.mkdir()
    pq.write_table(pa.table({"k": list(range(rows)), "s": text, "l": lists}), directory / "a.parquet")
    return directory


@pytest.mark.parametrize("rows", [3, 100_000], ids=["read by Arrow", "read by Polars"])
def test_text_that_is_not_utf_8_leaves_the_query_to_spark_and_breaks_no_other(
    engine: Engine, spark: SparkSession, tmp_path: Path, rows: int
) -> None:
    source = spark.read.parquet(str(not_utf_8(tmp_path / "t", rows)))
    last = f"k = {rows - 1}"
    for df in (
        source.where(last).select("s", "l"),
        source.where(last).select(F.upper("s"), F.length("s")),
        source.agg(F.max("s"), F.max(F.length(F.col("l")[0])), F.count_distinct("s")),
    ):
        assert engine.fallback_reasons(df) == []
        assert engine.collect(df) == df.collect()
    for _ in range(4):  # on all threads of all workers
        result = engine.run(spark.sql("select n_regionkey, max(upper(n_name)) from nation group by 1"))
        assert len(result.rows()) == 5
        assert result.native


def test_an_empty_file_is_passed_over_as_spark_passes_over_it(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").touch()
    df = table(spark, tmp_path)
    assert engine.collect(df)[0][0] == ROWS == df.collect()[0][0]


def test_damage_in_any_place_never_gives_rows_that_spark_does_not_give(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """Without checksums some damage goes unseen, by Spark too: then both see the same."""
    sound = write(tmp_path / "sound.parquet").read_bytes()
    choose = random.Random(3)
    failed = 0
    for number in range(8):
        directory = tmp_path / f"{number}"
        directory.mkdir()
        content = bytearray(sound)
        for _ in range(choose.choice((1, 30))):
            content[choose.randrange(4, len(sound))] ^= 1 << choose.randrange(8)
        (directory / "a.parquet").write_bytes(content)
        df = table(spark, directory)
        found = outcome(partial(engine.collect, df))
        if found == "FAILED_READ_FILE.NO_HINT":
            failed += 1
        else:
            assert found == outcome(df.collect)
    assert failed >= 2, "the damage must have been some"


def replaced_while_it_runs(spark: SparkSession, engine: Engine, directory: Path) -> None:
    """Files are read in the order of their names; the last is replaced when the first have been."""
    many = pa.table({"k": list(range(300)), "v": ["x"] * 300})
    for number in range(6):
        pq.write_table(many, directory / f"{number}.parquet", row_group_size=1)
    df = spark.read.schema(SCHEMA).parquet(str(directory)).groupBy("v").agg(F.sum("k"))
    result = engine.run(df)
    until(lambda: engine._parts.gcs.status(result._collected.query).commits > 5)
    other = directory / "other"
    pq.write_table(pa.table({"k": [10**6] * 300, "v": ["x"] * 300}), other, row_group_size=1)
    other.replace(directory / "5.parquet")
    result.rows()


def test_a_file_that_is_replaced_while_the_query_runs_is_an_error(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(SourceChangedError, match="was changed after the query was planned"):
        replaced_while_it_runs(spark, engine, tmp_path)


MISMATCHES: dict[str, dict[str, pa.Array]] = {
    "a column is text": {"k": pa.array(["x"] * ROWS)},
    "a column is narrower": {"k": pa.array(range(ROWS), pa.int32())},
    "a column is a double": {"k": pa.array([0.5] * ROWS)},
    "a column is nested": {"v": pa.array([["a"]] * ROWS)},
    "there is one more": {"more": pa.array([1] * ROWS)},
    "names differ in case": {"K": pa.array(range(ROWS))},
}


@pytest.mark.parametrize("case", [*MISMATCHES, "a column is missing"])
def test_files_that_do_not_have_the_schema_are_read_as_spark_reads_them(
    engine: Engine, spark: SparkSession, tmp_path: Path, case: str
) -> None:
    write(tmp_path / "a.parquet")
    if case == "a column is missing":
        pq.write_table(pa.table({"v": ["x"] * 10}), tmp_path / "b.parquet")
    else:
        write(tmp_path / "b.parquet", **MISMATCHES[case])
    df = table(spark, tmp_path)
    assert outcome(lambda: engine.collect(df)) == outcome(df.collect)


def test_a_leaf_over_a_bad_file_gives_what_spark_gives(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.json"
    rows.write_text('{"k": 1}\n{"k": \n')
    lenient = spark.read.schema("k long").json(str(rows)).groupBy("k").count()
    strict = spark.read.schema("k long").option("mode", "FAILFAST").json(str(rows)).groupBy("k").count()
    for df in (lenient, strict):
        assert engine._plan(df).leaves
        assert outcome(partial(engine.collect, df)) == outcome(df.collect)
    rows.unlink()
    assert outcome(lambda: engine.collect(lenient)) == "FAILED_READ_FILE.FILE_NOT_EXIST"


def test_the_files_of_a_leaf_are_never_read_after_a_change(
    engine: Engine, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's process that writes to our directory must not change an answer."""
    df = spark.createDataFrame([(n,) for n in range(5)], "n int").groupBy("n").count()
    submit = engine._parts.runner._submit

    def submit_after_damage(*arguments: object, **named: object) -> object:
        for path in engine._parts.runner.leaf_directory.make().parent.glob("*/part-*.parquet"):
            path.write_bytes(path.read_bytes() + b"PAR1")
        return submit(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(engine._parts.runner, "_submit", submit_after_damage)
    with pytest.raises((SourceChangedError, CorruptFileError)):
        engine.collect(df)
