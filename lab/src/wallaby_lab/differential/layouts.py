"""Other ways in which Spark may run a query: its condition of an error is not the same in all of them.

A sum of long decimals that overflows is ARITHMETIC_OVERFLOW or NUMERIC_VALUE_OUT_OF_RANGE, depending on whether code
was generated and on how many tasks there were; of two errors in a query, that one is raised that is met first. A row
with an error may not be met at all: parts of files are skipped by other conditions, and without generated code a join
that finds nothing reads nothing. Whatever Spark raises in one of these ways is as good as what it gave at first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from wallaby_lab.differential.outcome import QueryOutcome, outcome

_COMPILED: Final = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
_MANY_TASKS: Final = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.files.minPartitionNum": "3",
    "spark.sql.files.openCostInBytes": "4194304",
}
_WHOLE_FILES: Final = {"spark.sql.parquet.filterPushdown": "false"}
LAYOUTS: Final = (_COMPILED, _MANY_TASKS, {**_COMPILED, **_MANY_TASKS}, _WHOLE_FILES)


def spark_raises(spark: SparkSession, query: str, actual: QueryOutcome) -> bool:
    """Does Spark raise this very error of its own in some way of running the query?"""
    for layout in LAYOUTS:
        with configured(spark, layout):
            if outcome(lambda: spark.sql(query).toArrow()) == actual:
                return True
    return False


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A block under some settings."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, kept in before.items():
            if kept is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, kept)
