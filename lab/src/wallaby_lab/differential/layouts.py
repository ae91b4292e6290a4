"""Other ways in which Spark may run a query, and raise another error.

A sum of long decimals that overflows is ARITHMETIC_OVERFLOW or NUMERIC_VALUE_OUT_OF_RANGE, depending on whether code
was generated and on the number of tasks; of two errors in a query, the first one that is evaluated is raised. A row
with an error may not be evaluated at all: other conditions skip parts of files, and without generated code a join that
finds nothing reads nothing. Whatever Spark raises in one of these ways is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
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


def spark_raises(spark: SparkSession, run: Callable[[], pa.Table], actual: QueryOutcome) -> bool:
    """Does Spark raise this error in one of the ways of running a query?"""
    for layout in LAYOUTS:
        with configured(spark, layout):
            if outcome(run) == actual:
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
