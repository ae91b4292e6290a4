"""Read a table: its files, as Spark listed them when it planned, and its columns.

Files may be on local disks, S3 and HDFS. The values of partition columns come from Spark's own listing; no path is
parsed here. If Spark would change what it reads (skip corrupt files, fill in defaults) and Wallaby would not, the table
is left to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wallaby.catalyst.data_types import data_type, literal
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.formats import file_format, is_compressed
from wallaby.reading.lakes import physical_names, renamed_structs
from wallaby.reading.storages import storage_name, storage_of
from wallaby.relations.expression import Column
from wallaby.relations.formats import Format, Parquet
from wallaby.relations.relation import ANY_TIME, Constant, DataFile, Scan
from wallaby.relations.storage import Storage
from wallaby.relations.types import DataType, Kind

_FILES: Final = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"

_CORRUPT: Final = "spark.sql.columnNameOfCorruptRecord"
#: Session settings with which Spark reads fewer rows than the files have.
_MUST_BE_FALSE: Final = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
#: The session setting with which Spark does not find a file's columns by their names without regard to case.
_CASE: Final = "spark.sql.caseSensitive"
#: With this setting Spark finds columns of files by ids, if the table's columns have ids. Delta Lake switches it on.
_BY_ID: Final = "spark.sql.parquet.fieldId.read.enabled"
_ID: Final = '"parquet.field.id"'
#: Session settings with which Spark changes dates or timestamps while it reads files.
_TIMES_AS_THEY_ARE: Final = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
}


def read_scan(
    node: Node, reader: ExpressionReader, settings: Mapping[str, str], storages: dict[str, Storage]
) -> Scan | None:
    """Read a `LogicalRelation` as a scan of all columns with readable types; `storages` receives those of its files."""
    relation = node.field("relation")
    if not isinstance(relation, dict) or relation.get("c") != _FILES:
        reader.refuse(
            "LogicalRelation", f"the source {_source(relation)} is not supported yet", "read Parquet files"
        )
        return None
    before = len(reader.reasons)
    if relation.get("against"):
        reader.refuse("LogicalRelation", str(relation["against"]))
        return None
    physical = physical_names(relation)
    if isinstance(physical, str):
        reader.refuse("LogicalRelation", physical)
        return None
    format_ = _format(relation, reader, settings)
    files = _files(relation, physical, reader, storages)
    if format_.has_lines and any(is_compressed(file.path) for file in files):
        reader.refuse("LogicalRelation", "compressed files are not supported yet", "use Parquet")
    columns = _columns(node, _names(relation), reader)
    if len(reader.reasons) > before:
        return None
    names = tuple(physical.get(column.name, column.name) for column in columns)
    if physical and isinstance(format_, Parquet):
        format_ = replace(format_, renamed=renamed_structs(relation))
    return Scan(files, columns, names, _label(files), format_)


def _source(relation: object) -> str:
    name = relation.get("opaque", "") if isinstance(relation, dict) else ""
    return str(name).rpartition(".")[2] or "that it reads"


def _format(relation: dict[str, object], reader: ExpressionReader, settings: Mapping[str, str]) -> Format:
    """The format of the files; meaningless if there are reasons against reading them."""
    name = "LogicalRelation"
    found = file_format(relation, settings)
    if isinstance(found, str):
        reader.refuse(name, found, "use Parquet")
    elif found.has_lines and settings.get(_CORRUPT, "") in _names(relation):
        reader.refuse(name, "one column collects malformed lines")
    for key in _MUST_BE_FALSE:
        if settings.get(key) != "false":
            reader.refuse(name, f"with {key} Spark may leave files out", f"set {key}=false")
    by_id = settings.get(_BY_ID) != "false" and _ID in json.dumps(relation["schema"])
    for key, matters in ((_CASE, settings.get(_CASE) != "false"), (_BY_ID, by_id)):
        if matters:
            reader.refuse(name, f"with {key} Spark matches columns in a different way", f"set {key}=false")
    if isinstance(found, Parquet) and _has_times(relation):
        for key, value in _TIMES_AS_THEY_ARE.items():
            if settings.get(key, "").upper() != value.upper():
                reader.refuse(
                    name, f"with {key} Spark may change dates and instants of files", f"set {key}={value}"
                )
    return Parquet() if isinstance(found, str) else found


def _has_times(relation: dict[str, object]) -> bool:
    return any(map(_is_time, _fields(relation)))


def _is_time(field: dict[str, Any]) -> bool:
    """Is a column a date or a time, or does it contain one?"""
    kind = field["type"]
    if not isinstance(kind, str):
        written = json.dumps(kind)
        return '"date"' in written or '"timestamp' in written
    return kind == "date" or kind.startswith("timestamp")


def _files(
    relation: dict[str, object],
    physical: Mapping[str, str],
    reader: ExpressionReader,
    storages: dict[str, Storage],
) -> tuple[DataFile, ...]:
    """The files of a table. Those of a lake are never written twice, and nobody compares their times.

    Delta's log has the times of the first copy; a snapshot by path has none.
    """
    directories = relation["directories"]
    if not isinstance(directories, list):
        raise UnreadablePlanError("A relation's directories are not a list.")
    partitions = _partitions(relation)
    files: list[DataFile] = []
    roots = {(scheme, authority) for _, listed in directories for scheme, _, _, _, authority in listed}
    names = _storages(roots, relation, reader, storages)
    for values, listed in directories:
        constants = tuple(
            replace(constant, name=physical.get(constant.name, constant.name))
            for constant in _constants(partitions, values, reader)
        )
        for scheme, path, size, time, authority in listed:
            storage = names[scheme, authority]
            address = f"{scheme}://{authority}{path}" if storage else path
            when = ANY_TIME if "delta" in relation or "snapshot" in relation else time
            files.append(DataFile(address, size, when, constants, storage))
    # Spark's listing is made by several threads; the order of paths is the same every time.
    return tuple(sorted(files, key=lambda file: file.path))


def _storages(
    roots: set[tuple[str, str]],
    relation: dict[str, object],
    reader: ExpressionReader,
    storages: dict[str, Storage],
) -> dict[tuple[str, str], str]:
    """The name of the storage for every root of files (scheme and authority); "" for a local disk."""
    settings = relation.get("storage")
    names = dict.fromkeys(roots, "")
    for scheme, authority in sorted(roots):
        if scheme in ("", "file"):
            continue
        found = storage_of(scheme, authority, settings if isinstance(settings, dict) else {})
        if isinstance(found, str):
            reader.refuse("LogicalRelation", found, "use a local path")
            continue
        names[scheme, authority] = storage_name(found)
        storages[names[scheme, authority]] = found
    return names


def _constants(
    partitions: dict[str, DataType | None], values: list[object], reader: ExpressionReader
) -> tuple[Constant, ...]:
    """The partition columns of a directory, except those of types that cannot be read."""
    found: list[Constant] = []
    for (name, kind), value in zip(partitions.items(), values, strict=True):
        made = None if kind is None else literal(value, kind)
        if kind is not None and kind.kind is Kind.DECIMAL and not _has_scale(value, kind.scale):
            # Spark interprets its digits in the column's type.
            reader.refuse(name, f"it is a partition column with a value that is not a {kind}")
        elif made is not None:
            found.append(Constant(name, made.value, made.type))
        elif kind is not None:
            reader.refuse(name, "it is a partition column with a value that cannot be read")
    return tuple(found)


def _has_scale(value: object, scale: int) -> bool:
    match value:
        case {"decimal": str(text)}:
            return len(text.partition(".")[2]) == scale
        case _:
            return value is None


def _partitions(relation: dict[str, object]) -> dict[str, DataType | None]:
    """The partition columns and their types; None for one that cannot be read."""
    partitions = relation["partitions"]
    if not isinstance(partitions, list):
        raise UnreadablePlanError("A relation's partition columns are not a list.")
    return {str(name): data_type(str(kind)) for name, kind in partitions}


def _columns(node: Node, names: frozenset[str], reader: ExpressionReader) -> tuple[Column, ...]:
    """The columns of the table; one of a type that cannot be read is refused only if the query uses it."""
    columns: list[Column] = []
    for attribute in node.nodes("output"):
        kind = data_type(attribute.type)
        if attribute.label not in names:
            reader.refuse(attribute.label, "the column is neither in the files nor a partition column")
        elif kind is not None and attribute.id is not None:
            columns.append(Column(attribute.id, attribute.label, kind, attribute.nullable))
    return tuple(columns)


def _names(relation: dict[str, object]) -> frozenset[str]:
    """The columns of the table, without those that have a default for older files, which we do not know."""
    own = {
        str(field["name"]) for field in _fields(relation) if "EXISTS_DEFAULT" not in field.get("metadata", {})
    }
    return frozenset(own.union(_partitions(relation)))


def _fields(relation: dict[str, object]) -> list[dict[str, Any]]:
    schema = relation["schema"]
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        raise UnreadablePlanError("The relation has no schema.")
    return fields


def _label(files: tuple[DataFile, ...]) -> str:
    """A name of the table for users: its file, or its directory without those of its partitions."""
    if not files:
        return "no files"
    path = files[0].path.rstrip("/")
    chosen = path if len(files) == 1 and "part-" not in path.rpartition("/")[2] else path.rpartition("/")[0]
    while files[0].constants and "=" in chosen.rpartition("/")[2]:
        chosen = chosen.rpartition("/")[0]
    return chosen.rpartition("/")[2].removesuffix(".parquet")
