"""Convert between instants and local times, in microseconds, for time zones whose offset changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from wallaby.functions.arrow_function import ArrowFunction
from wallaby.functions.casts.parsing import date_text
from wallaby.functions.times.zones import Micros, ZoneTable, zone_table
from wallaby.relations.types import DATE, INTEGER, LONG, STRING

LOCAL: Final = "wallaby_local_time"
INSTANT: Final = "wallaby_instant"
INSTANT_NEAR: Final = "wallaby_instant_near"
DAY_START: Final = "wallaby_day_start"
#: Functions of any number, including those that DuckDB treats as infinite.
DATE_OF: Final = "wallaby_date"
#: Functions of day numbers: DuckDB adds months through timestamps, which end earlier than dates.
ADD_MONTHS: Final = "wallaby_add_months"
#: Functions of local times, in microseconds.
TEXT: Final = "wallaby_timestamp_text"
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND


def _looked_up(look_up: Callable[..., Micros], zones: pa.ChunkedArray, *given: pa.ChunkedArray) -> pa.Array:
    """Look numbers up in the zone whose number is in the first row; NULL if the first number is NULL."""
    if not len(zones):
        return pa.array([], pa.int64())
    missing = given[0].is_null().to_numpy()
    values = [column.fill_null(0).to_numpy() for column in given]
    found = look_up(zone_table(zones[0].as_py()), *values)
    return pa.array(found, pa.int64(), mask=missing if np.any(missing) else None)


def _of_one(name: str, look_up: Callable[[ZoneTable, Micros], Micros]) -> ArrowFunction:
    def compute(value: pa.ChunkedArray, zones: pa.ChunkedArray) -> pa.Array:
        return _looked_up(look_up, zones, value)

    return ArrowFunction(name, (LONG, INTEGER), LONG, compute)


def _near(local: pa.ChunkedArray, preferred: pa.ChunkedArray, zones: pa.ChunkedArray) -> pa.Array:
    return _looked_up(ZoneTable.instants_near, zones, local, preferred)


def _date(days: pa.ChunkedArray) -> pa.Array:
    whole = days.combine_chunks() if isinstance(days, pa.ChunkedArray) else days
    return whole.cast(pa.date32())


def _add_months(days: pa.ChunkedArray, months: pa.ChunkedArray) -> pa.Array:
    """Add months to days of dates; days that a shorter month lacks become its last day."""
    missing = days.is_null().to_numpy() | months.is_null().to_numpy()
    first = days.fill_null(0).to_numpy().astype("datetime64[D]")
    month = first.astype("datetime64[M]")
    within = first - month.astype("datetime64[D]")
    moved = month + months.fill_null(0).to_numpy().astype(np.int64)
    last = (moved + 1).astype("datetime64[D]") - moved.astype("datetime64[D]") - np.timedelta64(1, "D")
    found = (moved.astype("datetime64[D]") + np.minimum(within, last)).astype(np.int64)
    if np.any((found != found.astype(np.int32)) & ~missing):
        raise OverflowError("Overflow in months that are added to a date.")
    return pa.array(found.astype(np.int32), pa.int32(), mask=missing if np.any(missing) else None)


def _text(local: pa.ChunkedArray) -> pa.Array:
    """A local time as text, without trailing zeros in the fraction of a second."""
    return pa.array([None if value is None else _shown(value) for value in local.to_pylist()], pa.string())


def _shown(local: int) -> str:
    day, within = divmod(local, _DAY)
    seconds, micros = divmod(within, _SECOND)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{date_text(day)} {clock}{fraction}"


FUNCTIONS: Final[tuple[ArrowFunction, ...]] = (
    ArrowFunction(TEXT, (LONG,), STRING, _text),
    _of_one(LOCAL, ZoneTable.local),
    _of_one(INSTANT, ZoneTable.instants),
    ArrowFunction(INSTANT_NEAR, (LONG, LONG, INTEGER), LONG, _near),
    _of_one(DAY_START, ZoneTable.day_starts),
    ArrowFunction(DATE_OF, (INTEGER,), DATE, _date),
    ArrowFunction(ADD_MONTHS, (INTEGER, INTEGER), INTEGER, _add_months),
)
