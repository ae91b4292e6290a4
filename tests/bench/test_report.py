"""Figures of a benchmark: what is said follows from what was measured, failures and wrong answers included."""

from __future__ import annotations

import math

import pytest

from wallaby.bench.course import Timed
from wallaby.bench.report import geometric_mean, to_json, to_page

COURSE = {
    "contenders": {
        "spark": {"what": "SparkSQL", "start_seconds": 1.0},
        "other": {"what": "Other", "start_seconds": 1.0},
    },
    "results": {
        "spark": {1: Timed([9.0, 4.0, 2.0]), 2: Timed([1.0, 1.0, 1.0]), 3: Timed([1.0])},
        "other": {
            1: Timed([1.0, 2.0, 1.0]),
            2: Timed([4.0, 4.0, 4.0], difference="one row"),
            3: Timed(error="out of memory"),
        },
    },
}


def test_the_geometric_mean() -> None:
    assert geometric_mean([1, 4, 2]) == pytest.approx(2)
    assert math.isnan(geometric_mean([]))


def test_a_page_has_medians_ratios_and_what_went_wrong() -> None:
    rows = [line for line in to_page(COURSE, "A title", data="sf1").splitlines() if line.startswith("| ")]
    cells = {row.split(" | ")[0].strip("| "): row.split(" | ")[1:] for row in rows}
    assert cells["1"][:3] == ["4.00 (9.00)", "1.00 (1.00)", "4.00"]
    assert cells["2"][:3] == ["1.00 (1.00)", "4.00 (4.00) DIFFERS", "0.25"]
    assert cells["3"][:3] == ["1.00 (1.00)", "failed: out of memory", ""]
    assert cells["all"][:3] == ["6.0", "5.0", "**1.00**"]


def test_the_raw_figures_are_all_there() -> None:
    raw = to_json(COURSE, data="sf1")
    assert raw["results"]["spark"]["1"]["seconds"] == [9.0, 4.0, 2.0]
    assert raw["results"]["other"]["3"]["error"] == "out of memory"
    assert raw["machine"]["cores"]
