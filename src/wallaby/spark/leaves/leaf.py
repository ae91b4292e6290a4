"""Run a Spark leaf: an ordinary Spark job whose tasks write their rows where every TaskManager can read them.

The driver sees only file names, never rows. The job ends before the query begins, so a leaf is complete or does not
exist: if the query loses workers, the same files are read again, and no row is ever computed twice. The job has its own
job group, by which it is cancelled; like every job it needs a slot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions

from wallaby.catalyst.jvm import plan_physically, query_of
from wallaby.errors import HandOverError
from wallaby.plan.leaf import SparkLeaf
from wallaby.relations.relation import DataFile, Scan
from wallaby.spark.leaves.part import ANSWER, COUNTED, write_part

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from wallaby.relations.expression import Column

_HAND_OVER: Final = re.compile(r"HandOverError: (.*)")


def prepare(query: DataFrame, leaf: SparkLeaf, scan: Scan, directory: Path) -> DataFrame:
    """The job of a leaf, as a DataFrame of file names: planned by Spark, but not run.

    Raises:
        HandOverError: Spark cannot plan this part of the query separately.
    """
    try:
        job = _rows(query, leaf, scan).mapInArrow(_writer(str(directory), scan.columns), ANSWER)
        plan_physically(job)
    except (PySparkException, Py4JError) as error:
        raise HandOverError(f"Spark does not plan {leaf}: {str(error).partition(chr(10))[0]}") from error
    return job


def _rows(query: DataFrame, leaf: SparkLeaf, scan: Scan) -> DataFrame:
    """The columns that a leaf has to hand over, under the names of the scan."""
    # Two columns may have the same name, but their positions differ.
    placed = query_of(query, leaf.path).toDF(*(f"p{at}" for at in range(len(leaf.outputs))))
    wanted = [
        functions.col(f"p{leaf.outputs.index(column.id)}").alias(name)
        for column, name in zip(scan.columns, scan.names, strict=True)
    ]
    return placed.select(wanted or [functions.lit(True).alias(COUNTED)])


def run(job: DataFrame, group: str, leaf: SparkLeaf) -> tuple[DataFile, ...]:
    """Run a leaf's job on this thread; returns the files that it has written, in the order of its partitions.

    Raises:
        HandOverError: the rows were computed but could not be handed over.
        PySparkException, Py4JJavaError: Spark's own error, from a user's function or data, as PySpark raises it.
    """
    context: SparkContext = job.sparkSession.sparkContext
    context.setJobGroup(group, f"wallaby: {leaf}", interruptOnCancel=True)
    try:
        paths = [row.path for row in job.collect()]
    except (PySparkException, Py4JJavaError) as error:
        found = _HAND_OVER.search(str(error))
        if found is None:
            raise
        raise HandOverError(found[1]) from error
    return tuple(_file(path) for path in sorted(paths))


def cancel(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group, and those that are about to start."""
    jsc: Any = context._jsc
    if jsc is not None:
        jsc.sc().cancelJobGroupAndFutureJobs(group)


def _writer(
    directory: str, columns: tuple[Column, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_part(directory, columns, batches)

    return write


def _file(path: str) -> DataFile:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise HandOverError(f"{path} was written by an executor and does not exist on the driver") from error
    return DataFile(path, status.st_size, status.st_mtime_ns // 1_000_000)
