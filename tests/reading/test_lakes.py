"""Tables of Delta Lake and Iceberg as Spark's plan describes them; `make lakes` reads real ones."""

from __future__ import annotations

from typing import Any

import pytest

from wallaby.catalyst.node import Node
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.lakes import physical_names, read_iceberg, renamed_structs
from wallaby.reading.scans import read_scan
from wallaby.relations.formats import FieldId, Parquet
from wallaby.relations.relation import ANY_TIME, Scan
from wallaby.relations.types import INTEGER, Kind

SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "true",
}
PHYSICAL = "delta.columnMapping.physicalName"


def attribute(number: int, name: str, kind: str) -> Node:
    return Node("org.apache.spark.AttributeReference", type=kind, id=number, label=name)


# --- Delta Lake -----------------------------------------------------------------------------------------------


def field(name: str, kind: Any, physical: str = "") -> dict[str, Any]:
    return {"name": name, "type": kind, "metadata": {PHYSICAL: physical} if physical else {}}


def delta_relation(mapping: str = "none", *fields: dict[str, Any], **facts: Any) -> dict[str, Any]:
    fields = fields or (field("a", "long"), field("p", "integer"))
    return {
        "c": "org.apache.spark.sql.execution.datasources.HadoopFsRelation",
        "format": "org.apache.spark.sql.delta.DeltaParquetFileFormat",
        "schema": {"fields": [field(each["name"], each["type"]) for each in fields]},
        "partitions": [["p", "int"]],
        "options": {},
        "directories": [[[7], [["file", "/t/x.parquet", 10, 1234, ""]]]],
        "delta": {"mapping": mapping, "columns": {"fields": list(fields)}},
        "against": "",
        "storage": {},
        **facts,
    }


def scan_of(relation: dict[str, Any]) -> tuple[Scan | None, list[str]]:
    reader = ExpressionReader(100)
    output = [attribute(1, "a", "bigint"), attribute(2, "p", "int")]
    node = Node("org.apache.spark.LogicalRelation", fields={"relation": relation, "output": output})
    found = read_scan(node, reader, SETTINGS, {})
    return found, [str(reason) for reason in reader.reasons]


def test_the_files_of_a_delta_table_have_no_time_to_compare() -> None:
    scan, reasons = scan_of(delta_relation())
    assert reasons == []
    assert scan is not None
    (file,) = scan.files
    assert (file.path, file.size_bytes, file.modified_ms) == ("/t/x.parquet", 10, ANY_TIME)
    assert [(each.name, each.value) for each in file.constants] == [("p", 7)]
    assert scan.names == ("a", "p")


def test_columns_of_delta_are_found_by_their_names_in_the_files() -> None:
    fields = (field("a", "long", "col-1"), field("p", "integer", "col-2"))
    scan, reasons = scan_of(delta_relation("name", *fields))
    assert reasons == []
    assert scan is not None
    assert scan.names == ("col-1", "col-2")
    assert [(each.name, each.type) for each in scan.files[0].constants] == [("col-2", INTEGER)]
    assert [column.name for column in scan.columns] == ["a", "p"]


def test_structs_with_renamed_fields_are_known_wherever_they_are() -> None:
    same = {"type": "struct", "fields": [field("x", "long", "x"), field("y", "long")]}
    other = {"type": "struct", "fields": [field("x", "long", "col-9")]}
    inner = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": other}}
    fields = (field("same", same), field("other", other, "col-1"), field("inner", inner))
    assert renamed_structs(delta_relation("name", *fields)) == ("col-1", "inner")
    scan, _ = scan_of(delta_relation("name", field("a", "long"), field("p", "integer"), *fields))
    assert scan is not None
    assert scan.format == Parquet(renamed=("col-1", "inner"))


def test_columns_of_delta_that_are_found_by_id_are_left_to_spark() -> None:
    assert physical_names(delta_relation("id")) == "Delta finds the columns of its files by id"
    assert scan_of(delta_relation("id")) == (
        None,
        ["LogicalRelation: Delta finds the columns of its files by id"],
    )


def test_what_the_jvm_has_against_a_table_is_the_reason() -> None:
    scan, reasons = scan_of(delta_relation(against="rows of its files are deleted"))
    assert scan is None
    assert reasons == ["LogicalRelation: rows of its files are deleted"]


def test_ids_of_columns_matter_only_where_columns_have_ids() -> None:
    assert scan_of(delta_relation())[0] is not None
    with_ids = {
        "fields": [{"name": "a", "type": "long", "metadata": {"parquet.field.id": 1}}, field("p", "integer")]
    }
    scan, reasons = scan_of(delta_relation(schema=with_ids))
    assert scan is None
    assert "spark.sql.parquet.fieldId.read.enabled" in reasons[0]


# --- Iceberg --------------------------------------------------------------------------------------------------


def iceberg_field(number: int, name: str, kind: Any = "long", **facts: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **facts}


def iceberg(*fields: dict[str, Any], **facts: Any) -> tuple[Scan | None, list[str]]:
    reader = ExpressionReader(100)
    scan = {
        "c": "org.apache.iceberg.spark.source.SparkBatchQueryScan",
        "name": "ice.db.t",
        "schema": {"fields": list(fields)},
        "partitioned": [2],
        "files": [["file", "/t/b.parquet", 20], ["", "/t/a.parquet", 10]],
        "against": "",
        **facts,
    }
    output = [attribute(5, "a", "bigint")]
    node = Node("org.apache.spark.DataSourceV2ScanRelation", fields={"scan": scan, "output": output})
    return read_iceberg(node, reader, SETTINGS), [str(reason) for reason in reader.reasons]


def test_the_files_and_ids_of_an_iceberg_table_are_read() -> None:
    inner = {"type": "struct", "fields": [iceberg_field(4, "x")]}
    within = {"type": "list", "element-id": 3, "element": inner}
    scan, reasons = iceberg(
        iceberg_field(1, "a", required=True), iceberg_field(2, "p"), iceberg_field(5, "l", within)
    )
    assert reasons == []
    assert scan is not None
    assert [(file.path, file.size_bytes, file.modified_ms) for file in scan.files] == [
        ("/t/a.parquet", 10, ANY_TIME),
        ("/t/b.parquet", 20, ANY_TIME),
    ]
    assert [(column.name, column.type.kind) for column in scan.columns] == [("a", Kind.LONG)]
    assert scan.label == "ice.db.t"
    assert scan.format == Parquet(
        (
            FieldId(("a",), 1, True),
            FieldId(("p",), 2, True),
            FieldId(("l",), 5, False),
            FieldId(("l", "element", "x"), 4, False),
        )
    )


def test_a_column_with_a_value_for_older_files_must_be_in_every_file() -> None:
    scan, _ = iceberg(iceberg_field(1, "a", **{"initial-default": 5}))
    assert scan is not None
    assert scan.format == Parquet((FieldId(("a",), 1, True),))


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"against": "its files are encrypted"}, "its files are encrypted"),
        ({"files": [["s3", "/t/a.parquet", 1]]}, "Iceberg tables at s3: are not supported yet"),
        ({"files": [["", "/t/a.parquet", 1]] * 2}, "has one file twice"),
        ({"schema": {"fields": [iceberg_field(2**31 - 2, "a")]}}, "not in the files"),
    ],
)
def test_other_iceberg_tables_are_left_to_spark(facts: dict[str, Any], why: str) -> None:
    scan, reasons = iceberg(iceberg_field(1, "a"), **facts)
    assert scan is None
    assert [why in reason for reason in reasons] == [True]
