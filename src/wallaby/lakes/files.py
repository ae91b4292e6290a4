"""The files of tables: their paths on a file system of the hosts, and which fields belong to which columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as sparks

from wallaby.errors import UnsupportedTableError
from wallaby.lakes.snapshot import SnapshotFile
from wallaby.lakes.stored import by_id

CATALOG: Final = "Read the table through Spark's catalog, with the jars of its format."
_FILE: Final = "file"


def local_path(address: str) -> str:
    """The path of an address. Escapes in the address are not decoded.

    Raises:
        UnsupportedTableError: it is not on a file system of the hosts.
    """
    scheme = urlsplit(address).scheme
    if scheme not in ("", _FILE):
        raise UnsupportedTableError(
            f"{address} is not on a file system of the hosts, so it cannot be read by its path.",
            fix=CATALOG,
            path=address,
        )
    if not scheme:
        return str(Path(address).absolute())
    return "/" + address.removeprefix(f"{_FILE}:").lstrip("/")


def grouped_by_id(
    columns: Sequence[sparks.StructField], files: Sequence[SnapshotFile]
) -> dict[tuple[sparks.StructField | None, ...], list[SnapshotFile]]:
    """Group files by the fields that the columns of a table have in them, as their footers say.

    Raises:
        UnsupportedTableError: a file is gone, or its fields cannot be told.
    """
    groups: dict[tuple[sparks.StructField | None, ...], list[SnapshotFile]] = defaultdict(list)
    for file in files:
        groups[by_id(columns, _footer(file.path), file.path)].append(file)
    return dict(groups)


def _footer(path: str) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except FileNotFoundError as error:
        raise UnsupportedTableError(
            f"The file {path} of the table does not exist any more.",
            fix="Choose a version that has not expired.",
            path=path,
        ) from error
    except pa.ArrowInvalid as error:
        raise UnsupportedTableError(
            f"{path} cannot be read as Parquet: {error}.", fix=CATALOG, path=path
        ) from error
