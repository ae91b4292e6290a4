"""Convert known rows with PySpark's own conversions, and let Ctrl-C end the wait for a single query."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conversion import ArrowTableToRowsConversion

from wallaby.catalyst.spark_versions import arrow_schema
from wallaby.tables.nested_columns import labelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_BINARY_AS_BYTES = "spark.sql.execution.pyspark.binaryAsBytes"


class Answered(ClassicDataFrame):
    """A DataFrame whose rows are known, so that PySpark's own conversions apply to them."""

    def __init__(self, df: DataFrame, batches: list[pa.RecordBatch]) -> None:
        super().__init__(df._jdf, df.sparkSession)
        self._known = batches

    def collect(self) -> list[Row]:
        """The known rows, as PySpark's `collect` returns them."""
        table = pa.Table.from_batches(self._known, arrow_schema(self.schema))
        as_bytes = self.sparkSession.conf.get(_BINARY_AS_BYTES, "true") == "true"
        rows: list[Any] = ArrowTableToRowsConversion.convert(table, self.schema, binary_as_bytes=as_bytes)
        return rows

    def _collect_as_arrow(
        self,
        split_batches: bool = False,
        empty_list_if_zero_records: bool = True,
        prefers_large_var_types: bool = False,
    ) -> list[pa.RecordBatch]:
        schema = arrow_schema(self.schema, large=prefers_large_var_types)
        if not self._known and not empty_list_if_zero_records:
            return [pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)]
        found = [as_spark_names(batch, schema) for batch in self._known]
        if not split_batches:
            return found
        return [
            pa.RecordBatch.from_arrays([pa.concat_arrays([a]) for a in batch.columns], schema=batch.schema)
            for batch in found
        ]


def as_spark_names(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the names and types that Spark gives the result."""
    pairs = zip(batch.columns, schema, strict=True)
    return pa.RecordBatch.from_arrays(
        [labelled(column, field.type) for column, field in pairs], schema=schema
    )


@contextmanager
def only_this_query_is_interrupted() -> Iterator[None]:
    """Let Ctrl-C only interrupt here: PySpark's handler would cancel all jobs, including the TaskManagers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
