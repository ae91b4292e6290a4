"""Read tables of Delta Lake and Iceberg: the files of the snapshot that Spark would read, as Spark's plan knows them.

Both keep their data in Parquet files, and say in metadata of their own which files belong to a snapshot, which of
their rows are deleted, and which column of a file is which column of the table. `LakeTables.java` asks them. What is
read here is a table whose rows are those of its files; of any other, only Spark knows the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wallaby.catalyst.data_types import data_type
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.reading.expressions import ExpressionReader
from wallaby.relations.expression import Column
from wallaby.relations.formats import FieldId, Parquet
from wallaby.relations.relation import ANY_TIME, DataFile, Scan

#: A column's name in files, by Delta, if the table gives them names of their own.
_PHYSICAL: Final = "delta.columnMapping.physicalName"
_NO_MAPPING: Final = "none"
_BY_NAME: Final = "name"
_LOCAL: Final = ("", "file")
#: Iceberg numbers columns that no file has (the path, the position) down from the largest number.
_IDS_MAX: Final = 2**31 - 1_000
_PARTS: Final = {"list": ("element",), "map": ("key", "value")}


def physical_names(relation: Mapping[str, Any]) -> dict[str, str] | str:
    """The names of a Delta table's columns in its files, where they may differ; or why they are not known."""
    delta = relation.get("delta")
    if delta is None or delta["mapping"] == _NO_MAPPING:
        return {}
    if delta["mapping"] != _BY_NAME:
        return f"Delta finds the columns of its files by {delta['mapping']}"
    return {field["name"]: _physical(field) for field in delta["columns"]["fields"]}


def renamed_structs(relation: Mapping[str, Any]) -> tuple[str, ...]:
    """The structs of a Delta table whose fields have other names in its files, by their names there."""
    fields = relation["delta"]["columns"]["fields"]
    return tuple(_physical(field) for field in fields if _is_renamed_within(field["type"]))


def _physical(field: Mapping[str, Any]) -> str:
    return str(field.get("metadata", {}).get(_PHYSICAL, field["name"]))


def _is_renamed_within(type_: Any) -> bool:
    match type_:
        case {"type": "struct", "fields": fields}:
            return any(
                _physical(field) != field["name"] or _is_renamed_within(field["type"]) for field in fields
            )
        case {"type": "array", "elementType": element}:
            return _is_renamed_within(element)
        case {"type": "map", "keyType": key, "valueType": value}:
            return _is_renamed_within(key) or _is_renamed_within(value)
        case _:
            return False


def read_iceberg(node: Node, reader: ExpressionReader, settings: Mapping[str, str]) -> Scan | None:
    """Read a scan of an Iceberg table, or refuse it."""
    scan: Any = node.field("scan")
    name = "DataSourceV2ScanRelation"
    before = len(reader.reasons)
    if "files" not in scan or scan["against"]:
        reader.refuse(name, f"the Iceberg table is left to Spark: {scan['against']}")
        return None
    if settings.get("spark.sql.caseSensitive") != "false":
        reader.refuse(name, "with spark.sql.caseSensitive Spark matches columns in a different way")
    schemes = {scheme for scheme, _, _ in scan["files"]} - set(_LOCAL)
    if schemes:
        reader.refuse(name, f"Iceberg tables at {', '.join(sorted(schemes))}: are not supported yet")
    known = {str(field["name"]): field for field in _fields(scan["schema"]) if field["id"] < _IDS_MAX}
    columns: list[Column] = []
    for attribute in node.nodes("output"):
        kind = data_type(attribute.type)
        if attribute.label not in known:
            reader.refuse(attribute.label, "the column is not in the files of the Iceberg table")
        elif kind is not None and attribute.id is not None:
            columns.append(Column(attribute.id, attribute.label, kind, attribute.nullable))
    partitioned = frozenset(int(number) for number in scan["partitioned"])
    ids = tuple(each for name in known for each in _ids(known[name], (), partitioned))
    files = sorted((path, size) for _, path, size in scan["files"])
    if len({path for path, _ in files}) < len(files):
        reader.refuse(name, "the Iceberg table has one file twice")
    if len(reader.reasons) > before:
        return None
    names = tuple(column.name for column in columns)
    found = tuple(DataFile(path, size, ANY_TIME) for path, size in files)
    return Scan(found, tuple(columns), names, str(scan["name"]), Parquet(ids))


def _fields(schema: Any) -> list[Any]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        raise UnreadablePlanError("An Iceberg scan has no schema.")
    return fields


def _ids(field: Any, above: tuple[str, ...], partitioned: frozenset[int]) -> list[FieldId]:
    """The ids of a column and of the fields of structs in it."""
    path = (*above, str(field["name"]))
    needed = bool(field["required"]) or "initial-default" in field or field["id"] in partitioned
    return [FieldId(path, int(field["id"]), needed), *_ids_within(field["type"], path, partitioned)]


def _ids_within(type_: Any, path: tuple[str, ...], partitioned: frozenset[int]) -> list[FieldId]:
    if not isinstance(type_, dict):
        return []
    if type_["type"] == "struct":
        return [each for field in type_["fields"] for each in _ids(field, path, partitioned)]
    parts = _PARTS.get(type_["type"], ())
    return [each for part in parts for each in _ids_within(type_[part], (*path, part), partitioned)]
