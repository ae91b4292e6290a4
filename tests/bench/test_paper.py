"""The paper's figures, small: each runs, has its bars, and stands beside the published numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from wallaby import tpch
from wallaby.bench.paper import figures
from wallaby.bench.paper.figures import FIGURES, Figure, Setup
from wallaby.bench.paper.measure import loss_ratio, ratios, run_losses, run_variants
from wallaby.bench.paper.page import drawn, to_json, to_page
from wallaby.bench.paper.published import PUBLISHED, SAID
from wallaby.bench.paper.written import HEADING, rewrite
from wallaby.cli import app
from wallaby.commands import bench_paper
from wallaby.errors import InvalidArgumentError

CORES = sorted(os.sched_getaffinity(0))
#: The figures in which workers are lost, which takes a cluster.
LOSING = ("e", "f", "policies")


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
    assert lane.asked == ["configure", "run", "run", *4 * ["configure", *4 * ["run"]]], (
        "the first do not count"
    )
    assert ratios(times, "other", "one") == {3: 3.0, 9: 3.0}


def test_a_loss_is_compared_with_the_undisturbed_run_if_it_came_in_time() -> None:
    runs = run_losses(FakeLane(), 9, (0.1, 0.9), 1)  # type: ignore[arg-type]
    assert [run["share"] for run in runs] == [0.1, 0.9]
    assert loss_ratio(runs) == 2.0
    late = [{**run, "disturbed": {**run["disturbed"], "killed_at": None}} for run in runs]
    assert loss_ratio(late) is None


def test_the_table_of_policies_says_what_each_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(figures, "started", lambda *_args, **_more: EndingLane())
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


class EndingLane(FakeLane):
    what, start_seconds = "a stand-in", 0.0

    def end(self) -> None:
        self.asked.append("end")


@pytest.mark.parametrize("letter", FIGURES)
def test_the_command_writes_a_figure_as_page_drawings_and_raw_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, letter: str
) -> None:
    monkeypatch.setattr(figures, "started", lambda *_args, **_more: EndingLane())
    monkeypatch.setattr(bench_paper, "require_tables", lambda _directory: None)
    page = tmp_path / "evaluation.md"
    page.write_text(f"# Evaluation\n\nBefore.\n\n{HEADING}\n\nNothing yet.\n")
    out = tmp_path / "docs" / "out"
    options = ["--figure", letter, "--rounds", "1", "--out", str(out), "--page", str(page)]
    ran = CliRunner().invoke(app, ["bench", "paper", str(tmp_path), *options])
    assert ran.exit_code == 0, ran.output
    found = json.loads((out / f"paper-{letter}.json").read_text())
    assert found["series"]
    assert all(value > 0 for bars in found["series"].values() for value in bars.values())
    assert (out / f"paper-{letter}.svg").read_text().startswith("<svg")
    with Image.open(out / f"paper-{letter}.png") as image:
        assert image.size == (2000, 720)
        assert len(image.convert("RGB").getcolors(1 << 24) or ()) > 3, "bars, lines and texts"
    told = page.read_text()
    assert told.startswith("# Evaluation\n\nBefore.\n")
    assert f"### ({letter}) {found['title']}" in told
    assert f"(docs/out/paper-{letter}.svg)" in told
    assert "Nothing yet" not in told


def test_a_page_without_the_heading_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Another\n")
    with pytest.raises(InvalidArgumentError, match="no heading"):
        rewrite(page, tmp_path)
    assert page.read_text() == "# Another\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("paper") / "data", 0.01)


def small(data: Path, store: Path, query: int) -> Setup:
    return Setup(data, CORES, "4g", 2, 1, str(store), lambda _line: None, (query,), (1, 2), (1, 8))


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_figure_on_a_real_engine(data: Path, tmp_path: Path) -> None:
    found = figures.overheads(small(data, tmp_path / "store", 3))
    assert found.series.keys() == {"lineage", "spool", "checkpoint+lineage", "spool+checkpoint"}
    assert all(each.keys() == {3} and each[3] > 0 for each in found.series.values())


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "letter",
    [
        pytest.param(letter, marks=[pytest.mark.cluster] if letter in LOSING else [])
        for letter in FIGURES
        if letter != "d"
    ],
)
def test_every_figure_on_real_engines(data: Path, tmp_path: Path, letter: str) -> None:
    found = FIGURES[letter](small(data, tmp_path / "store", 9))
    assert found.series
    runs = [
        run
        for by in found.raw.get("runs", {}).values()
        for each in (by if letter == "f" else by.values())
        for run in ([each] if letter == "f" else each)
        if "disturbed" in run
    ]
    assert all(run["equal"] for run in runs)
    assert bool(runs) is (letter in LOSING)
