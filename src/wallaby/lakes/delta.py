"""Read a table of Delta Lake without Spark's jars: `deltalake` says which files a version has.

Delta's log has the values of partition columns, and the names or ids of the other columns in files. Nothing is taken
from the names of files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sparks

from wallaby.errors import InvalidArgumentError, MissingPackageError, UnsupportedTableError
from wallaby.lakes.files import CATALOG, grouped_by_id, local_path
from wallaby.lakes.snapshot import FileGroup, SnapshotColumn, SnapshotFile, dataframe, nullable
from wallaby.lakes.stored import by_name, with_ids

if TYPE_CHECKING:
    from deltalake import DeltaTable

_MODE: Final = "delta.columnMapping.mode"
_NO_MAPPING: Final = "none"
_BY_NAME: Final = "name"
_BY_ID: Final = "id"
_PHYSICAL: Final = "delta.columnMapping.physicalName"
_NUMBER: Final = "delta.columnMapping.id"
_VECTORS: Final = "deletionVectors"
#: The features of readers that are known here, or make no difference to the files of a table.
_FEATURES: Final = frozenset(
    {
        "columnMapping",
        _VECTORS,  # a file with one is refused
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
#: Spark's note on a column CHAR(n); that on a VARCHAR has other words.
_CHAR: Final = re.compile(r'"__CHAR_VARCHAR_TYPE_STRING": "[^"]*\bchar\(')
_ZONE: Final = "spark.sql.session.timeZone"
_UTC: Final = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "+00:00"})
#: Types of partition columns whose values are the same wherever they are read.
_PARTITIONED: Final = (
    sparks.StringType,
    sparks.BooleanType,
    sparks.IntegralType,
    sparks.FractionalType,
    sparks.DateType,
    sparks.TimestampNTZType,
)


def read_delta(spark: SparkSession, path: str | Path, version: int | None) -> DataFrame:
    """The rows of a version of a table; without `version`, of the latest.

    Raises:
        MissingPackageError: `deltalake` is not installed.
        InvalidArgumentError: there is no such table or version.
        UnsupportedTableError: the rows are not simply those of the version's files.
    """
    place = local_path(str(path))
    table = _table(place, version)
    with _errors_as_ours(place):
        _require_known(table, place)
        return _rows(spark, table, place)


def _rows(spark: SparkSession, table: DeltaTable, place: str) -> DataFrame:
    schema = sparks.StructType.fromJson(json.loads(table.schema().to_json()))
    names = table.metadata().partition_columns
    parts = [schema[name] for name in names]
    _require_same_everywhere(spark, parts)
    _require_no_padding(schema)
    rest = [field for field in schema.fields if field.name not in names]
    files = _files(table, place, names)
    if table.metadata().configuration.get(_MODE) == _BY_ID and files:
        groups = grouped_by_id([with_ids(field, _id) for field in rest], files)
    else:
        groups = {tuple(by_name(field, _physical) for field in rest): files}
    partitions = tuple(by_name(field, _physical) for field in parts)
    found: list[FileGroup] = []
    for stored, members in groups.items():
        fields = dict(zip([*rest, *parts], [*stored, *partitions], strict=True))
        columns = tuple(
            SnapshotColumn(field.name, nullable(field.dataType), fields[field]) for field in schema.fields
        )
        found.append(FileGroup(tuple(members), columns, partitions))
    return dataframe(spark, place, found)


@contextmanager
def _errors_as_ours(place: str) -> Iterator[None]:
    """In this block, refuse what `deltalake` cannot read."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except DeltaError as error:
        raise UnsupportedTableError(
            f"deltalake cannot read the table at {place}: {error}", fix=CATALOG, table=place
        ) from error


def _table(place: str, version: int | None) -> DeltaTable:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError as error:
        raise MissingPackageError(
            "Tables of Delta Lake are read by path with the package deltalake, which is not installed.",
            fix="Install it: pip install 'wallaby[deltalake]'.",
            extra="deltalake",
        ) from error
    try:
        return DeltaTable(place, version=version)
    except TableNotFoundError as error:
        raise InvalidArgumentError(
            f"There is no table of Delta Lake at {place}.", fix="Name the folder with `_delta_log`."
        ) from error
    except (DeltaError, OverflowError) as error:
        if version is None:
            raise UnsupportedTableError(
                f"deltalake cannot read the log of {place}: {error}", fix=CATALOG, table=place
            ) from error
        raise InvalidArgumentError(
            f"There is no version {version} of the table at {place}: {error}",
            fix="Look at DeltaTable(path).history(); old versions may have expired.",
        ) from error


def _require_known(table: DeltaTable, place: str) -> None:
    """Refuse a table that requires an unknown feature of its readers, or whose files have deleted rows."""
    mode = table.metadata().configuration.get(_MODE, _NO_MAPPING)
    features = frozenset(table.protocol().reader_features or ())
    unknown = sorted(features - _FEATURES)
    if mode not in (_NO_MAPPING, _BY_NAME, _BY_ID):
        unknown.append(f"{_MODE}={mode}")
    if unknown:
        raise UnsupportedTableError(
            f"The table at {place} has features that are not read by path: {', '.join(unknown)}.",
            fix=CATALOG,
            table=place,
        )
    if _VECTORS not in features:
        return
    deleted = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()
    if deleted.num_rows:
        raise UnsupportedTableError(
            f"Rows of {deleted.num_rows} files of {place} are deleted by deletion vectors.",
            fix=f"Have the files written again (`REORG TABLE … APPLY (PURGE)`). Or: {CATALOG}",
            table=place,
        )


def _require_same_everywhere(spark: SparkSession, parts: Sequence[sparks.StructField]) -> None:
    """Refuse partition columns whose values depend on the reader: the log has them as text."""
    for field in parts:
        is_instant = isinstance(field.dataType, sparks.TimestampType)
        if isinstance(field.dataType, _PARTITIONED) or (is_instant and spark.conf.get(_ZONE) in _UTC):
            continue
        raise UnsupportedTableError(
            f"The partition column {field.name} has the type {field.dataType.simpleString()}"
            + (", whose values depend on the time zone." if is_instant else ", which is not read by path."),
            fix=f"Set {_ZONE}=UTC." if is_instant else CATALOG,
            column=field.name,
        )


def _require_no_padding(schema: sparks.StructType) -> None:
    """Refuse texts of a fixed length: Spark pads them by notes on the column, which are not kept here."""
    for field in schema.fields:
        if _CHAR.search(json.dumps(field.jsonValue())):
            raise UnsupportedTableError(
                f"The column {field.name} has texts of a fixed length (CHAR), which are not read by path.",
                fix=CATALOG,
                column=field.name,
            )


def _files(table: DeltaTable, place: str, names: Sequence[str]) -> list[SnapshotFile]:
    """The files of a version with their partitions' values, in which the empty text is NULL."""
    actions = pa.table(table.get_add_actions())
    files = []
    for action in actions.select(
        [name for name in ("path", "size_bytes", "partition") if name in actions.column_names]
    ).to_pylist():
        address = unquote(action["path"])
        path = local_path(address if ":" in action["path"].partition("/")[0] else f"{place}/{address}")
        values = (action["partition"][name] for name in names)
        files.append(SnapshotFile(path, action["size_bytes"], tuple(None if v == "" else v for v in values)))
    return sorted(files, key=lambda file: file.path)


def _physical(field: sparks.StructField) -> str:
    return str(field.metadata.get(_PHYSICAL, field.name))


def _id(field: sparks.StructField) -> int:
    return int(field.metadata[_NUMBER])
