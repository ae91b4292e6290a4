"""Values on which all readers agree: whole numbers within their types, and dates in today's calendar."""

from __future__ import annotations

import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from wallaby.relations.types import DataType
from wallaby.sql.types import arrow_type
from wallaby.tables.formats.content import DoubtError

#: The first year that is entirely in today's calendar.
FIRST_DAY: Final = datetime.date(1583, 1, 1)


def integer_in_range(found: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """Convert whole numbers to their type, if all of them fit."""
    try:
        return found.cast(arrow_type(type_))
    except pa.ArrowInvalid as error:
        raise DoubtError(f"there is a number that does not fit {type_}") from error


def date_in_range(found: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates, if all of them are in today's calendar."""
    least = pc.min(found).as_py()
    if least is not None and least < FIRST_DAY:
        raise DoubtError("there is a date before 1583")
    return found
