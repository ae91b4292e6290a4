"""Check Wallaby on the Spark version of this environment; `tools.run_versions` runs it in one environment for each.

One session and one engine run every step, and each compares with the same Spark. Usage: python -m tools.check_version
DATA RESULT: a folder with TPC-H data, and a file that gets the outcome of each step as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

import wallaby
from wallaby.engine import Engine
from wallaby_lab import tpch
from wallaby_lab.compare import require_same
from wallaby_lab.differential.arena import QUICK
from wallaby_lab.differential.entries import MODES, EntrySuite
from wallaby_lab.differential.generated.tables import register, write_tables
from wallaby_lab.differential.layouts import configured

#: Expressions of several families, each over unusual rows.
ENTRIES: Final = ("Upper", "DayOfMonth", "Add", "Cast", "Substring", "Sum")
GROUPED: Final = (
    "select o_custkey k, count(*) n, max(o_orderdate) d, sum(o_totalprice) t from orders group by o_custkey"
)
#: Every kind of value that PySpark converts.
KINDS: Final = """
    select n_nationkey k, count(*) n, max(n_name) s, max(cast(n_name as binary)) b, max(array(n_regionkey)) a,
           max(timestamp_seconds(n_nationkey)) t, max(date_add(date'2024-01-01', cast(n_nationkey as int))) d,
           sum(cast(n_nationkey as decimal(20, 4))) m, max(named_struct('x', n_name)) o
    from nation group by n_nationkey
"""


class VersionCheck:
    """The steps, over one enabled session."""

    def __init__(self, spark: SparkSession, engine: Engine, folder: Path) -> None:
        self._spark = spark
        self._engine = engine
        self._folder = folder

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The name of what each step shows, and the step."""
        yield "results", self.results
        yield "writes", self.plain_write
        yield "writes", self.partitioned_write
        yield "writes", self.table
        yield "Spark above", self.python_above
        yield "Spark above", self.cached
        yield "killed workers", self.kill
        yield "differential sample", self.differential
        for number in tpch.ORDERS:
            yield "TPC-H answers", partial(self.tpch, number)

    def results(self) -> None:
        """All forms of a result are PySpark's."""
        df = self._spark.sql(KINDS).orderBy("k")
        result = self._engine.run(df)
        require_same(result.arrow(), self._on_spark(df.toArrow))
        assert result.native
        assert result.rows() == self._on_spark(df.collect)
        assert str(result.pandas()) == str(self._on_spark(df.toPandas))

    def plain_write(self) -> None:
        """A Parquet table that the TaskManagers write."""
        self._written(lambda df, path: df.write.parquet(path))

    def partitioned_write(self) -> None:
        """A partitioned table, and one of its partitions overwritten."""

        def write(df: DataFrame, path: str) -> None:
            df.write.partitionBy("n").parquet(path)
            part = df.where("n = 10").limit(1_000)
            part.write.mode("overwrite").partitionBy("n").option("partitionOverwriteMode", "dynamic").parquet(
                path
            )

        self._written(write)

    def _written(self, write: Callable[[DataFrame, str], None]) -> None:
        df = self._spark.sql(GROUPED)
        ours, sparks = (str(Path(tempfile.mkdtemp(dir=self._folder)) / "table") for _ in range(2))
        write(df, ours)
        self._on_spark(lambda: write(df, sparks))
        found, expected = (self._on_spark(self._spark.read.parquet(path).toArrow) for path in (ours, sparks))
        require_same(found.select(expected.column_names), expected)
        assert found.num_rows > 0

    def table(self) -> None:
        """A table that SQL makes and fills."""
        self._spark.sql(f"create table made using parquet as {GROUPED}")
        self._spark.sql(f"insert into made {GROUPED}")
        expected: pa.Table = self._on_spark(lambda: self._spark.sql(f"{GROUPED} order by k").toArrow())
        found: pa.Table = self._on_spark(lambda: self._spark.sql("select * from made order by k").toArrow())
        assert found.num_rows == 2 * expected.num_rows
        require_same(found.take(list(range(0, found.num_rows, 2))), expected.cast(found.schema))

    def python_above(self) -> None:
        """A Python function of Spark's over rows that stay with the TaskManagers."""
        df = self._spark.sql(GROUPED)
        above = df.mapInArrow(lambda batches: batches, df.schema)
        require_same(self._on_spark_plan(above), self._on_spark(df.toArrow))

    def _on_spark_plan(self, df: DataFrame) -> pa.Table:
        text = df._jdf.queryExecution().executedPlan().toString()
        assert "Wallaby" in text, text
        return df.toArrow()

    def cached(self) -> None:
        """A cached table that Spark fills from the TaskManagers."""
        df = self._spark.sql(GROUPED).cache()
        try:
            assert df.count() == self._on_spark(self._spark.sql(GROUPED).count)
        finally:
            df.unpersist()

    def kill(self) -> None:
        """A query that loses a worker, once one of them has begun."""
        df = self._spark.sql(
            "select l_orderkey k, l_linenumber l, sum(l_quantity) q, max(l_comment) c from lineitem group by 1, 2"
        )
        result = self._engine.run(df)
        os.kill(self._engine.workers()[0].pid, signal.SIGKILL)
        require_same(result.arrow(), self._on_spark(df.toArrow))
        assert result.native
        assert result.stats.recoveries >= 1, "the loss must have been noticed by this query"

    def differential(self) -> None:
        """Expressions over unusual rows."""
        folder = self._folder / "unusual"
        folder.mkdir()
        write_tables(folder, 1)
        register(self._spark, folder)
        self._spark.conf.set(
            "spark.wallaby.enabled", "false"
        )  # each query is given to the engine, and to Spark
        try:
            with configured(self._spark, {**MODES[0], **QUICK}):
                tallies = EntrySuite(self._spark, self._engine, 1, print).run(ENTRIES, MODES[:1])
        finally:
            self._spark.conf.unset("spark.wallaby.enabled")
        assert [one for tally in tallies.values() for one in tally.differences] == []
        assert any(tally.compared for tally in tallies.values())

    def tpch(self, number: int) -> None:
        """Compare one query of TPC-H with Spark."""
        df = self._spark.sql(tpch.query(number))
        assert self._engine.fallback_reasons(df) == []
        result = self._engine.run(df)
        require_same(result.arrow(), self._on_spark(df.toArrow), order=tpch.ORDERS[number])
        assert result.native

    def _on_spark(self, act: Callable[[], Any]) -> Any:
        self._spark.conf.set("spark.wallaby.enabled", "false")
        try:
            return act()
        finally:
            self._spark.conf.unset("spark.wallaby.enabled")


def main(data: Path, result: Path) -> int:
    """Run every step, and write down how each ended; 1 if one failed."""
    outcomes: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = (
            SparkSession.builder.master("local[4]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        print(f"Spark {spark.version}, PySpark {pyspark.__version__}", flush=True)
        tpch.register(spark, data)
        engine = wallaby.enable(spark, workers=2, threads=1, attach_timeout=900, lease=15, spark_errors=False)
        spark.conf.set("spark.wallaby.below", "always")
        for part, step in VersionCheck(spark, engine, folder).steps():
            began, why = time.monotonic(), ""
            try:
                step()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome of this step
                why = f"{type(error).__name__}: {error}"
            outcomes.append({"part": part, "failed": why})
            print(f"{time.monotonic() - began:6.0f} s  {part}: {why or 'good'}", flush=True)
            result.write_text(json.dumps(outcomes), encoding="utf-8")
        wallaby.disable(spark)
        spark.stop()
    return int(any(outcome["failed"] for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
