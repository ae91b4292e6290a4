"""Write one Parquet file as Spark would: its types, its names of nested fields, and its schema in the footer.

A file appears under its name only when it is complete, and never changes: it is written under another name, synced to
disk, and renamed. A writer that finds the file need not write it again, because the name identifies the content. In a
bucket, nobody sees the file before its write is published (`tables/objects/uploading.py`).
"""

from __future__ import annotations

import errno
import os
import secrets
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.batches.stopping import check
from wallaby.errors import WriteError
from wallaby.errors.files import FULL
from wallaby.relations.target import TimestampForm, WriteTarget
from wallaby.tables.file_systems import write_folder
from wallaby.tables.nested_columns import labelled
from wallaby.tables.objects.uploading import upload_file

#: The footer keys of Spark's own schema, and of the version that wrote the file.
SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
SPARK_VERSION = "org.apache.spark.version"
#: What to do if a file system says this.
_FIXES: Final = {
    **dict.fromkeys(FULL, "Free some space; then write again."),
    errno.ENAMETOOLONG: "Divide the table by shorter values: each is the name of a folder.",
}


class ParquetForm:
    """The format of the files of one target."""

    def __init__(self, target: WriteTarget) -> None:
        self._target = target
        self.schema = pa.ipc.read_schema(pa.py_buffer(b64decode(target.arrow_schema)))

    def write(self, name: str, groups: Iterable[pa.Table]) -> int:
        """Write a file of these row groups unless it exists; returns its size in bytes.

        A table has the columns of the file, under any names.

        Raises:
            WriteError: the file system refuses it.
        """
        try:
            if self._target.storage:
                folder = write_folder(self._target.storage, self._target.folder)
                return upload_file(folder, name, lambda upload: self._fill(upload, groups))
            path = Path(self._target.folder) / name
            if not path.exists():
                self._make(path, groups)
            return path.stat().st_size
        except OSError as error:
            raise cannot_write(self._target.folder, error) from error

    def _make(self, path: Path, groups: Iterable[pa.Table]) -> None:
        self._make_folder(path.parent)
        made = path.with_name(f"_{path.name}.{secrets.token_hex(8)}")
        try:
            with made.open("xb") as file:
                self._fill(file, groups)
                file.flush()
                os.fsync(file.fileno())
            made.rename(path)
        finally:
            made.unlink(missing_ok=True)

    def _make_folder(self, folder: Path) -> None:
        """Create the folder of a partition, but never the write's own folder: if that is gone, the write has ended."""
        inside = folder.relative_to(self._target.folder).parts
        if not inside:
            return
        root = os.open(self._target.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for depth in range(1, len(inside) + 1):
                with suppress(FileExistsError):
                    os.mkdir("/".join(inside[:depth]), dir_fd=root)
        finally:
            os.close(root)

    def _fill(self, file: object, groups: Iterable[pa.Table]) -> None:
        int96 = self._target.timestamps is TimestampForm.INT96
        with pq.ParquetWriter(
            file,
            self.schema,
            compression=self._target.codec,
            version="2.6",
            use_deprecated_int96_timestamps=int96,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
        ) as writer:
            for group in groups:
                check()
                writer.write_table(self._named(group), row_group_size=max(group.num_rows, 1))
            writer.add_key_value_metadata(
                {SPARK_SCHEMA: self._target.spark_schema, SPARK_VERSION: self._target.spark_version}
            )

    def _named(self, group: pa.Table) -> pa.Table:
        columns = [
            pa.chunked_array([labelled(chunk, field.type) for chunk in column.chunks], field.type)
            for column, field in zip(group.columns, self.schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


def cannot_write(folder: str, error: OSError) -> WriteError:
    """The error of a write that a file system refuses."""
    return WriteError(
        f"Cannot write files to {folder}: {error.strerror or error}.",
        fix=_FIXES.get(error.errno or 0, "Let the user of Spark's executors write there; then write again."),
    )
