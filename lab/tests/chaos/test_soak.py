"""What a soak concludes from its rounds, and that it goes on where it was."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from wallaby_lab.chaos.faults import all_faults
from wallaby_lab.chaos.run import RunVerdict
from wallaby_lab.chaos.soak import CANCEL, NOTHING, ROUNDS, Round, Soaked, load, save, schedule
from wallaby_lab.chaos.soak_page import page, problems

FIGURES = {
    "keys": 4,
    "queries": 0,
    "driver_threads": 60,
    "driver_files": 200,
    "driver_bytes": 500 << 20,
    "workers": 4,
    "worker_bytes_max": 300 << 20,
    "scratch_folders": 4,
    "scratch_bytes": 0,
    "redis_servers": 1,
}


def a_round(
    fault: str = "a zombie wakes",
    verdict: RunVerdict = RunVerdict.EQUAL,
    struck: str = "SIGSTOP",
    **figures: int,
) -> Round:
    return Round(9, fault, verdict.value, "", 1.0, [struck] if struck else [], {**FIGURES, **figures})


def test_a_soak_in_which_everything_holds_has_no_problems() -> None:
    rounds = [a_round(), a_round(NOTHING, struck=""), a_round(CANCEL, RunVerdict.FAILED_AS_IT_MUST)] * 4
    assert problems(Soaked(60, rounds)) == []
    assert "Everything was as it must be." in page(Soaked(60, rounds), "abc", {"workers": 4})


def test_a_bad_verdict_is_a_problem() -> None:
    assert "DIFFERS" in problems(Soaked(1, [a_round(verdict=RunVerdict.DIFFERS)]))[0]
    assert "HUNG" in problems(Soaked(1, [a_round(verdict=RunVerdict.HUNG)]))[0]


def test_a_fault_that_never_struck_is_a_problem_and_one_that_missed_once_is_none() -> None:
    missed = a_round(verdict=RunVerdict.NOT_REACHED, struck="")
    assert problems(Soaked(1, [missed])) == ["a zombie wakes: never struck, in 1 rounds"]
    assert problems(Soaked(1, [missed, a_round()])) == []


def test_memory_that_grows_is_a_problem_and_one_large_round_is_none() -> None:
    growing = [a_round(driver_bytes=(500 + 20 * at) << 20) for at in range(12)]
    assert any("driver_bytes grew" in line for line in problems(Soaked(1, growing)))
    jumping = [a_round(driver_bytes=(900 if at == 11 else 500) << 20) for at in range(12)]
    assert problems(Soaked(1, jumping)) == []
    workers = [a_round(worker_bytes_max=(300 + 20 * at) << 20) for at in range(12)]
    assert any("worker_bytes_max grew" in line for line in problems(Soaked(1, workers)))


def test_a_larger_budget_is_no_growth() -> None:
    small = [replace(a_round(worker_bytes_max=200 << 20), memory="128m")] * 9
    large = [replace(a_round(worker_bytes_max=900 << 20), memory="1g")] * 9
    assert problems(Soaked(1, small + large)) == []
    assert "| 1g | 9 | 900 | 0 |" in page(Soaked(1, small + large), "abc", {"workers": 4})


def test_what_is_left_after_any_round_is_a_problem() -> None:
    for left in (
        a_round(keys=6),
        a_round(queries=1),
        a_round(redis_servers=2),
        a_round(scratch_folders=5),
    ):
        assert len(problems(Soaked(1, [a_round(), left]))) == 1
    threads = [a_round(driver_threads=60 + 3 * at) for at in range(12)]
    assert any("driver_threads" in line for line in problems(Soaked(1, threads)))


def test_every_fault_of_the_schedule_exists_and_comes_once_before_any_comes_again() -> None:
    assert set(ROUNDS) - {NOTHING, CANCEL} <= set(all_faults())
    budgets = ("128m", "1g")
    drawn = list(islice(schedule(7, (3, 9), budgets), 3 * len(ROUNDS)))
    assert {fault for _, fault, _ in drawn[: len(ROUNDS)]} == set(ROUNDS)
    assert [budget for _, _, budget in drawn[:: len(ROUNDS)]] == ["128m", "1g", "128m"]
    assert list(islice(schedule(7, (3, 9), budgets, 5), 10)) == drawn[5:15], "it goes on where it was"


def test_a_report_is_read_again_if_the_circumstances_are_the_same(tmp_path: Path) -> None:
    path, found = tmp_path / "reports" / "soak.json", Soaked(12.5, [a_round(), a_round(CANCEL)])
    save(path, "abc", {"workers": 4}, found)
    assert load(path, {"workers": 4}) == found
    assert load(path, {"workers": 3}) == Soaked()
    assert load(tmp_path / "nothing.json", {"workers": 4}) == Soaked()
