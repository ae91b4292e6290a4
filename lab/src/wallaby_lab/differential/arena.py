"""Run one query on both engines: write and register tables, compare answers, and report how it ran."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from wallaby.config.settings import Settings
from wallaby.engine import Engine
from wallaby_lab.differential.generated.schemas import RandomTable
from wallaby_lab.differential.layouts import spark_raises
from wallaby_lab.differential.outcome import QueryOutcome, difference, engines_outcome, outcome

#: The queries are tiny: compiling and adapting would take longer than running them.
QUICK: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # One task for all files of a table.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "1",
}
#: For a JVM that lives for minutes: optimizing code that runs a few times takes longer than running it.
QUICK_JVM: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
}
#: How many rows of a table are tried alone, to find which errors occur.
_ROWS_ALONE_MAX: Final = 30
#: Queries with more rows are not run on Spark.
ROWS_MAX: Final = 200_000
#: Why a query was left to Spark after it had begun.
IN_DOUBT: Final = "a value was in doubt, and Spark ran the query after all"
_LOCAL: Final = "local rows need no engine"
_DEFECT: Final = "please report it"
Rows = tuple[tuple[Any, ...], ...]
_NUMBERED: Final = re.compile(r"#\d+L?|\b\d+\b")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of a query: `how` is native, leaf, spark, local (Catalyst itself has the answer), large or invalid.

    Large answers, of joins without keys, are not compared: Spark's driver would not hold them.
    """

    how: str
    different: str = ""
    raised: bool = False
    reasons: tuple[str, ...] = ()


class ComparisonArena:
    """A session with an engine, and the present tables."""

    def __init__(self, spark: SparkSession, engine: Engine, directory: Path) -> None:
        self._spark = spark
        self._engine = engine
        self._directory = directory
        self._written = 0
        self._tables: tuple[RandomTable, ...] = ()
        #: The engine's original settings, while others are in effect.
        self._before: Settings | None = None

    def use(
        self,
        tables: Sequence[RandomTable],
        settings: Mapping[str, str],
        planning: Mapping[str, int] | None = None,
    ) -> None:
        """Write and register tables, under some settings of Spark and of the engine's planning."""
        if planning:
            self._before = self._before or self._engine.settings
            self._engine.settings = replace(self._engine.settings, **planning)  # type: ignore[arg-type]  # no dict of all
        self._tables = tuple(tables)
        self._write(self._tables)
        for key, value in settings.items():
            self._spark.conf.set(key, value)

    def _write(self, tables: Sequence[RandomTable]) -> None:
        """Write tables, replacing earlier ones."""
        before = self._directory / str(self._written)
        self._written += 1
        place = self._directory / str(self._written)
        for table in tables:
            table.write(place / table.name, files=1 + len(table.rows) // 20)
            # With its schema, or Spark would run a job to find it.
            reader = self._spark.read.schema(table.ddl)
            reader.parquet(str(place / table.name)).createOrReplaceTempView(table.name)
        shutil.rmtree(before, ignore_errors=True)

    def leave(self) -> None:
        """Restore the engine's settings."""
        if self._before is not None:
            self._engine.settings, self._before = self._before, None

    def ask(self, query: str, order: Sequence[str] = ()) -> Comparison:
        """Run a query on both engines and compare."""
        try:
            df = self._spark.sql(query)
        except AnalysisException as error:
            return Comparison("invalid", reasons=(_first_line(error),))
        result, ran = engines_outcome(self._engine, df)
        if result.table is not None and result.table.num_rows > ROWS_MAX:
            return Comparison("large")
        if result.in_doubt:
            return Comparison("spark", result.own_error, result.table is None, (IN_DOUBT,))
        planned = () if ran and ran.is_wholly_native else tuple(self._engine.fallback_reasons(df))
        how = how_planned(planned)
        if how in ("local", "spark"):  # it is Spark's answer already
            different = next((reason for reason in planned if _DEFECT in reason), "") or result.own_error
            return Comparison(how, different, result.table is None, without_numbers(planned))
        expected = outcome(df.toArrow)
        different = difference(result, expected, order=order)
        if different and self.may_raise(lambda: self._spark.sql(query).toArrow(), result, expected):
            different = ""
        return Comparison(how, different, expected.table is None, without_numbers(planned))

    def may_raise(self, run: Callable[[], pa.Table], actual: QueryOutcome, expected: QueryOutcome) -> bool:
        """Is the outcome an error that Spark, which had another outcome, raises too if it runs the query otherwise?"""
        if not actual.is_sparks_error:
            return False
        if spark_raises(self._spark, run, actual):
            return True
        return expected.is_sparks_error and self._raised_in_another_order(run, actual)

    def _raised_in_another_order(self, run: Callable[[], pa.Table], actual: QueryOutcome) -> bool:
        """Does Spark raise the same error if the rows of its tables come in another order, or for a single row?

        If two rows have an error, the first one that is evaluated decides. Tables and joins have no order, and tasks
        that read different parts of a table run concurrently.
        """
        ordered = [
            [replace(table, rows=order(table.rows)) for table in self._tables]
            for order in (_backwards, _from_the_middle)
        ]
        try:
            for tables in (*ordered, *self._with_one_row_of_one()):
                self._write(tables)
                if outcome(run) == actual:
                    return True
        finally:
            self._write(self._tables)
        return False

    def _with_one_row_of_one(self) -> Iterator[list[RandomTable]]:
        for table in self._tables:
            for row in table.rows[:_ROWS_ALONE_MAX]:
                yield [replace(one, rows=(row,)) if one is table else one for one in self._tables]


def _backwards(rows: Rows) -> Rows:
    return rows[::-1]


def _from_the_middle(rows: Rows) -> Rows:
    half = len(rows) // 2
    return rows[half:] + rows[:half]


def how_planned(reasons: Sequence[str]) -> str:
    """How a query runs that has these reasons not to run natively."""
    if not reasons:
        return "native"
    if any(_LOCAL in reason for reason in reasons):
        return "local"
    return "leaf" if all(reason.startswith("Spark leaf ") for reason in reasons) else "spark"


def without_numbers(reasons: Sequence[str]) -> tuple[str, ...]:
    """Reasons that differ in numbers only are the same."""
    return tuple(_NUMBERED.sub("", reason) for reason in reasons)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")
