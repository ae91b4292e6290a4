"""Figures of several runs add up, and no seed counts twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby_lab.differential import report
from wallaby_lab.differential.campaign import CampaignResult
from wallaby_lab.differential.entries import Difference, EntryTally, groups
from wallaby_lab.differential.generated.examples import AGGREGATED, EXAMPLES
from wallaby_lab.differential.generated.expand import Expression
from wallaby_lab.differential.page import page


def part(begin: int, end: int, *, different: tuple[int, ...] = ()) -> dict[str, Any]:
    found = CampaignResult(
        queries=end - begin, differences=[(seed, "2 rows instead of 1", "…") for seed in different]
    )
    return report.figures(found, begin, end, "abc")


def test_runs_stand_beside_each_other_and_the_next_seed_is_behind_them() -> None:
    first = report.with_queries({}, report.QUERIES, part(25, 50))
    both = report.with_queries(first, report.QUERIES, part(0, 25))
    assert [one["seeds"] for one in both["queries"]] == [[0, 25], [25, 50]]
    assert report.next_seed(both, report.QUERIES) == 50
    assert report.next_seed(both, report.LOSSES) == 0
    assert "50 queries (with abc)" in page(both)


def test_a_run_takes_the_place_of_those_within_it() -> None:
    grown = report.with_queries({}, report.QUERIES, part(0, 25))
    grown = report.with_queries(grown, report.QUERIES, part(0, 75))
    assert [one["seeds"] for one in grown["queries"]] == [[0, 75]]


def test_seeds_that_would_count_twice_are_refused() -> None:
    known = report.with_queries({}, report.QUERIES, part(0, 50))
    with pytest.raises(InvalidArgumentError, match="from 25 to 74"):
        report.with_queries(known, report.QUERIES, part(25, 75))


def test_a_seed_that_is_not_different_any_more_is_mended() -> None:
    known = report.with_queries({}, report.QUERIES, part(0, 50, different=(7, 9)))
    still = report.with_queries(known, report.QUERIES, part(7, 8, different=(7,)))
    assert still == known
    mended = report.with_queries(known, report.QUERIES, part(7, 8))
    assert mended["queries"][0]["different"] == [9]
    assert mended["queries"][0]["queries"] == 50
    assert "Different: 9; different before, and fixed: 7." in page(mended)


def test_entries_lack_until_they_were_equal() -> None:
    bad = EntryTally(
        differences=[Difference(Expression("Upper", "upper(a)"), "select", {}, "2 rows instead of 1")]
    )
    known = report.with_entries({}, {"Lower": EntryTally(compared=3), "Upper": bad}, "abc")
    assert report.not_equal_yet(known, ["Lower", "Upper", "Trim"]) == ["Upper", "Trim"]
    assert "Different: Upper." in page(known)
    for commit in ("def", "ghi"):
        known = report.with_entries(known, {"Upper": EntryTally(compared=3)}, commit)
        assert report.not_equal_yet(known, ["Lower", "Upper", "Trim"]) == ["Trim"]
        assert "Different: none; different before, and fixed: Upper." in page(known)


def test_a_file_holds_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert report.read(path) == {}
    report.write(path, {"queries": []})
    assert report.read(path) == {"queries": []}
    assert [one.name for one in tmp_path.iterdir()] == ["report.json"]


def test_entries_are_compared_in_groups_and_aggregates_last() -> None:
    made = list(groups(list(EXAMPLES), 0))
    flat = [name for group in made for name in group]
    assert sorted(flat) == sorted(EXAMPLES)
    assert len(made) > 20
    first = next(place for place, name in enumerate(flat) if name in AGGREGATED)
    assert all(name in AGGREGATED for name in flat[first:])
