"""JSON: each line is an object whose members are the columns, by exact name; a missing member is NULL.

A value must have the kind of its column: whole number, number, text, true or false, list or object. A value that Spark
would convert (a number to text, text to a number, …) or find malformed is a doubt.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

import pyarrow as pa

from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import arrow_type
from wallaby.tables.formats.content import Asked, DoubtError, lines_of
from wallaby.tables.formats.values import FIRST_DAY

_NUMBER_MAX: Final = 40
#: The values of a line are Python objects, which take up to fifty times as much memory as the line.
LINE_LENGTH_MAX: Final = 1 << 20
_BITS: Final = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INTEGER: 32, Kind.LONG: 64}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class _Whole(int):
    """A number written without a decimal point."""


def parse(data: bytes, asked: Asked) -> pa.Table:
    """The requested columns of all lines; if none is requested, one column by which the rows can be counted."""
    rows = [_object(line) for line in lines_of(data).decode("utf-8").split("\n") if line]
    if not asked:
        return pa.table([pa.nulls(len(rows), pa.int8())], names=["row"])
    columns = []
    for name, type_ in asked:
        read = _reader(type_)
        values = [None if (found := row.get(name)) is None else read(found) for row in rows]
        try:
            columns.append(pa.array(values, arrow_type(type_)))
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise DoubtError(f"the column {name} has a value that is not a {type_}") from error
    return pa.table(columns, names=[name for name, _ in asked])


def _object(line: str) -> dict[str, Any]:
    if not line.startswith("{"):
        raise DoubtError("a line does not begin with a brace")
    if len(line) > LINE_LENGTH_MAX:
        raise DoubtError(f"a line has more than {LINE_LENGTH_MAX >> 10} KiB")
    try:
        found = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise DoubtError("a line is not JSON") from error
    assert isinstance(found, dict), "it begins with a brace"
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DoubtError("an object has two members of the same name")
    return found


def _whole(text: str) -> _Whole:
    if len(text) > _NUMBER_MAX or text == "-0":
        raise DoubtError("there is a number in an unusual notation")
    return _Whole(text)


def _float(text: str) -> float:
    found = float(text)
    if len(text) > _NUMBER_MAX or not math.isfinite(found):
        raise DoubtError("there is a number in an unusual notation")
    return found


def _no_number(text: str) -> NoReturn:
    raise DoubtError(f"there is a {text}")


_DECODER: Final = json.JSONDecoder(
    parse_int=_whole, parse_float=_float, parse_constant=_no_number, object_pairs_hook=_unique
)


def _reader(type_: DataType) -> Callable[[Any], Any]:
    """A function that converts a value of a line to the form that Arrow expects for a type."""
    match type_.kind:
        case Kind.STRING:
            return _of(str, type_)
        case Kind.BOOLEAN:
            return _of(bool, type_)
        case Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG:
            return _of(_Whole, type_)
        case Kind.DOUBLE:
            return _double
        case Kind.DATE:
            return _date
        case Kind.ARRAY:
            return _list(type_)
        case Kind.STRUCT:
            return _struct(type_)
        case _:
            raise DoubtError(f"values of type {type_} are not supported yet")


def _of(expected: type, type_: DataType) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not expected:
            raise DoubtError(f"there is a value that is not a {type_}")
        return value

    return read


def _double(value: Any) -> float:
    if type(value) is not float and type(value) is not _Whole:
        raise DoubtError("there is a value that is not a number")
    return float(value)


def _date(value: Any) -> datetime.date:
    try:
        found = datetime.date.fromisoformat(value) if _DATE.fullmatch(value) else None
    except (TypeError, ValueError):
        found = None
    if found is None or found < FIRST_DAY:
        raise DoubtError("there is a value that is not a plain date")
    return found


def _list(type_: DataType) -> Callable[[Any], Any]:
    read = _reader(type_.element)

    def read_all(value: Any) -> list[Any]:
        if type(value) is not list:
            raise DoubtError(f"there is a value that is not a {type_}")
        return [None if each is None else read(each) for each in value]

    return read_all


def _struct(type_: DataType) -> Callable[[Any], Any]:
    readers = [(name, _reader(child)) for name, child in zip(type_.names, type_.children, strict=True)]
    names = arrow_type(type_)

    def read_all(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise DoubtError(f"there is a value that is not a {type_}")
        members = [None if (found := value.get(name)) is None else read(found) for name, read in readers]
        return {names.field(place).name: member for place, member in enumerate(members)}

    return read_all
