"""Reading a table: which files, as Spark listed them when it planned, and which columns they have.

Only plain Parquet on a local path so far. What Spark would do to the files while it reads them (add partition
columns, skip what is corrupt, fill in defaults) and we would not is a reason to leave them to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wallaby.catalyst.data_types import data_type
from wallaby.catalyst.expressions import ExpressionReader
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.plan.expression import Column
from wallaby.plan.relation import ParquetFile, Scan

_FILES: Final = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_PARQUET: Final = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"

#: Options that say which files there are, which is settled when the plan is read, or nothing at all.
_HARMLESS: Final = frozenset(
    {
        "compression",
        "ignorecorruptfiles=false",
        "ignoremissingfiles=false",
        "mergeschema=false",
        "modifiedafter",
        "modifiedbefore",
        "path",
        "pathglobfilter",
        "paths",
        "recursivefilelookup",
        "serialization.format",
    }
)
#: Session settings with which Spark reads fewer rows than the files have.
_MUST_BE_FALSE: Final = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")


def read_scan(node: Node, reader: ExpressionReader, settings: Mapping[str, str]) -> Scan | None:
    """A `LogicalRelation` as a scan of all the columns whose types can be read."""
    relation = node.field("relation")
    if not isinstance(relation, dict) or relation.get("c") != _FILES:
        reader.refuse(
            "LogicalRelation", f"the source {_source(relation)} is not read here yet", "read Parquet files"
        )
        return None
    before = len(reader.reasons)
    _check(relation, reader, settings)
    files = _files(relation, reader)
    columns = _columns(node, _names(relation), reader)
    if len(reader.reasons) > before:
        return None
    names = tuple(column.name for column in columns)
    return Scan(files, columns, names, _label(files))


def _source(relation: object) -> str:
    name = relation.get("opaque", "") if isinstance(relation, dict) else ""
    return str(name).rpartition(".")[2] or "that it reads"


def _check(relation: dict[str, object], reader: ExpressionReader, settings: Mapping[str, str]) -> None:
    name = "LogicalRelation"
    if relation["format"] != _PARQUET:
        reader.refuse(
            name,
            f"the format {str(relation['format']).rpartition('.')[2]} is not read here yet",
            "use Parquet",
        )
    if _fields(relation, "partitions"):
        reader.refuse(name, "partition columns, from directory names, are not read here yet")
    if relation["bucketed"]:
        reader.refuse(name, "bucketed tables are not read here yet")
    options = relation["options"]
    for key, value in sorted(options.items()) if isinstance(options, dict) else ():
        if key.lower() not in _HARMLESS and f"{key}={value}".lower() not in _HARMLESS:
            reader.refuse(name, f"the option {key} is not known here", f"read the files without {key}")
    for key in _MUST_BE_FALSE:
        if settings.get(key) != "false":
            reader.refuse(name, f"with {key} Spark may leave files out", f"set {key}=false")


def _files(relation: dict[str, object], reader: ExpressionReader) -> tuple[ParquetFile, ...]:
    listed = relation["files"]
    if not isinstance(listed, list):
        raise UnreadablePlanError("A relation's files are no list.")
    schemes = sorted({scheme for scheme, *_ in listed} - {"", "file"})
    for scheme in schemes:
        reader.refuse("LogicalRelation", f"files at {scheme}: are not read here yet", "use a local path")
    # Spark's listing is made by several threads; the order of paths is the same every time.
    return tuple(
        sorted((ParquetFile(path, size, time) for _, path, size, time in listed), key=lambda file: file.path)
    )


def _columns(node: Node, names: frozenset[str], reader: ExpressionReader) -> tuple[Column, ...]:
    """The columns that are in the files. One of a type that cannot be read is missed only by who uses it."""
    columns: list[Column] = []
    for attribute in node.nodes("output"):
        kind = data_type(attribute.type)
        if attribute.label not in names:
            reader.refuse(attribute.label, "the column is not in the files themselves")
        elif kind is not None and attribute.id is not None:
            columns.append(Column(attribute.id, attribute.label, kind, attribute.nullable))
    return tuple(columns)


def _names(relation: dict[str, object]) -> frozenset[str]:
    """The columns of the files; not those with a default for older files, of which we know nothing."""
    return frozenset(
        str(field["name"])
        for field in _fields(relation, "schema")
        if "EXISTS_DEFAULT" not in field.get("metadata", {})
    )


def _fields(relation: dict[str, object], name: str) -> list[dict[str, dict[str, object]]]:
    schema = relation[name]
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        raise UnreadablePlanError(f"A relation's {name} is no schema.")
    return fields


def _label(files: tuple[ParquetFile, ...]) -> str:
    """What people call the table: its file, or its directory."""
    if not files:
        return "no files"
    path = files[0].path.rstrip("/")
    chosen = path if len(files) == 1 and "part-" not in path.rpartition("/")[2] else path.rpartition("/")[0]
    return chosen.rpartition("/")[2].removesuffix(".parquet")
