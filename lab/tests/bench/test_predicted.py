"""Predictions on the page: ratios by workers beside the paper's, marked unvalidated unless runs showed them right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wallaby.cli import app
from wallaby.errors import InvalidArgumentError
from wallaby_lab import tpch
from wallaby_lab.bench import calibration
from wallaby_lab.bench.paper.predicted import drawn, ratios, to_section
from wallaby_lab.bench.paper.written import HEADING, PREDICTED, rewrite
from wallaby_lab.simulation.predict.known import HALF, PIPELINED, STAGEWISE, STAGEWISE_HALF

LOG = Path(__file__).parents[3] / "tests" / "observe" / "logs" / "recovery.jsonl"


def line(query: str, workers: int, **seconds: float) -> dict[str, Any]:
    return {"query": query, "workers": workers, "seconds": seconds, "rewound": 1}


def found(off: float = 0.2) -> dict[str, Any]:
    few = line("q3", 4, **{PIPELINED: 4.0, STAGEWISE: 5.0, HALF: 5.0, STAGEWISE_HALF: 7.5})
    return {
        "data": "sf10",
        "times": 10,
        "network_bytes_per_second": 1.25e9,
        "store_bytes_per_second": 2e8,
        "gcs_calls_per_second": 20_000.0,
        "detection_seconds": 1.25,
        "snapshot_seconds": 2.0,
        "threads": 2,
        "lines": [few, line("q3", 16, **{PIPELINED: 1.0, STAGEWISE: 2.0})],
        "checks": [
            {"what": STAGEWISE, "query": "q3", "workers": 4, "predicted": 4.0, "measured": 5.0, "off": off}
        ],
        "off": {STAGEWISE: off, PIPELINED: 0.1, HALF: 0.05},
    }


def test_ratios_are_of_what_was_asked_for() -> None:
    assert ratios(found()) == {
        f"(b) {STAGEWISE} over pipelined": {4: pytest.approx(1.25), 16: pytest.approx(2)},
        "(e) killed at 50 % over undisturbed": {4: pytest.approx(1.25)},
        f"(e) {STAGEWISE_HALF}, over undisturbed": {4: pytest.approx(1.5)},
        "(e) the former over the latter": {4: pytest.approx(1.25 / 1.5)},
        "(g) times as fast as on 4 workers": {4: pytest.approx(1), 16: pytest.approx(4)},
    }


def test_a_mean_is_geometric_over_queries() -> None:
    several = found()
    several["lines"] = [
        line("q3", 4, **{PIPELINED: 1, STAGEWISE: 1}),
        line("q9", 4, **{PIPELINED: 1, STAGEWISE: 4}),
    ]
    assert ratios(several)[f"(b) {STAGEWISE} over pipelined"] == {4: pytest.approx(2)}


def test_the_section_has_the_checks_the_ratios_and_the_papers() -> None:
    text = to_section(found(), "predict.svg")
    assert f"| {STAGEWISE} | q3 | 4 | 4.00 | 5.00 | 20% |" in text
    assert f"| (b) {STAGEWISE} over pipelined | 1.25 | 2.00 | 1.26 on 4, 1.22 on 16 | 20% off |" in text
    assert "data 10 times as large as sf10" in text
    assert "10 Gbit/s" in text
    assert "<svg" in drawn(found()).svg()


def test_each_line_is_believed_only_as_far_as_runs_show_it() -> None:
    def said(text: str, start: str) -> str:
        (row,) = (row for row in text.splitlines() if row.startswith(f"| {start}"))
        return row.rpartition(" | ")[2].removesuffix(" |")

    text = to_section(found(), "predict.svg")
    assert said(text, f"(b) {STAGEWISE}") == "20% off"
    assert said(text, "(g)") == "10% off"
    assert said(text, f"(e) {HALF}") == "5% off"
    for of_both in (f"(e) {STAGEWISE_HALF}", "(e) the former"):
        assert said(text, of_both) == "**unvalidated**: no run", "only one of both was checked"
    assert said(to_section(found(0.3), "predict.svg"), f"(b) {STAGEWISE}") == "**unvalidated**: 30% off"


def test_predictions_stand_behind_the_figures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{HEADING}\n\nold\n")
    (tmp_path / PREDICTED).write_text(json.dumps(found()))
    rewrite(page, tmp_path)
    assert page.read_text().startswith(f"# Before\n\n{HEADING}\n\n### Beyond one machine, predicted\n")
    assert "old" not in page.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"page.md", PREDICTED, "predict.svg", "predict.png"}


def test_a_figure_that_one_query_lacks_has_no_mean() -> None:
    several = found()
    several["lines"] = [
        line("q3", 4, **{PIPELINED: 1, "static 8": 2}),
        line("q5", 4, **{PIPELINED: 1}),
        line("q3", 16, **{PIPELINED: 1, "static 8": 3}),
        line("q5", 16, **{PIPELINED: 1, "static 8": 3}),
    ]
    assert ratios(several)["(c) static 8 over dynamic"] == {16: pytest.approx(3)}


def test_several_processes_predict_the_same_in_the_same_order(tmp_path: Path) -> None:
    def predicted(processes: int) -> dict[str, Any]:
        saved = tmp_path / f"{processes}.json"
        arguments = [str(LOG), "--workers", "2", "--workers", "4", "--figure", "g"]
        arguments += ["--processes", str(processes), "--save", str(saved)]
        outcome = CliRunner().invoke(app, ["predict", *arguments], catch_exceptions=False)
        assert outcome.exit_code == 0
        found: dict[str, Any] = json.loads(saved.read_text())
        return found

    one = predicted(1)
    assert [each["workers"] for each in one["lines"]] == [2, 4]
    assert predicted(2) == one


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["log.jsonl", "--runs", "runs"], "--runs applies only to runs over --data"),
        (["log.jsonl", "--broadcast", "0"], "--broadcast applies only to runs over --data"),
        (["log.jsonl", "--query", "3"], "--query applies only to runs over --data"),
        (["log.jsonl", "--policies", "p.json"], "--policies applies only to runs over --data"),
        (["one/log.jsonl", "other/log.jsonl"], "Two logs are named log"),
        (["--data", "data", "--check", "log.jsonl"], "only for event logs"),
        (["--data", "data", "--policies", "no.json"], "not a table of policies"),
        (["log.jsonl", "--page", "page.md"], "written from the file of --save"),
        (["log.jsonl", "--page", "page.md", "--save", "other.json"], "named predict.json"),
    ],
)
def test_what_cannot_be_kept_or_shown_is_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        CliRunner().invoke(app, ["predict", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"data": "sf10"}, "not a table of policies"),
        (
            {"data": "sf10", "workers": "4", "cores": 2, "runs": {"lineage": {"1": [1]}}},
            "not a table of policies",
        ),
        ({"data": "sf1", "workers": "4", "cores": 2, "runs": {}}, "was measured on sf1"),
    ],
)
def test_policies_of_other_data_or_form_are_refused_before_anything_is_run(
    tmp_path: Path, table: dict[str, Any], said: str
) -> None:
    path = tmp_path / "paper-policies.json"
    path.write_text(json.dumps(table))
    arguments = ["predict", "--data", str(tmp_path / "sf10"), "--policies", str(path)]
    with pytest.raises(InvalidArgumentError, match=said):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_runs_are_kept_and_serve_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, logs = tpch.generate(tmp_path / "data", 0.01), tmp_path / "logs"
    first = calibration.run_queries(data, [6], [1], logs, lambda _line: None)
    assert first[6][1].seconds > 0
    monkeypatch.setattr(calibration, "session", None)  # it would fail if anything was run
    assert calibration.run_queries(data, [6], [1], logs, lambda _line: None) == first
    with pytest.raises(TypeError):  # another plan is another run
        calibration.run_queries(data, [6], [1], logs, lambda _line: None, {"broadcast": 0})
