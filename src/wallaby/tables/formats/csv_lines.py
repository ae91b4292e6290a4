"""CSV: each line is a row, with as many fields as the table has columns.

A field is plain, or is in quotes and contains neither quotes nor backslashes. A value must be in its usual notation:
anything else that Java's parsers accept (signs before positive numbers, other digits, spaces, hexadecimal) or refuse is
a doubt. An empty field is NULL.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from wallaby.relations.formats import Csv
from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import arrow_type
from wallaby.tables.formats.content import Asked, DoubtError, lines_of
from wallaby.tables.formats.values import date_in_range, integer_in_range

_BLANK: Final = re.compile(rb"^[\x01-\x09\x0b-\x20]+$", re.MULTILINE)
_WRITTEN: Final = {
    Kind.BYTE: r"^-?[0-9]{1,18}$",
    Kind.SHORT: r"^-?[0-9]{1,18}$",
    Kind.INTEGER: r"^-?[0-9]{1,18}$",
    Kind.LONG: r"^-?[0-9]{1,18}$",
    Kind.DOUBLE: r"^-?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$",
    Kind.BOOLEAN: r"^(true|false)$",
    Kind.DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}


def parse(data: bytes, format_: Csv, asked: Asked) -> pa.Table:
    """The asked columns of all lines; without any, one column that is only there to be counted."""
    text = lines_of(data)
    if _BLANK.search(text):
        raise DoubtError("there is a line of spaces only")
    text = text.lstrip(b"\n")
    if format_.header:
        text = text.partition(b"\n")[2]
    _check_quotes(text, format_)
    fields = _fields(text, format_)
    if not asked:
        return pa.table([fields.column(0)], names=["row"])
    columns = [_converted(fields.column(format_.fields.index(name)), type_, name) for name, type_ in asked]
    return pa.table(columns, names=[name for name, _ in asked])


def _check_quotes(text: bytes, format_: Csv) -> None:
    if b'"' not in text and b"\\" not in text:
        return
    delimiter = re.escape(format_.delimiter.encode())
    line = rb'(?:(?:"[^"\\\n]+"|[^"\\\n' + delimiter + rb"]*)[\n" + delimiter + rb"])*+"
    if not re.fullmatch(line, text):
        raise DoubtError("a field contains a quote or a backslash, or is an empty quoted text")
    if format_.null_value and f'"{format_.null_value}"'.encode() in text:
        raise DoubtError("the text for NULL appears in quotes")


def _fields(text: bytes, format_: Csv) -> pa.Table:
    """Split lines into fields, as text."""
    names = [str(place) for place in range(len(format_.fields))]
    if not text.strip(b"\n"):
        return pa.table([pa.array([], pa.string()) for _ in names], names=names)
    try:
        return csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            csv.ParseOptions(delimiter=format_.delimiter, double_quote=False, escape_char=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[format_.null_value],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise DoubtError("a line has more or fewer fields than the table has columns") from error


def _converted(texts: pa.ChunkedArray, type_: DataType, name: str) -> pa.ChunkedArray:
    if type_.kind is Kind.STRING:
        return texts
    written = _decimal_pattern(type_) if type_.kind is Kind.DECIMAL else _WRITTEN.get(type_.kind)
    if written is None:
        raise DoubtError(f"values of type {type_} are not supported yet")
    if not pc.all(pc.match_substring_regex(texts, written), min_count=0).as_py():
        raise DoubtError(f"the column {name} has a value that is not a plain {type_}")
    try:
        if type_.is_integral:
            return integer_in_range(texts.cast(pa.int64()), type_)
        found = texts.cast(arrow_type(type_))
    except pa.ArrowInvalid as error:
        raise DoubtError(f"the column {name} has a value that is not a {type_}") from error
    return date_in_range(found) if type_.kind is Kind.DATE else found


def _decimal_pattern(type_: DataType) -> str | None:
    whole = type_.precision - type_.scale
    if whole == 0:
        return None
    return rf"^-?[0-9]{{1,{whole}}}(\.[0-9]{{0,{type_.scale}}})?$"
