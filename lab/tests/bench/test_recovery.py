"""The order in which losses are measured, with lanes that only say what they were asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wallaby.cli import app
from wallaby_lab.bench import recovery
from wallaby_lab.bench.lane import ContenderError
from wallaby_lab.commands import bench


class FakeLane:
    """Takes 4 s, and 6 s with a loss; one called `failing` fails in its first query."""

    def __init__(self, log: list[str], name: str, data: Path, memory: str) -> None:
        self._log = log
        self.name, self.what, self.start_seconds = name, name.title(), 1.0
        log.append(f"{name} starts on {data.name} with {memory}")

    def await_start(self) -> None:
        pass

    def ask(self, name: str, **arguments: Any) -> Any:
        after = arguments.get("after_seconds")
        self._log.append(f"{self.name}: {name}" + (f" {after}" if after is not None else ""))
        if self.name == "failing":
            raise ContenderError("it has ended")
        if name == "ask_killed":
            return {"seconds": 6.0 if after else 4.0, "killed_at": 1.0 if after else None, "sum": [["1"]]}
        return 0.5 if name == "settle" else {"seconds": 4.0}

    def end(self) -> None:
        self._log.append(f"{self.name} ends")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []

    def lane(name: str, data: Path, _cores: object, memory: str, *, cluster: bool) -> FakeLane:
        assert cluster
        return FakeLane(said, name, data, memory)

    monkeypatch.setattr(recovery, "Lane", lane)
    return said


def test_engines_are_measured_one_after_the_other_each_on_its_tables(log: list[str]) -> None:
    tables = {"wallaby": Path("sf30"), "spark": Path("sf10")}
    said: list[str] = []
    report = recovery.run_recovery(tables, (3,), (0, 1), "16g", 2, said.append)

    def steps(name: str, data: str) -> list[str]:
        calm = 2 * [f"{name}: ask_killed 0"]  # twice in each of two repetitions: three at least
        once = [f"{name}: run", *calm, f"{name}: ask_killed 2.0", f"{name}: settle"]
        asked = [f"{name}: run", *once, *once]
        return [f"{name} starts on {data} with 16g", *asked, f"{name} ends"]

    assert log == [*steps("wallaby", "sf30"), *steps("spark", "sf10")]
    assert report["contenders"] == {"wallaby": "Wallaby; data sf30", "spark": "Spark; data sf10"}
    assert report["geometric_means"] == pytest.approx({"wallaby": 1.5, "spark": 1.5})
    assert said[-1] == "spark, query 3: 4.00 s, killed at 50% 6.00 s"


def test_an_engine_that_fails_is_ended(log: list[str]) -> None:
    with pytest.raises(ContenderError):
        recovery.run_recovery({"failing": Path("sf30")}, (3,), (0, 1), "16g", 1, lambda _: None)
    assert log[-1] == "failing ends"


@pytest.mark.parametrize(("equal", "code"), [(True, 0), (False, 1)])
def test_a_wrong_answer_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, equal: bool, code: int
) -> None:
    runs = {
        "undisturbed": [{"seconds": 4.0, "equal": True}],
        "losses": [{"share": 0.5, "seconds": 6.0, "killed_at": 1.0, "equal": equal}],
    }
    report = {"contenders": {}, "cores": 1, **recovery.recovery_figures({"wallaby": {"3": runs}}, 1)}
    monkeypatch.setattr(recovery, "run_recovery", lambda *_args: report)
    monkeypatch.setattr(bench, "require_tables", lambda _directory: None)
    ran = CliRunner().invoke(app, ["bench", "recovery", str(tmp_path)])
    assert ran.exit_code == code, ran.output
    assert ("1 answers were WRONG." in ran.output) is not equal
