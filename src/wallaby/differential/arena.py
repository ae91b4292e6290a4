"""One query by both engines: tables are written and registered, answers compared, and how it ran is told."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from wallaby.differential.outcome import difference, outcome
from wallaby.differential.schemas import RandomTable
from wallaby.engine import Engine

#: The queries are tiny: what Spark would compile and adapt takes longer than they do.
QUICK: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
#: More rows than that are not asked of Spark.
ROWS_MAX: Final = 200_000
_LOCAL: Final = "local rows need no engine"
_NUMBERED: Final = re.compile(r"#\d+L?|\b\d+\b")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a query: `how` is native, leaf, spark, local (Catalyst itself has the answer), large or invalid.

    Large answers, of joins without keys, are not compared: Spark's driver would not hold them.
    """

    how: str
    different: str = ""
    raised: bool = False
    reasons: tuple[str, ...] = ()


class Arena:
    """A session with an engine, and the tables of the moment."""

    def __init__(self, spark: SparkSession, engine: Engine, directory: Path) -> None:
        self._spark = spark
        self._engine = engine
        self._directory = directory
        self._written = 0

    def use(self, tables: Sequence[RandomTable], settings: Mapping[str, str]) -> None:
        """Write tables and make them known, under some settings."""
        before = self._directory / str(self._written)
        self._written += 1
        place = self._directory / str(self._written)
        for table in tables:
            table.write(place / table.name, files=1 + len(table.rows) // 20)
            self._spark.read.parquet(str(place / table.name)).createOrReplaceTempView(table.name)
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        shutil.rmtree(before, ignore_errors=True)

    def ask(self, query: str, order: Sequence[str] = ()) -> Verdict:
        """Run a query by both and compare."""
        try:
            df = self._spark.sql(query)
        except AnalysisException as error:
            return Verdict("invalid", reasons=(_first_line(error),))
        planned = self._engine.fallback_reasons(df)
        result = outcome(lambda: self._engine.to_arrow(df))
        if result.table is not None and result.table.num_rows > ROWS_MAX:
            return Verdict("large")
        expected = outcome(df.toArrow)
        if any(_LOCAL in reason for reason in planned):
            how = "local"
        elif planned:
            how = "leaf" if all(reason.startswith("Spark leaf ") for reason in planned) else "spark"
        else:
            how = "native"
        return Verdict(
            how,
            difference(result, expected, order=order),
            expected.table is None,
            tuple(_NUMBERED.sub("", reason) for reason in planned),
        )


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")
