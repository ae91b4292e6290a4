"""Means, intervals, and what follows from the runs of the other benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from wallaby_lab.bench.blocks import blocks_page
from wallaby_lab.bench.blocks.block import best_of
from wallaby_lab.bench.figures import geometric_mean, ratio_interval
from wallaby_lab.bench.losses import Runs
from wallaby_lab.bench.overhead import overhead_figures, overhead_page
from wallaby_lab.bench.recovery import recovery_figures, recovery_page
from wallaby_lab.bench.scaling import scaling_page


def test_the_geometric_mean() -> None:
    assert geometric_mean([1, 4, 2]) == pytest.approx(2)
    assert math.isnan(geometric_mean([]))


def test_the_interval_of_ratios_is_students() -> None:
    # The logarithms are 0, 1 and 2: mean 1, standard deviation 1, t of two degrees of freedom 4.303.
    middle, low, high = ratio_interval([1, math.e, math.e**2])
    half = 4.303 / math.sqrt(3)
    assert (math.log(middle), math.log(low), math.log(high)) == pytest.approx((1, 1 - half, 1 + half))
    assert ratio_interval([2.0, 2.0, 2.0]) == pytest.approx((2, 2, 2))
    assert math.isnan(ratio_interval([2.0])[1])
    assert ratio_interval([1.0, 1.1] * 40)[1] > 1, "for many pairs too"


FACTS = {"tasks": 10, "commits": 8, "store_calls": 20, "lineage_bytes": 100}


def test_overhead_is_the_ratio_of_pairs() -> None:
    times = {"on": {"1": [1.1, 2.2], "6": [1.1, 1.1]}, "off": {"1": [1.0, 2.0], "6": [1.0, 1.0]}}
    facts = {"1": FACTS, "6": FACTS}
    figures = overhead_figures(times, facts)
    assert figures["total"] == pytest.approx((1.1, 1.1, 1.1))
    assert figures["geometric_mean"][0] == pytest.approx(1.1)
    assert (figures["lineage_bytes_per_task"], figures["store_calls_per_task"]) == (12.5, 2.0)
    report = {"seconds": times, "breakdown": facts, "contenders": ["with", "without"], **figures}
    assert "1.1000 (95 %: 1.1000 to 1.1000)" in overhead_page(report, "Title")


def loss(seconds: float, killed: float | None = 100.0, **facts: float) -> dict[str, Any]:
    return {"share": 0.5, "seconds": seconds, "killed_at": killed, "equal": True, **facts}


def runs(undisturbed: Sequence[float], *losses: dict[str, Any]) -> Runs:
    calm = [{"seconds": seconds, "equal": True} for seconds in undisturbed]
    return {"undisturbed": calm, "losses": list(losses)}


def test_what_a_loss_costs_is_divided() -> None:
    told = {"froze_at": 100.5, "frozen_seconds": 0.25, "again_seconds": 1.0}
    several = runs(
        (4.0, 3.0, 5.0),
        loss(6.0, **told),
        loss(6.0, **told),
        loss(4.0, killed=None),  # it was over before the kill: it says nothing
    )
    late = runs((1.0,), loss(1.0, killed=None))
    theirs = {"3": runs((10.0,), {**loss(20.0), "equal": False}), "6": late}
    found = recovery_figures({"wallaby": {"3": several}, "spark": theirs}, cores=2)
    ours = found["figures"]["wallaby"]["3"]
    assert (ours["ratio"], ours["lost"], ours["struck"]) == (1.5, 2.0, 2)
    assert [ours[key] for key in ("detection", "frozen", "again", "waiting")] == [0.5, 0.25, 0.5, 0.75]
    assert found["geometric_means"] == pytest.approx({"wallaby": 1.5, "spark": 2.0})
    page = recovery_page({**found, "contenders": {"wallaby": "Wallaby"}, "cores": 2}, "Title")
    assert "| 3 | 4.00 | 6.00 | 1.50 | 2.00 | 2 of 3 | 5 of 5 | 0.50 | 0.25 | 0.50 | 0.75 |" in page
    assert "| 3 | 10.00 | 20.00 | 2.00 | 10.00 | 1 of 1 | 0 of 1 |" in page
    assert "| 6 | 1.00 |  |  |  | 0 of 1 | 1 of 1 |" in page, "and is in no mean"
    assert "spark.network.timeout=10s" in page


def cell(data: str, workers: int, seconds: float) -> dict[str, Any]:
    parts = ("scan_seconds", "kernel_seconds", "partition_seconds", "checksum_seconds")
    counts = ("stages", "channels", "splits", "exchanged_bytes", "sent_bytes", "spilled_bytes")
    named = {"data": data, "workers": workers, "query": 3, "seconds": seconds}
    return {**named, **dict.fromkeys(parts, 0.25), **dict.fromkeys(counts, 4), **FACTS}


def test_growth_is_shown_against_the_first() -> None:
    cells = [cell("sf1", 1, 1.0), cell("sf1", 2, 1.5), cell("sf3", 1, 3.0), cell("sf3", 2, 3.0)]
    page = scaling_page({"cells": cells}, "Title")
    assert "| sf1 | 1.00 | 1.00 | 1.00 | 1.50 | 1.50 | 1.00 |" in page
    assert "| sf3 | 3.00 | 1.00 | 3.00 | 3.00 | 1.00 | 2.00 |" in page
    assert "| sf3 | 2 | 3 | 3.00 | 4 | 4 | 4 | 10 | 1.00 | 100.0 | 2.00 | 10.0 |" in page


def test_a_block_stands_beside_its_reference() -> None:
    block = {"name": "push", "reference": "bare", "seconds": 2.0, "bare_seconds": 1.0}
    page = blocks_page({"blocks": [{**block, "amount": 4.0, "unit": "GB"}, block]}, "Title")
    assert "| push | 2.0 GB/s | bare | 4.0 GB/s | 2.00 |" in page
    assert "| push | 2.00 s | bare | 1.00 s | 2.00 |" in page


def test_works_take_turns_and_the_first_turn_does_not_count() -> None:
    calls: list[str] = []
    times = best_of(2, lambda: calls.append("a"), lambda: calls.append("b"))
    assert calls == ["a", "b"] * 3
    assert len(times) == 2
