"""Run in Spark's tasks: write a partition of a leaf's rows to one file that every TaskManager can read.

Rows come from Spark as Arrow batches and are written as row groups of some megabytes, so that a task needs memory for
only one of them, whatever the partition's size. Each attempt of a task has its own file name; only the names that
Spark's job returns are read, so a task that ran twice counts once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from wallaby.errors import HandOverError
from wallaby.relations.expression import Column
from wallaby.sql.types import column_name
from wallaby.tables.nested_columns import labelled, named_type

#: The schema of `write_part`'s result, for Spark.
ANSWER: Final = "path string"
#: The placeholder column of a leaf without needed columns, by which rows are counted.
COUNTED: Final = "counted"
_GROUP_BYTES: Final = 16 << 20
_GROUP_ROWS: Final = 1 << 17


def write_part(
    directory: str, columns: tuple[Column, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write a partition's batches; yields the name of the file, if there were rows."""
    fields = [pa.field(column_name(column.id), named_type(column.type)) for column in columns]
    schema = pa.schema(fields or [(COUNTED, pa.bool_())])
    path = Path(directory) / f"part-{_partition():05}-{uuid.uuid4().hex[:12]}.parquet"
    with _Part(path, schema) as part:
        for batch in batches:
            part.add(batch)
    if part.rows:
        yield pa.RecordBatch.from_pydict({"path": pa.array([str(path)], pa.string())})


class _Part:
    """A file that is created with its first row group."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._path = path
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with _failures_handed_on():
            try:
                if kind is None:
                    self._flush()
            finally:
                if self._writer is not None:
                    self._writer.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        with _failures_handed_on():
            self._waiting.append(self._checked(batch))
            self.rows += batch.num_rows
            size = sum(waiting.nbytes for waiting in self._waiting)
            if size >= _GROUP_BYTES or sum(waiting.num_rows for waiting in self._waiting) >= _GROUP_ROWS:
                self._flush()

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert rows to our names and types; Spark's differ in the label of time zones and the width of offsets."""
        pairs = zip(batch.columns, self._schema, strict=True)
        columns = [labelled(column, field.type) for column, field in pairs]
        made = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        made.validate(full=True)  # Spark's strings may be invalid UTF-8; ours must be valid
        return made

    def _flush(self) -> None:
        if not any(batch.num_rows for batch in self._waiting):
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self._schema)
        table = pa.Table.from_batches(self._waiting)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting.clear()


@contextmanager
def _failures_handed_on() -> Iterator[None]:
    """In this block, mark failures as ours, because they are not failures of the user's query."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise HandOverError(f"{type(error).__name__}: {error}") from error


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
