"""The paper's figures, small: each runs, has its bars, and stands beside the published numbers."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from wallaby.cli import app
from wallaby.errors import InvalidArgumentError
from wallaby.lineage.tolerance import POLICIES
from wallaby_lab import tpch
from wallaby_lab.bench.paper import disturbed, setup, undisturbed
from wallaby_lab.bench.paper.measure import ratios, run_lanes, run_told_variants, run_variants
from wallaby_lab.bench.paper.page import drawn, to_json, to_page
from wallaby_lab.bench.paper.published import PUBLISHED, SAID
from wallaby_lab.bench.paper.setup import Figure, Setup
from wallaby_lab.bench.paper.written import FIGURES, HEADING, rewrite, write_figure
from wallaby_lab.commands import bench_paper

CORES = sorted(os.sched_getaffinity(0))
#: The figures in which workers are lost, which takes a cluster.
LOSING = ("e", "f", "policies")


FACTS = {
    "durable_bytes": 2_000_000,
    "durable_seconds": 0.5,
    "checkpoints": 3,
    "commits": 9,
    "lineage_bytes": 1_500,
    "exchanged_bytes": 7_000_000,
    "sent_bytes": 6_000_000,
    "spilled_bytes": 0,
}
ABOUT: dict[str, Any] = {
    "machine": {"cpu": "A processor", "cores": 2, "memory": "8 GiB", "kernel": "6"},
    "data": "sf1",
    "workers": "4",
}


class FakeLane:
    """An engine that takes the seconds that its settings say."""

    what, start_seconds = "a stand-in", 0.0

    def __init__(self, seconds: float = 1.0, answer_after_a_loss: str = "1") -> None:
        self.seconds = seconds
        self.after_a_loss = answer_after_a_loss
        self.asked: list[str] = []

    def ask(self, name: str, **arguments: Any) -> Any:
        self.asked.append(name)
        if name == "configure":
            self.seconds = arguments["more"].get("seconds", 1.0)
        if name == "facts":
            return dict(FACTS)
        if name == "ask_killed":
            after = arguments["after_seconds"]
            return {
                "seconds": self.seconds * (2 if after else 1),
                "killed_at": 1.0 if after else None,
                "sum": [[self.after_a_loss if after else "1"]],
                "channels_rewound": 3 if after else 0,
                **FACTS,
            }
        return 0.5 if name == "settle" else {"seconds": self.seconds}

    def end(self) -> None:
        self.asked.append("end")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Lanes that are started are stand-ins; which they were, and with what."""
    lanes: list[tuple[str, dict[str, Any]]] = []

    def start(name: str, *_args: object, **further: Any) -> FakeLane:
        lanes.append((name, further))
        return FakeLane()

    monkeypatch.setattr(setup, "started", start)
    monkeypatch.setattr(bench_paper, "require_tables", lambda _directory: None)
    return lanes


def fake(tmp_path: Path, **more: Any) -> Setup:
    return Setup(tmp_path, CORES, "1g", 2, 1, str(tmp_path), lambda _line: None, (3, 9), **more)


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


def test_variants_go_forwards_and_backwards_so_that_none_is_always_first() -> None:
    said: list[str] = []
    variants: dict[str, dict[str, Any]] = {name: {} for name in ("dynamic", "static 1", "static 8")}
    run_variants(FakeLane(), variants, (3,), 3, said.append)  # type: ignore[arg-type]
    order = [line.partition(", ")[2].partition(":")[0] for line in said]
    assert order == [*variants, *reversed(variants), *variants]


def test_what_the_engine_tells_of_a_variant_comes_from_a_run_that_does_not_count() -> None:
    lane = FakeLane()
    times, facts = run_told_variants(lane, {"one": {}, "other": {}}, (3, 9), 2, lambda _: None)  # type: ignore[arg-type]
    assert times == {name: {3: [1.0, 1.0], 9: [1.0, 1.0]} for name in ("one", "other")}
    assert facts == {name: {3: FACTS, 9: FACTS} for name in ("one", "other")}
    first, *rounds = " ".join(lane.asked).split("configure")[1:]
    assert first.split() == ["run", "run"]
    assert [each.split() for each in rounds] == [
        *2 * [["run", "run", "run", "run", "facts", "facts"]],
        *2 * [["run", "run", "run", "run"]],
    ], "once for each"


def test_engines_side_by_side_run_each_query_once_before_it_counts() -> None:
    asked: list[tuple[str, int]] = []

    class Lane(FakeLane):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def ask(self, name: str, **arguments: Any) -> Any:
            asked.append((self.name, next(n for n in (3, 9) if arguments["sql"] == tpch.query(n))))
            first = asked.count(asked[-1]) == 1
            return {"seconds": 50.0 if first else 1.0}

    times = run_lanes({"spark": Lane("spark"), "wallaby": Lane("wallaby")}, (3, 9), 2, lambda _: None)  # type: ignore[dict-item]
    assert times == {name: {3: [1.0, 1.0], 9: [1.0, 1.0]} for name in ("spark", "wallaby")}


def test_every_size_of_static_dependencies_is_shown(
    started: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    found = undisturbed.dependencies(fake(tmp_path, static=(1, 8, 32)))
    assert list(found.series) == ["static 1", "static 8", "static 32", "best static"]
    assert found.table[0] == ["query", "dynamic, s", "static 1, s", "static 8, s", "static 32, s", "best K"]
    assert found.table[1] == ["3", "1.00", "1.00", "1.00", "1.00", "1"]
    assert "1, 8, 32" in found.said
    assert [name for name, _ in started] == ["wallaby"]


@pytest.mark.usefixtures("started")
def test_overheads_come_with_what_was_written(tmp_path: Path) -> None:
    found = undisturbed.overheads(fake(tmp_path))
    assert found.table[0] == [
        *("query", "off, s", "exchanged MB", "lineage KB"),
        *("spool MB", "checkpoint MB", "checkpoint+lineage MB", "spool+checkpoint MB"),
        *("checkpoint checkpoints", "checkpoint+lineage checkpoints", "spool+checkpoint checkpoints"),
    ]
    assert found.table[1] == ["3", "1.00", "7.0", "1.5", *4 * ["2.0"], *3 * ["3"]]
    assert found.table[-1] == ["all", "2.00", "14.0", "3.0", *4 * ["4.0"], *3 * ["6"]]
    assert found.raw["facts"]["spool"][9] == FACTS


@pytest.mark.usefixtures("started")
def test_losses_come_with_their_seconds(tmp_path: Path) -> None:
    found = disturbed.recovery(fake(tmp_path))
    assert found.table[0][:3] == ["query", "wallaby undisturbed, s", "wallaby with a loss, s"]
    assert found.table[1:] == [["3", *3 * ["1.00", "2.00"]], ["9", *3 * ["1.00", "2.00"]]]
    assert found.series == {name: {3: 2.0, 9: 2.0} for name in ("wallaby", "run again", "spark")}
    assert (found.workers, found.equal, found.compared) == ("4", 18, 18), (
        "four machines, whatever --workers says"
    )
    later = disturbed.case_study(fake(tmp_path))
    assert later.table[1] == ["wallaby", "1.00", *5 * ["2.00"]]
    assert (later.workers, later.equal, later.compared) == ("4", 21, 21)


@pytest.mark.usefixtures("started")
def test_the_table_of_policies_says_what_each_costs(tmp_path: Path) -> None:
    found = disturbed.policies(fake(tmp_path))
    assert [row[0] for row in found.table[1:]] == [name for name in POLICIES if name != "off"]
    assert found.table[0][4] == "lineage KB"
    assert found.table[1][1:] == ["1.00", "2.00", "4.0", "3.0", "0.0", "6", "2 of 2", "2 of 2"]
    assert (found.equal, found.compared) == (2 * len(POLICIES),) * 2


def test_every_lane_of_this_engine_is_told_what_to_broadcast(
    started: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    for letter in FIGURES:
        FIGURES[letter](fake(tmp_path, broadcast=0))
    ours = [further for name, further in started if name == "wallaby"]
    assert len(ours) == 1 + 1 + 1 + 1 + 2 + 2 + 3 + 1
    assert all(further["more"]["broadcast"] == 0 for further in ours)
    assert not [further for name, further in started if name == "spark" and "more" in further]


def figure(**more: Any) -> Figure:
    return Figure(
        "Title", "times", {"one": {3: 1.5, 9: 2.0}}, {"ours, mean": 1.73}, {"seconds": {}}, "4", **more
    )


def test_a_page_has_ours_beside_theirs(tmp_path: Path) -> None:
    page = to_page("d", figure(), "x.svg", ABOUT)
    assert "| paper: write-ahead lineage, overhead, geometric mean of 8 queries | 1.15 | 1.06 |  |  |" in page
    assert "**1.73**" in page
    assert "| one | 1.50 | 2.00 |" in page
    assert drawn("d", figure()).svg().count('id="bar-') == sum(map(len, figure().series.values())) > 1
    kept = tmp_path / "x.json"
    kept.write_text(json.dumps(to_json(figure(), ABOUT)))
    assert json.loads(kept.read_text())["series"]["one"] == {"3": 1.5, "9": 2.0}


def test_a_page_says_where_when_and_from_what_it_was_measured_and_how_many_answers_were_wrong() -> None:
    about = {**ABOUT, "broadcast": 0, "checkpoint_seconds": 0.5, "commit": "abc", "date": "2026-01-02"}
    page = to_page("d", figure(equal=7, compared=8), "x.svg", about)
    assert page.startswith("# (d) Title, joins broadcast up to 0 bytes, checkpoints every 0.5 s\n")
    assert (
        "A processor, 2 cores, 8 GiB, Linux 6; data sf1, workers 4, checkpoints every 0.5 s, "
        "joins broadcast up to 0 bytes, commit abc, 2026-01-02." in page
    )
    assert "7 of 8. **The others are wrong.**" in page


@pytest.mark.parametrize("letter", FIGURES)
@pytest.mark.usefixtures("started")
def test_the_command_writes_a_figure_as_page_drawings_and_raw_figures(tmp_path: Path, letter: str) -> None:
    page = tmp_path / "evaluation.md"
    page.write_text(f"# Evaluation\n\nBefore.\n\n{HEADING}\n\nNothing yet.\n")
    out = tmp_path / "docs" / "out"
    options = ["--figure", letter, "--rounds", "1", "--out", str(out), "--page", str(page)]
    ran = CliRunner().invoke(app, ["bench", "paper", str(tmp_path), *options])
    assert ran.exit_code == 0, ran.output
    assert {path.name for path in out.iterdir()} == {
        f"paper-{letter}.{kind}" for kind in ("json", "md", "png", "svg")
    }
    found = json.loads((out / f"paper-{letter}.json").read_text())
    assert found["workers"] == {"g": "1, 2, 4"}.get(letter, "4" if letter in LOSING else "2")
    assert found["machine"]["cores"]
    assert found["date"] == datetime.now(UTC).date().isoformat()
    assert found["series"]
    assert all(value > 0 for bars in found["series"].values() for value in bars.values())
    assert (out / f"paper-{letter}.svg").read_text().count("<svg") == 1
    pixels = imread(out / f"paper-{letter}.png")
    assert pixels.shape[1:] == (2000, 4)
    assert len({tuple(pixel) for pixel in pixels[::8, ::8].reshape(-1, 4).tolist()}) > 3, (
        "bars, lines and texts"
    )
    told = page.read_text()
    assert f"{found['commit']}, {found['date']}." in told
    assert told.startswith("# Evaluation\n\nBefore.\n")
    assert f"### ({letter}) {found['title']}" in told
    assert f"(docs/out/paper-{letter}.svg)" in told
    assert "Nothing yet" not in told


@pytest.mark.usefixtures("started")
def test_figures_with_other_joins_and_checkpoints_stand_beside_the_usual_ones(tmp_path: Path) -> None:
    page, out = tmp_path / "evaluation.md", tmp_path / "out"
    page.write_text(f"{HEADING}\n")
    for options in ([], ["--broadcast", "0", "--checkpoint", "0.5"]):
        command = ["bench", "paper", str(tmp_path), "--figure", "d", "--out", str(out), "--page", str(page)]
        ran = CliRunner().invoke(app, [*command, *options])
        assert ran.exit_code == 0, ran.output
    usual, other = json.loads((out / "paper-d.json").read_text()), "paper-d-broadcast-0-checkpoint-0.5"
    assert (usual.get("broadcast"), usual["checkpoint_seconds"]) == (None, 2.0)
    found = json.loads((out / f"{other}.json").read_text())
    assert (found["broadcast"], found["checkpoint_seconds"]) == (0, 0.5)
    assert (out / f"{other}.svg").exists()
    told = page.read_text()
    headings = [line for line in told.splitlines() if line.startswith("###")]
    title = f"### (d) {usual['title']}"
    assert headings == [title, f"{title}, joins broadcast up to 0 bytes, checkpoints every 0.5 s"]
    assert "(out/paper-d.svg)" in told
    assert f"(out/{other}.svg)" in told


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("letter", LOSING)
def test_a_wrong_answer_is_counted_on_the_page_and_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, letter: str
) -> None:
    monkeypatch.setattr(setup, "started", lambda *_args, **_more: FakeLane(answer_after_a_loss="2"))
    command = ["bench", "paper", str(tmp_path), "--figure", letter, "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, [*command, "--query", "9", "--rounds", "1"])
    assert ran.exit_code == 1
    assert "WRONG" in ran.output
    found = json.loads((tmp_path / "out" / f"paper-{letter}.json").read_text())
    assert found["equal"] < found["compared"]
    page = (tmp_path / "out" / f"paper-{letter}.md").read_text()
    assert f"{found['equal']} of {found['compared']}. **The others are wrong.**" in page


def test_a_page_without_the_heading_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Another\n")
    with pytest.raises(InvalidArgumentError, match="no heading"):
        rewrite(page, tmp_path)
    assert page.read_text() == "# Another\n"


@pytest.mark.usefixtures("started")
def test_a_page_that_shows_another_directorys_figures_is_left_alone(tmp_path: Path) -> None:
    page, large, small = tmp_path / "evaluation.md", tmp_path / "paper-sf10", tmp_path / "paper-sf1"
    page.write_text(f"{HEADING}\n")
    large.mkdir()
    write_figure(large, "d", figure(), ABOUT)
    rewrite(page, large)
    before = page.read_text()
    command = ["bench", "paper", str(tmp_path), "--figure", "b", "--out", str(small), "--page", str(page)]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code != 0
    assert "paper-sf10" in str(ran.exception) + ran.output
    assert not small.exists(), "it says so before it measures"
    assert page.read_text() == before
    rewrite(page, large)
    assert page.read_text() == before, "and its own may be written again"


def test_a_file_that_cannot_be_read_is_left_out_and_told(tmp_path: Path) -> None:
    page, said = tmp_path / "evaluation.md", list[str]()
    page.write_text(f"{HEADING}\n")
    write_figure(tmp_path, "d", figure(), ABOUT)
    (tmp_path / "predict.json").touch()
    (tmp_path / "paper-b.json").write_text("[]")
    rewrite(page, tmp_path, said.append)
    assert "### (d) Title" in page.read_text()
    assert [line.partition(" is left out")[0] for line in said] == [
        str(tmp_path / "paper-b.json"),
        str(tmp_path / "predict.json"),
    ]


def small(data: Path, store: Path, query: int, rounds: int = 1) -> Setup:
    return Setup(data, CORES, "4g", 2, rounds, str(store), lambda _line: None, (query,), (1, 2), (1, 8))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("paper") / "data", 0.01)


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query over it takes long enough that somebody can be lost on the way."""
    return tpch.generate(tmp_path_factory.mktemp("larger") / "data", 0.1)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_figure_on_a_real_engine(data: Path, tmp_path: Path) -> None:
    frequent = replace(small(data, tmp_path / "store", 3), broadcast=0, checkpoint_seconds=0.0)
    found = undisturbed.overheads(frequent)
    assert found.series.keys() == {"lineage", "spool", "checkpoint", "checkpoint+lineage", "spool+checkpoint"}
    assert all(each.keys() == {3} and each[3] > 0 for each in found.series.values())
    facts = {name: of[3] for name, of in found.raw["facts"].items()}
    assert {name for name, of in facts.items() if of["checkpoints"]} == {
        "checkpoint",
        "checkpoint+lineage",
        "spool+checkpoint",
    }
    assert {name for name, of in facts.items() if of["durable_bytes"]} == facts.keys() - {"off", "lineage"}
    assert {name for name, of in facts.items() if of["lineage_bytes"]} == facts.keys() - {"off", "checkpoint"}
    assert all(of["exchanged_bytes"] > 0 for of in facts.values())


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize("letter", [each for each in FIGURES if each not in (*LOSING, "d")])
def test_every_figure_on_real_engines(data: Path, tmp_path: Path, letter: str) -> None:
    found = FIGURES[letter](small(data, tmp_path / "store", 9))
    assert found.series
    assert all(bars for bars in found.series.values())


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize("letter", LOSING)
def test_every_figure_about_losses_on_real_engines(larger: Path, tmp_path: Path, letter: str) -> None:
    found = FIGURES[letter](small(larger, tmp_path / "store", 9, rounds=2 if letter == "e" else 1))
    assert found.series
    assert all(bars for bars in found.series.values()), "each contender lost somebody in time"
    assert found.equal == found.compared > 0
    raw = found.raw["runs"]
    losses = {name: (by if letter == "f" else by[9])["losses"] for name, by in raw.items()}
    struck = {name: [loss for loss in of if loss["killed_at"] is not None] for name, of in losses.items()}
    if letter == "policies":
        assert any(struck.values())
        assert not losses["off"]
        return
    assert all(struck.values())
    assert any(loss["recoveries"] for loss in struck["wallaby"])
    assert any(loss["restarts"] for loss in struck["run again"])
