"""Every kind of fault can strike at every fail point."""

from __future__ import annotations

import pytest

from wallaby.lineage.effects import FailPoint
from wallaby_lab.simulation.drawn.faults import FaultKind
from wallaby_lab.simulation.grid import FaultGrid, as_markdown, prepared, reached_points, run_grid
from wallaby_lab.simulation.run import run


@pytest.mark.parametrize(
    "pair",
    [
        (FailPoint.FAIL, FaultKind.PICKY_WIRE),
        (FailPoint.COMPLAIN, FaultKind.CRASH),
        (FailPoint.DRAIN, FaultKind.REPLY_LOST),
        (FailPoint.COLLECT, FaultKind.RELEASE),
        (FailPoint.REGISTER, FaultKind.RELEASE),
        (FailPoint.REMOVE, FaultKind.RELEASE),
        (FailPoint.RESTORE_STATE, FaultKind.CRASH),
        (FailPoint.REREAD_DELIVER, FaultKind.PICKY_WIRE),
    ],
    ids=str,
)
def test_a_fault_strikes_where_a_query_seldom_comes(pair: tuple[FailPoint, FaultKind]) -> None:
    for seed in range(30):
        scenario, faults = prepared(seed, *pair)
        result = run(seed, scenario, faults)
        assert result.failure is None, seed
        if pair in result.tally.fired:
            return
    pytest.fail(f"{pair} did not meet")


def test_the_table_has_a_row_for_each_point_and_tells_what_is_empty() -> None:
    struck = {(point, kind): (1, 2) for point in FailPoint for kind in FaultKind}
    struck[FailPoint.JOIN, FaultKind.CANCEL] = (0, 9)
    grid = FaultGrid(struck, ())
    assert grid.empty == [(FailPoint.JOIN, FaultKind.CANCEL)]
    rows = [line for line in as_markdown(grid).splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(FailPoint)
    assert all(row.count("|") == len(FaultKind) + 2 for row in rows)


def test_a_grid_goes_on_after_the_pairs_that_it_has_and_keeps_what_it_finds() -> None:
    points = reached_points()
    struck = {(point, kind): (2, 2) for point in points for kind in FaultKind}
    del struck[points[0], FaultKind.CRASH]
    before = FaultGrid.of_json(FaultGrid(struck, ()).as_json())
    kept: list[FaultGrid] = []
    found = run_grid(before=before, keep=kept.append)
    assert kept == [found]
    assert found.struck.keys() == {(point, kind) for point in points for kind in FaultKind}
    hits, seeds = found.struck[points[0], FaultKind.CRASH]
    assert hits == 2 <= seeds
    assert not found.failures
