"""Tables of time zones: against Python's own, and what no clock shows or shows twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from wallaby.errors import EncodingError
from wallaby.functions.times.zones import ZoneTable
from wallaby.relations.zone import read_zone

#: Middle Europe since 1996, by its rules: the last Sundays of March and of October at 01:00 UTC.
BERLIN = "Europe/Berlin;3600;828234000:7200,846378000:3600;3,-1,7,3600,0,7200;10,-1,7,3600,0,3600"
#: New York since 2007: the second Sunday of March and the first of November, at two by the clock.
NEW_YORK = (
    "America/New_York;-18000;1173596400:-14400,1194156000:-18000"
    ";3,8,7,7200,-18000,-14400;11,1,7,7200,-14400,-18000"
)
#: A clock that goes forward over midnight: from 23:30 to 00:30.
OVER_MIDNIGHT = "Somewhere;0;84600:3600"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000


def micros(*times: datetime) -> np.ndarray:
    whole = [round((time.replace(tzinfo=UTC) - EPOCH).total_seconds()) * SECOND for time in times]
    return np.array(whole, np.int64)


@pytest.mark.parametrize(("text", "first"), [(BERLIN, 1997), (NEW_YORK, 2008)])
def test_a_zone_with_rules_is_pythons_in_every_hour_around_its_changes(text: str, first: int) -> None:
    zone, table = ZoneInfo(text.partition(";")[0]), ZoneTable(read_zone(text))
    hours = [
        datetime(year, month, 1, tzinfo=UTC) + timedelta(hours=hour)
        for year in (first, 2021, 2038, 2100, 2399, 2400, 2437, 2500, 2837, 9998)
        for month in (3, 10, 11)
        for hour in range(31 * 24)
    ]
    shown = table.local(micros(*hours))
    expected = micros(*(hour.astimezone(zone).replace(tzinfo=None) for hour in hours))
    np.testing.assert_array_equal(shown, expected)


def test_a_time_that_is_left_out_is_later_and_one_that_is_there_twice_is_the_first() -> None:
    table = ZoneTable(read_zone(BERLIN))
    left_out, twice = datetime(2021, 3, 28, 2, 30, tzinfo=UTC), datetime(2021, 10, 31, 2, 30, tzinfo=UTC)
    found = table.instants(micros(left_out, twice))
    np.testing.assert_array_equal(
        found, micros(datetime(2021, 3, 28, 1, 30, tzinfo=UTC), datetime(2021, 10, 31, 0, 30, tzinfo=UTC))
    )


def test_the_offset_before_is_kept_where_it_can_be() -> None:
    table = ZoneTable(read_zone(BERLIN))
    local = micros(*[datetime(2021, 10, 31, 2, 30, tzinfo=UTC)] * 2, datetime(2021, 7, 1, tzinfo=UTC))
    offsets = np.array([3600, 7200, 3600]) * SECOND
    found = table.instants_near(local, offsets)
    expected = micros(
        datetime(2021, 10, 31, 1, 30, tzinfo=UTC),
        datetime(2021, 10, 31, 0, 30, tzinfo=UTC),
        datetime(2021, 6, 30, 22, 0, tzinfo=UTC),
    )
    np.testing.assert_array_equal(found, expected)


def test_a_day_whose_midnight_is_left_out_begins_after_the_gap() -> None:
    table = ZoneTable(read_zone(OVER_MIDNIGHT))
    midnight = micros(datetime(1970, 1, 2, tzinfo=UTC))
    assert table.day_starts(midnight)[0] == 84600 * SECOND
    assert table.instants(midnight)[0] == 86400 * SECOND


def test_a_text_that_is_no_zone_is_an_error() -> None:
    with pytest.raises(EncodingError, match="does not describe a time zone"):
        read_zone("Europe/Berlin;x;")
