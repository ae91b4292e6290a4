"""Plans as bytes: round trips, the golden bytes, and what malformed bytes become."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.builders import statistics_of, tpch
from tests.plan.queries import QUERIES

from wallaby.errors import EncodingError
from wallaby.plan.physical import PhysicalPlan, ScanFragment
from wallaby.plan.planner import plan
from wallaby.plan.serialize import from_bytes, to_bytes
from wallaby.plan.settings import PlanSettings
from wallaby.relations.expression import Literal
from wallaby.relations.relation import Filter
from wallaby.relations.types import STRING, DataType, Kind

GOLDEN = Path(__file__).parent / "fixtures" / "q6.plan.json"


def made(name: str, scale: float = 1) -> PhysicalPlan:
    tables = tpch(scale)
    return plan(QUERIES[name](tables), statistics_of(tables), PlanSettings())


@pytest.mark.parametrize("name", QUERIES)
def test_a_plan_comes_back_as_it_was(name: str) -> None:
    for scale in (0.01, 10):
        before = made(name, scale)
        after = from_bytes(to_bytes(before))
        assert after == before
        assert to_bytes(after) == to_bytes(before)


def test_the_bytes_are_the_golden_ones() -> None:
    assert to_bytes(made("q6", 0.1)) == GOLDEN.read_bytes().strip(), "a new form needs a new VERSION"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**63),
        10**37,
        "text with \ud83d and \x00",
        Decimal("-1.50"),
        0.1,
        float("inf"),
        date(1, 1, 1),
        datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2020, 1, 2),  # noqa: DTZ001 - timestamp_ntz is without a zone
        b"\x00\xff",
        (1, None, (Decimal("1.5"), ("a", b"b")), ()),
    ],
)
def test_every_literal_comes_back_with_its_type(value: object) -> None:
    tables = tpch()
    nested = DataType(Kind.STRUCT, children=(STRING,), names=("a",))
    relation = Filter(tables["nation"].scan, Literal(value, nested))
    before = plan(relation, statistics_of(tables), PlanSettings())
    after = from_bytes(to_bytes(before))
    assert after == before
    scan = after.fragments[0]
    assert isinstance(scan, ScanFragment)
    (condition,) = scan.conditions
    assert isinstance(condition, Literal)
    assert type(condition.value) is type(value)


def test_a_literal_that_no_plan_has_is_refused_when_written() -> None:
    tables = tpch()
    relation = Filter(tables["nation"].scan, Literal(object(), STRING))
    with pytest.raises(EncodingError, match="literal of type object"):
        to_bytes(plan(relation, statistics_of(tables), PlanSettings()))


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"\x80\x04K\x01.", b'{"format":"wallaby-plan","version":99}', b"[" * 100_000],
    ids=["nothing", "an object", "a list", "a pickle", "another version", "a deep nest"],
)
def test_other_bytes_are_no_plan(data: bytes) -> None:
    with pytest.raises(EncodingError):
        from_bytes(data)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        inner += _places(one, (*path, key))
    return inner


WHOLE = json.loads(to_bytes(made("q3", 0.01)))
PLACES = _places(WHOLE)


@settings(deadline=None)
@given(
    st.sampled_from(PLACES[1:]), st.sampled_from([None, True, -1, 10**6, "x", [], [[]], {}, {"is": "Filter"}])
)
def test_a_plan_with_one_wrong_value_is_refused_or_well_typed(place: tuple[Any, ...], wrong: object) -> None:
    spoilt = json.loads(json.dumps(WHOLE))
    at = spoilt
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = wrong
    try:
        plan_read = from_bytes(json.dumps(spoilt).encode())
    except EncodingError:
        return
    assert isinstance(plan_read, PhysicalPlan)
    assert to_bytes(plan_read)
