"""Losses: every run that counts has warm workers, and what a loss costs is told over all undisturbed runs."""

from __future__ import annotations

from typing import Any

import pytest

from wallaby_lab.bench.losses import answers, loss_ratio, lost_seconds, run_losses, teller, usual_seconds


class FakeLane:
    """Runs take the seconds that are given, in their order; a run on a worker that is new is told apart."""

    def __init__(self, undisturbed: list[float], losses: list[float], answer: str = "1") -> None:
        self._undisturbed, self._losses = iter(undisturbed), iter(losses)
        self.answer = answer
        self.said: list[str] = []
        self._cold = True

    def ask(self, name: str, **arguments: Any) -> Any:
        after = arguments.get("after_seconds")
        if name == "settle":
            self._cold = True
            return 0.5
        self.said.append(("cold " if self._cold else "") + (name if after is None else f"killed {after:g}"))
        self._cold = False
        if name == "run":
            return {"seconds": 99.0}
        seconds = next(self._losses) if after else next(self._undisturbed)
        return {
            "seconds": seconds,
            "killed_at": 1.0 if after and seconds < 50 else None,
            "sum": [[self.answer if after else "1"]],
        }


def test_no_run_that_counts_has_a_new_worker() -> None:
    lane = FakeLane([2.0, 2.0, 4.0, 4.0], [3.0] * 4)
    run_losses(lane, 9, (0.25, 0.5), 2, lambda *_: None)  # type: ignore[arg-type]
    assert lane.said == [
        *("cold run", "killed 0", "killed 0", "killed 0.5", "cold run", "killed 1"),
        *("cold run", "killed 0", "killed 0", "killed 0.75", "cold run", "killed 1.5"),
    ]


@pytest.mark.parametrize(("rounds", "undisturbed"), [(1, 3), (2, 4), (3, 3), (5, 5)])
def test_there_are_three_undisturbed_runs_at_least(rounds: int, undisturbed: int) -> None:
    lane = FakeLane([1.0] * undisturbed, [1.0] * rounds)
    runs = run_losses(lane, 9, (0.5,), rounds, lambda *_: None)  # type: ignore[arg-type]
    assert (len(runs["undisturbed"]), len(runs["losses"])) == (undisturbed, rounds)


def test_a_loss_is_told_over_the_median_of_all_undisturbed_runs_if_it_came_in_time() -> None:
    runs = run_losses(FakeLane([1.0, 9.0, 2.0], [4.0, 6.0, 60.0]), 9, (0.1, 0.5, 0.9), 1, lambda *_: None)  # type: ignore[arg-type]
    assert usual_seconds(runs["undisturbed"]) == 2.0
    assert [loss["kill_after_seconds"] for loss in runs["losses"]] == [0.2, 1.0, 1.8]
    assert (loss_ratio(runs, 0.1), loss_ratio(runs, 0.5), loss_ratio(runs, 0.9)) == (2.0, 3.0, None)
    assert (loss_ratio(runs), lost_seconds(runs)) == (2.5, 5.0), "the last was over before its kill"
    assert not any("sum" in run for run in (*runs["undisturbed"], *runs["losses"])), "answers are not kept"


def test_another_answer_is_counted_and_told() -> None:
    said: list[str] = []
    lane = FakeLane([1.0] * 3, [2.0], answer="2")
    runs = run_losses(lane, 9, (0.5,), 1, teller("wallaby", 9, said.append))  # type: ignore[arg-type]
    assert answers(runs) == (2, 3), "the first is what the others are compared with"
    assert said == ["wallaby, query 9: 1.00 s, killed at 50% 2.00 s, ANOTHER ANSWER"]
