"""The paper's figures, small: each runs, has its bars, and stands beside the published numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from wallaby import tpch
from wallaby.bench.paper import figures
from wallaby.bench.paper.figures import FIGURES, Figure, Setup
from wallaby.bench.paper.measure import loss_ratio, ratios, run_losses, run_variants
from wallaby.bench.paper.page import drawn, to_json, to_page
from wallaby.bench.paper.published import PUBLISHED, SAID

CORES = sorted(os.sched_getaffinity(0))


class FakeLane:
    """An engine that takes the seconds that its settings say."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.asked: list[str] = []

    def ask(self, name: str, **arguments: Any) -> Any:
        self.asked.append(name)
        if name == "configure":
            self.seconds = arguments["more"].get("seconds", 1.0)
        if name == "ask_killed":
            after = arguments["after_seconds"]
            facts = {"durable_bytes": 2_000_000, "spilled_bytes": 0, "channels_rewound": 3 if after else 0}
            killed = 1.0 if after else None
            return {
                "seconds": self.seconds * (2 if after else 1),
                "killed_at": killed,
                "sum": [["1"]],
                **facts,
            }
        return 0.5 if name == "settle" else {"seconds": self.seconds}


def test_every_figure_has_its_published_numbers() -> None:
    assert FIGURES.keys() == PUBLISHED.keys() == SAID.keys()


def test_variants_take_turns_and_are_compared_by_medians() -> None:
    lane, said = FakeLane(), list[str]()
    variants = {"one": {}, "other": {"seconds": 3.0}}
    times = run_variants(lane, variants, (3, 9), 2, said.append)  # type: ignore[arg-type]
    assert times == {"one": {3: [1.0, 1.0], 9: [1.0, 1.0]}, "other": {3: [3.0, 3.0], 9: [3.0, 3.0]}}
    assert [line.partition(", ")[2].partition(":")[0] for line in said] == ["one", "other", "other", "one"]
    assert ratios(times, "other", "one") == {3: 3.0, 9: 3.0}


def test_a_loss_is_compared_with_the_undisturbed_run_if_it_came_in_time() -> None:
    runs = run_losses(FakeLane(), 9, (0.1, 0.9), 1)  # type: ignore[arg-type]
    assert [run["share"] for run in runs] == [0.1, 0.9]
    assert loss_ratio(runs) == 2.0
    late = [{**run, "disturbed": {**run["disturbed"], "killed_at": None}} for run in runs]
    assert loss_ratio(late) is None


def test_the_table_of_policies_says_what_each_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Lane(FakeLane):
        def end(self) -> None:
            self.asked.append("end")

    monkeypatch.setattr(figures, "started", lambda *_args, **_more: Lane())
    setup = Setup(tmp_path, CORES, "1g", 2, 1, str(tmp_path), lambda _line: None, (3, 9))
    found = figures.policies(setup)
    assert [row[0] for row in found.table[1:]] == [
        *("lineage", "none", "stagewise", "spool", "checkpoint+lineage", "spool+checkpoint")
    ]
    assert found.table[1][1:] == ["1.00", "2.00", "4.0", "0.0", "6", "2 of 2"]


def test_a_page_has_ours_beside_theirs(tmp_path: Path) -> None:
    figure = Figure("Title", "times", {"one": {3: 1.5, 9: 2.0}}, {"ours, mean": 1.73}, {"seconds": {}})
    page = to_page("d", figure, "x.svg", {"data": "sf1"})
    assert "| paper: write-ahead lineage, overhead, geometric mean of 8 queries | 1.15 | 1.06 |  |  |" in page
    assert "**1.73**" in page
    assert "| one | 1.50 | 2.00 |" in page
    assert drawn("d", figure).count("<rect") >= 3
    kept = tmp_path / "x.json"
    kept.write_text(json.dumps(to_json(figure, {"data": "sf1"})))
    assert json.loads(kept.read_text())["series"]["one"] == {"3": 1.5, "9": 2.0}


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_figure_on_a_real_engine(tmp_path: Path) -> None:
    data = tpch.generate(tmp_path / "data", 0.01)
    setup = Setup(data, CORES, "2g", 2, 1, str(tmp_path / "store"), lambda _line: None, (3,))
    found = figures.overheads(setup)
    assert found.series.keys() == {"lineage", "spool", "checkpoint+lineage", "spool+checkpoint"}
    assert all(each.keys() == {3} and each[3] > 0 for each in found.series.values())
