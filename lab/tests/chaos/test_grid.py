"""A grid goes on where it was left, and its summary hides nothing bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wallaby.cli import app
from wallaby.errors import InvalidArgumentError
from wallaby_lab.chaos.faults import ChaosFault
from wallaby_lab.chaos.grid import RunGrid, circumstances, summary, summary_of
from wallaby_lab.chaos.run import RunOutcome, RunVerdict
from wallaby_lab.commands import chaos as commands
from wallaby_lab.provenance import commit, digest


def outcome(query: int, fault: str, verdict: RunVerdict, seconds: float = 2.0) -> RunOutcome:
    return RunOutcome(
        query,
        fault,
        [],
        "",
        True,
        verdict.value,
        seconds=seconds,
        undisturbed_seconds=1.0,
        detect_seconds=0.1,
        stats={"recoveries": 1, "frozen_seconds": 0.01, "channels_rewound": 2, "restarts": 1},
    )


OF = {"sources": "abc", "workers": 3}


def test_cells_that_were_run_are_not_run_again(tmp_path: Path) -> None:
    cells = [
        (1, ChaosFault("commit: kill")),
        (1, ChaosFault("commit: kill after")),
        (9, ChaosFault("commit: kill")),
    ]
    RunGrid(tmp_path, OF).keep(outcome(1, "commit: kill", RunVerdict.EQUAL))
    assert RunGrid(tmp_path, OF).missing(cells) == cells[1:]


@pytest.mark.parametrize("other", [{"sources": "def", "workers": 3}, {"sources": "abc", "workers": 4}])
def test_cells_of_other_code_or_settings_are_run_anew_and_left_alone(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    cells = [(1, ChaosFault("commit: kill"))]
    RunGrid(tmp_path, OF).keep(outcome(1, "commit: kill", RunVerdict.DIFFERS))
    grid = RunGrid(tmp_path, other)
    assert grid.missing(cells) == cells
    assert grid.others() == 1
    grid.keep(outcome(1, "commit: kill", RunVerdict.EQUAL))
    found = summary_of(grid, cells)
    assert (found["of"], found["cells"], found["bad"]) == (other, 1, [])
    assert [bad["verdict"] for bad in summary_of(RunGrid(tmp_path, OF), cells)["bad"]] == ["DIFFERS"]


def test_circumstances_are_the_code_the_tables_and_the_settings(tmp_path: Path) -> None:
    (tmp_path / "lineitem.parquet").write_bytes(b"12345")
    of = circumstances(tmp_path, 3, "", fault_tolerance_policy="spool")
    assert of == {
        "sources": digest(),
        "data": tmp_path.name,
        "data_bytes": 5,
        "workers": 3,
        "master": "",
        "fault_tolerance_policy": "spool",
    }


def test_what_was_not_run_and_what_was_not_reached_are_counted(tmp_path: Path) -> None:
    cells = [(number, ChaosFault("a")) for number in (1, 2, 3)]
    grid = RunGrid(tmp_path, OF)
    grid.keep(outcome(1, "a", RunVerdict.EQUAL))
    grid.keep(outcome(2, "a", RunVerdict.NOT_REACHED))
    grid.keep(outcome(9, "a", RunVerdict.DIFFERS))
    found = summary_of(grid, cells)
    assert [found[name] for name in ("cells_asked_for", "cells", "not_run", "not_reached", "struck")] == [
        *(3, 2, 1, 1, 1)
    ]
    assert not found["bad"], "query 9 was not asked for"
    assert found["restarts"] == 1


def test_the_summary_counts_what_struck_and_names_what_is_bad(tmp_path: Path) -> None:
    grid = RunGrid(tmp_path, OF)
    grid.keep(outcome(1, "a", RunVerdict.EQUAL))
    grid.keep(outcome(2, "a", RunVerdict.NOT_REACHED))
    grid.keep(outcome(3, "b", RunVerdict.DIFFERS, seconds=4.0))
    found = summary(grid.outcomes([(1, ChaosFault("a")), (2, ChaosFault("a")), (3, ChaosFault("b"))]))
    assert (found["cells"], found["struck"], found["seconds"]) == (3, 2, 8.0)
    assert (found["recovered"], found["channels_rewound"]) == (2, 4), "of what struck only"
    assert found["faults"] == {"a": {"equal": 1, "not reached": 1}, "b": {"DIFFERS": 1}}
    assert [(bad["query"], bad["fault"]) for bad in found["bad"]] == [(3, "b")]
    assert found["overhead_seconds"]["most"] == 3.0


@pytest.mark.parametrize(
    "verdict", [RunVerdict.DIFFERS, RunVerdict.FAILED, RunVerdict.HUNG, RunVerdict.LEFT_SOMETHING]
)
def test_whatever_is_not_promised_is_bad(verdict: RunVerdict) -> None:
    assert not verdict.is_good


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="file"):
        RunGrid(tmp_path / "file" / "cells", OF)


def test_the_command_says_what_was_not_reached_and_what_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_one(
        cells: list[tuple[int, ChaosFault]], grid: RunGrid, *_args: object, **_settings: object
    ) -> None:
        grid.keep(outcome(*(cells[0][0], cells[0][1].name), RunVerdict.NOT_REACHED))

    monkeypatch.setattr(commands, "_run", run_one)
    asked = ["--query", "6", "--fault", "commit: kill", "--fault", "execute: kill"]
    ran = CliRunner().invoke(
        app, ["chaos", *asked, "--data", str(tmp_path), "--out", str(tmp_path), "--limit", "1"]
    )
    assert ran.exit_code == 0, ran.output
    assert "NOT REACHED in 1 runs: they show nothing" in ran.output
    assert "NOT RUN yet: 1 of 2 cells" in ran.output
    found = json.loads((tmp_path / "summary.json").read_text())
    assert (found["not_reached"], found["not_run"]) == (1, 1)
    assert found["of"]["fault_tolerance_policy"] == "lineage"
    assert found["commit"] == commit()
