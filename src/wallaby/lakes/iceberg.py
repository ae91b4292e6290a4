"""Read an Iceberg table without Spark's jars: `pyiceberg` says which files a snapshot has.

The footer of each file has the ids of its fields. Only the id decides which column a field belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sparks

from wallaby.errors import InvalidArgumentError, MissingPackageError, UnsupportedTableError
from wallaby.lakes.files import CATALOG, grouped_by_id, local_path
from wallaby.lakes.snapshot import FileGroup, SnapshotColumn, SnapshotFile, dataframe, nullable
from wallaby.lakes.stored import ID

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import DataScan, Table

_EXTRA: Final = "pyiceberg"
_BRANCH: Final = "branch"
_COMPACT: Final = "Compact the table (`call system.rewrite_data_files`), or read it through Spark's catalog."


def read_iceberg(spark: SparkSession, table: Any, snapshot: int | str | None) -> DataFrame:
    """The rows of a snapshot: by its id, by the name of a branch or a tag, or the current one.

    Raises:
        MissingPackageError: `pyiceberg` is not installed.
        InvalidArgumentError: there is no such table or snapshot.
        UnsupportedTableError: the rows are not simply those of the snapshot's files.
    """
    found = _table(table)
    scan, schema = _scan(found, snapshot)
    wanted = [_field(field) for field in schema.fields]
    files = _files(scan)
    groups = grouped_by_id(wanted, files) if files else {tuple(map(_as_in_table, wanted)): []}
    partitioned = {field.source_id for spec in found.specs().values() for field in spec.fields}
    for stored, members in groups.items():
        for column, field in zip(schema.fields, stored, strict=True):
            if field is None:
                _require_null(column, members[0].path, partitioned)
    return dataframe(
        spark,
        local_path(found.location()),
        [
            FileGroup(
                tuple(members),
                tuple(
                    SnapshotColumn(column.name, nullable(column.dataType), field)
                    for column, field in zip(wanted, stored, strict=True)
                ),
            )
            for stored, members in groups.items()
        ],
    )


def _as_in_table(field: sparks.StructField) -> sparks.StructField:
    return sparks.StructField(field.name, nullable(field.dataType))


def _table(table: Any) -> Table:
    """A table of pyiceberg's as it is; otherwise the table at a path, or of a file of metadata."""
    try:
        from pyiceberg.exceptions import ValidationError
        from pyiceberg.table import StaticTable
        from pyiceberg.table import Table as IcebergTable
    except ImportError as error:
        raise MissingPackageError(
            "Iceberg tables are read by path with the package pyiceberg, which is not installed.",
            fix="Install it: pip install 'wallaby[pyiceberg]'.",
            extra=_EXTRA,
        ) from error
    if isinstance(table, IcebergTable):
        return table
    place = local_path(str(table))
    try:
        return StaticTable.from_metadata(place)
    except FileNotFoundError as error:
        raise InvalidArgumentError(
            f"There is no Iceberg table at {place}, or it does not say which of its metadata is current.",
            fix="Name the file of metadata (….metadata.json), or pass a table of pyiceberg's: catalog.load_table(…).",
        ) from error
    except (ValidationError, ValueError) as error:
        raise UnsupportedTableError(
            f"pyiceberg cannot read the metadata of {place}: {error}.", fix=CATALOG, table=place
        ) from error


def _scan(table: Table, snapshot: int | str | None) -> tuple[DataScan, Schema]:
    """A scan of a snapshot, and the columns that the table had then; for a branch, its present columns."""
    if snapshot is None:
        return table.scan(), table.schema()
    name, is_branch = str(snapshot), False
    if isinstance(snapshot, str):
        known = table.metadata.refs.get(snapshot)
        if known is None:
            raise InvalidArgumentError(
                f"The Iceberg table has no branch or tag {snapshot!r}.",
                fix=f"Choose one of: {', '.join(sorted(table.metadata.refs)) or 'none'}.",
            )
        snapshot, is_branch = known.snapshot_id, known.snapshot_ref_type.value == _BRANCH
    if table.metadata.snapshot_by_id(snapshot) is None:
        raise InvalidArgumentError(
            f"The Iceberg table has no snapshot {name}.",
            fix="Look at table.snapshots() of pyiceberg; old snapshots may have expired.",
        )
    scan = table.scan(snapshot_id=snapshot)
    return scan, table.schema() if is_branch else scan.projection()


def _files(scan: DataScan) -> list[SnapshotFile]:
    """The data files of a scan, if their rows are those of the snapshot."""
    try:
        tasks = list(scan.plan_files())
    except (NotImplementedError, ValueError) as error:
        raise UnsupportedTableError(f"pyiceberg cannot plan the snapshot: {error}.", fix=_COMPACT) from error
    for task in tasks:
        path = task.file.file_path
        if task.delete_files:
            raise UnsupportedTableError(
                f"Rows of {path} are deleted by a delete file or a deletion vector.", fix=_COMPACT, path=path
            )
        if str(task.file.file_format.value).upper() != "PARQUET":
            raise UnsupportedTableError(
                f"The format of {path} is {task.file.file_format.value}; only Parquet is read by path.",
                fix=CATALOG,
                path=path,
            )
        if task.file.key_metadata is not None:
            raise UnsupportedTableError(f"{path} is encrypted.", fix=CATALOG, path=path)
    found = (SnapshotFile(local_path(task.file.file_path), task.file.file_size_in_bytes) for task in tasks)
    return sorted(found, key=lambda file: file.path)


def _require_null(column: Any, path: str, partitioned: set[int]) -> None:
    """Refuse a file without a column if the table says that the column is not NULL there."""
    if column.required or column.initial_default is not None or column.field_id in partitioned:
        raise UnsupportedTableError(
            f"The column {column.name} is not in {path}, and its value is not NULL there.",
            fix=CATALOG,
            path=path,
        )


def _field(field: Any) -> sparks.StructField:
    return sparks.StructField(field.name, _type(field.field_type, field.name), metadata={ID: field.field_id})


def _type(type_: Any, name: str) -> sparks.DataType:
    """Spark's type for one of Iceberg's."""
    from pyiceberg import types as iceberg

    if isinstance(type_, iceberg.StructType):
        return sparks.StructType([_field(field) for field in type_.fields])
    if isinstance(type_, iceberg.ListType):
        return sparks.ArrayType(_type(type_.element_type, name))
    if isinstance(type_, iceberg.MapType):
        return sparks.MapType(_type(type_.key_type, name), _type(type_.value_type, name))
    if isinstance(type_, iceberg.DecimalType):
        return sparks.DecimalType(type_.precision, type_.scale)
    known = _FLAT.get(str(type_))
    if known is None:
        raise UnsupportedTableError(
            f"The column {name} has the type {type_}, which is not read by path.", fix=CATALOG, column=name
        )
    return known


_FLAT: Final = {
    "boolean": sparks.BooleanType(),
    "int": sparks.IntegerType(),
    "long": sparks.LongType(),
    "float": sparks.FloatType(),
    "double": sparks.DoubleType(),
    "string": sparks.StringType(),
    "binary": sparks.BinaryType(),
    "date": sparks.DateType(),
    "timestamp": sparks.TimestampNTZType(),
    "timestamptz": sparks.TimestampType(),
}
