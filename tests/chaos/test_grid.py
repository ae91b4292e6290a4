"""A grid goes on where it was left, and its summary hides nothing bad."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallaby.chaos.faults import Fault
from wallaby.chaos.grid import Grid, summary
from wallaby.chaos.run import Outcome, Verdict
from wallaby.errors import InvalidArgumentError


def outcome(query: int, fault: str, verdict: Verdict, seconds: float = 2.0) -> Outcome:
    return Outcome(
        query,
        fault,
        [],
        "",
        True,
        verdict.value,
        seconds=seconds,
        undisturbed_seconds=1.0,
        detect_seconds=0.1,
        stats={"recoveries": 1, "frozen_seconds": 0.01, "channels_rewound": 2},
    )


def test_cells_that_were_run_are_not_run_again(tmp_path: Path) -> None:
    cells = [(1, Fault("commit: kill")), (1, Fault("commit: kill after")), (9, Fault("commit: kill"))]
    Grid(tmp_path).keep(outcome(1, "commit: kill", Verdict.EQUAL))
    assert Grid(tmp_path).missing(cells) == cells[1:]


def test_the_summary_counts_what_struck_and_names_what_is_bad(tmp_path: Path) -> None:
    grid = Grid(tmp_path)
    grid.keep(outcome(1, "a", Verdict.EQUAL))
    grid.keep(outcome(2, "a", Verdict.NOT_REACHED))
    grid.keep(outcome(3, "b", Verdict.DIFFERS, seconds=4.0))
    found = summary(grid.outcomes())
    assert (found["cells"], found["struck"], found["seconds"]) == (3, 2, 8.0)
    assert (found["recovered"], found["channels_rewound"]) == (2, 4), "of what struck only"
    assert found["faults"] == {"a": {"equal": 1, "not reached": 1}, "b": {"DIFFERS": 1}}
    assert [(bad["query"], bad["fault"]) for bad in found["bad"]] == [(3, "b")]
    assert found["overhead_seconds"]["most"] == 3.0


@pytest.mark.parametrize("verdict", [Verdict.DIFFERS, Verdict.FAILED, Verdict.HUNG, Verdict.LEFT_SOMETHING])
def test_whatever_is_not_promised_is_bad(verdict: Verdict) -> None:
    assert not verdict.is_good


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="file"):
        Grid(tmp_path / "file" / "cells")
