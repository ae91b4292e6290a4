"""The format of a table's files with its options, or why only Spark can read them.

An option is accepted if it does not change how lines that Wallaby can read are read. Wallaby does not read lines that
Spark would find malformed (`tables/formats` checks all lines first), so the mode for malformed lines does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wallaby.relations.formats import Binary, Csv, Format, Json, Orc, Parquet, Text

_PACKAGE: Final = "org.apache.spark.sql.execution.datasources."
#: The format of Delta tables: Parquet, with facts beside it (`lakes`).
DELTA: Final = "org.apache.spark.sql.delta.DeltaParquetFileFormat"
#: Options that select files, which is done by the time the plan is read, or that have no effect.
_HARMLESS: Final = frozenset(
    {
        "compression",
        "ignorecorruptfiles=false",
        "ignoremissingfiles=false",
        "mergeschema",
        "modifiedafter",
        "modifiedbefore",
        "path",
        "pathglobfilter",
        "paths",
        "recursivefilelookup",
        "serialization.format",
    }
)
#: Options that shape the schema, which is known by now, or that concern lines which are not read here.
_OF_LINES: Final = frozenset(
    {
        "charset=utf-8",
        "encoding=utf-8",
        "inferschema",
        "mode=dropmalformed",
        "mode=failfast",
        "mode=permissive",
        "multiline=false",
        "prefersdate",
        "samplingratio",
    }
)
_OF_CSV: Final = frozenset(
    {
        "delimiter",
        "enforceschema=true",
        "escape=\\",
        "header=false",
        "header=true",
        "ignoreleadingwhitespace=false",
        "ignoretrailingwhitespace=false",
        'quote="',
        "nullvalue",
        "sep",
    }
)
_OF_JSON: Final = frozenset({"dropfieldifallnull", "primitivesasstring", "prefersdecimal"})
_OF_TEXT: Final = frozenset({"wholetext=false"})
#: The extensions of files that Hadoop decompresses.
_COMPRESSED: Final = (".bz2", ".deflate", ".gz", ".lz4", ".snappy", ".zst", ".xz", ".lzo", ".zip")
_LENGTH_MAX: Final = "spark.sql.sources.binaryFile.maxLength"
_DELIMITER: Final = '"\\\n\r\0'


def file_format(relation: Mapping[str, object], settings: Mapping[str, str]) -> Format | str:
    """How a relation's files are read under these session settings, or why only Spark reads them."""
    name = str(relation["format"]).removeprefix(_PACKAGE)
    known = _OPTIONS.get(name)
    if known is None:
        return f"the format {name.rpartition('.')[2]} is not supported yet"
    given = relation["options"]
    options = (
        {str(key).lower(): str(value) for key, value in given.items()} if isinstance(given, dict) else {}
    )
    for key, value in sorted(options.items()):
        if key not in known and f"{key}={value}".lower() not in known:
            return f"the option {key} is not supported"
    match name:
        case "csv.CSVFileFormat":
            return _csv(relation, options)
        case "json.JsonFileFormat":
            return Json()
        case "text.TextFileFormat":
            return Text()
        case "orc.OrcFileFormat":
            return _orc(relation)
        case "binaryfile.BinaryFileFormat":
            return Binary(int(settings[_LENGTH_MAX]))
        case _:
            return Parquet()


_OPTIONS: Final = {
    "parquet.ParquetFileFormat": _HARMLESS,
    DELTA: _HARMLESS | {"timestampasof", "versionasof"},
    "orc.OrcFileFormat": _HARMLESS,
    "csv.CSVFileFormat": _HARMLESS - {"compression"} | _OF_LINES | _OF_CSV,
    "json.JsonFileFormat": _HARMLESS - {"compression"} | _OF_LINES | _OF_JSON,
    "text.TextFileFormat": _HARMLESS - {"compression"} | _OF_TEXT,
    "binaryfile.BinaryFileFormat": _HARMLESS,
}


def is_compressed(path: str) -> bool:
    """Does Hadoop treat the file as compressed?"""
    return path.lower().endswith(_COMPRESSED)


def _fields(relation: Mapping[str, object]) -> list[Mapping[str, object]]:
    schema = relation["schema"]
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return fields if isinstance(fields, list) else []


def _csv(relation: Mapping[str, object], options: Mapping[str, str]) -> Csv | str:
    delimiter = options.get("sep", options.get("delimiter", ","))
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in _DELIMITER:
        return "this delimiter is not supported"
    names = tuple(str(field["name"]) for field in _fields(relation))
    header = options.get("header", "false").lower() == "true"
    return Csv(names, delimiter, header, options.get("nullvalue", ""))


def _orc(relation: Mapping[str, object]) -> Orc | str:
    if any("__CHAR_VARCHAR_TYPE_STRING" in str(field.get("metadata", "")) for field in _fields(relation)):
        return "columns of fixed or limited length are not supported yet"
    return Orc()
