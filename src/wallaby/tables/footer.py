"""Parquet footers, read only from files that have not changed since the query was planned.

A file with another size or time than at planning is an error, never a different answer. Footers of recently read files
are cached; they are small compared with the data, and all splits of a file need the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import accumulate

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from wallaby.batches import stopping
from wallaby.errors import CorruptFileError, SourceChangedError, SourceGoneError
from wallaby.errors.files import is_of_this_worker
from wallaby.relations.relation import ANY_TIME, DataFile
from wallaby.tables.file_systems import is_local, local_path, open_remote, remote_info


def check_unchanged(file: DataFile) -> None:
    """Raise if the file has changed since planning. A task or a planner that should stop is stopped here too."""
    stopping.check()
    try:
        unchanged = _is_as_listed(file) if is_local(file) else _is_as_listed_remotely(file)
    except FileNotFoundError as error:
        raise SourceGoneError(
            f"{file.path} no longer exists.",
            fix="Run the query again; in Spark, REFRESH TABLE first.",
            path=file.path,
        ) from error
    except OSError as error:
        raise SourceChangedError(
            f"{file.path} can no longer be opened: {error.strerror or error}.",
            fix="Run the query again; in Spark, REFRESH TABLE first.",
            path=file.path,
        ) from error
    if not unchanged:
        raise SourceChangedError(
            f"{file.path} was changed after the query was planned.",
            fix="Run the query again; in Spark, REFRESH TABLE first.",
            path=file.path,
        )


def _is_as_listed(file: DataFile) -> bool:
    found = local_path(file).stat()
    same_time = file.modified_ms in (ANY_TIME, found.st_mtime_ns // 1_000_000)
    return found.st_size == file.size_bytes and same_time


def _is_as_listed_remotely(file: DataFile) -> bool:
    """Compare times in whole seconds: remote storages give no more, although their listings may."""
    found = remote_info(file)
    if found.type is not fs.FileType.File or found.mtime_ns is None:
        raise FileNotFoundError("it does not exist")
    same_time = file.modified_ms == ANY_TIME or file.modified_ms // 1_000 == found.mtime_ns // 1_000_000_000
    return found.size == file.size_bytes and same_time


@contextmanager
def reading(file: DataFile) -> Iterator[None]:
    """Turn errors of the readers into ours, but not those about this worker: a full disk, a failed allocation."""
    try:
        yield
    except FileNotFoundError as error:
        check_unchanged(file)
        raise SourceGoneError(f"{file.path} does not exist.", path=file.path) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError) as error:
        if is_of_this_worker(error):
            raise
        check_unchanged(file)
        if isinstance(error, PermissionError):
            what = f"{file.path} may not be read: permission denied."
            fix = "Give the user under which Spark's executors run the right to read it."
        else:
            what = f"{file.path} cannot be read: it is damaged, or has another format than expected."
            fix = "Check the file with another reader; write it again if it is damaged."
        raise CorruptFileError(what, fix=fix, path=file.path, detail=str(error).partition("\n")[0]) from error


@lru_cache(maxsize=1024)
def footer(file: DataFile) -> pq.FileMetaData:
    """The footer of an unchanged file."""
    check_unchanged(file)
    with reading(file):
        if is_local(file):
            return pq.read_metadata(local_path(file))
        with closing(open_remote(file)) as opened:
            return pq.read_metadata(opened)


@lru_cache(maxsize=1024)
def first_rows_of_groups(file: DataFile) -> tuple[int, ...]:
    """The number of the first row of each row group in its file, and at the end the number of all rows."""
    metadata = footer(file)
    lengths = (metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    return tuple(accumulate(lengths, initial=0))


def has_only_nulls(chunk: pq.ColumnChunkMetaData) -> bool:
    """Are all values of a column in a row group NULL, according to its footer?"""
    found = chunk.statistics
    return found is not None and found.has_null_count and found.null_count == chunk.num_values


def bounds_of(chunk: pq.ColumnChunkMetaData) -> tuple[object, object] | None:
    """The bounds of a column in a row group; None if they are unknown, or Python has no such value."""
    found = chunk.statistics
    if found is None or not found.has_min_max:
        return None
    try:
        return found.min, found.max
    except (OverflowError, ValueError):
        return None  # dates before the year 1 or after 9999, text that is not UTF-8
