"""A result: rows as they come in from the last stage, in whatever form the caller wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.conversion import ArrowTableToRowsConversion

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Row
    from pyspark.sql.types import StructType


class Result:
    """One run of one query. The rows can be taken once as a stream, or as often as wanted as a whole."""

    def __init__(
        self,
        schema: StructType,
        arrow_schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        cancel: Callable[[], None],
        native: bool,
    ) -> None:
        self.schema = schema
        #: Did the engine run it, or Spark?
        self.native = native
        self._arrow_schema = arrow_schema
        self._stream: Iterator[pa.RecordBatch] | None = batches
        self._cancel = cancel
        self._table: pa.Table | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they come in. Afterwards there is nothing left to take."""
        if self._table is not None:
            return iter(self._table.to_batches())
        if self._stream is None:
            raise RuntimeError("The rows of this result have been taken as a stream already.")
        stream, self._stream = self._stream, None
        return stream

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table, exactly as `DataFrame.toArrow` gives it."""
        if self._table is None:
            self._table = pa.Table.from_batches(list(self.batches()), self._arrow_schema)
        return self._table

    def rows(self) -> list[Row]:
        """All rows as PySpark rows, exactly as `DataFrame.collect` gives them."""
        rows: list[Any] = ArrowTableToRowsConversion.convert(self.arrow(), self.schema)
        return rows

    def pandas(self) -> pd.DataFrame:
        """All rows as a pandas data frame."""
        return self.arrow().to_pandas(date_as_object=True)

    def cancel(self) -> None:
        """End the query; whoever waits for its rows gets `QueryCancelledError`."""
        self._cancel()
