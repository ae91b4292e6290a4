"""Losses: a query undisturbed, and with a machine lost on the way, in the same way for every figure about them.

Wherever a worker is new, at the beginning and in place of one that was lost, the query runs once before it counts. What
a loss costs is told over the median of all undisturbed runs of the measurement, of which there are three at least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from wallaby_lab import tpch
from wallaby_lab.bench.lane import Lane

#: A single run is no measure for others.
UNDISTURBED_MIN: Final = 3

#: Of one query: its runs `undisturbed`, and its `losses`, each with the share of the time at which it came.
Runs = dict[str, list[dict[str, Any]]]
#: What is told of each loss: the usual seconds, and the loss.
Told = Callable[[float, Mapping[str, Any]], None]


def warm(lane: Lane, number: int) -> None:
    """Run a query that does not count."""
    lane.ask("run", sql=tpch.query(number), save=None)


def run_losses(lane: Lane, number: int, shares: Sequence[float], rounds: int, told: Told) -> Runs:
    """A query undisturbed, then with a machine lost at each of these shares of its usual time, so many times."""
    undisturbed: list[dict[str, Any]] = []
    losses: list[dict[str, Any]] = []
    for _ in range(rounds):
        warm(lane, number)
        undisturbed += [run_calm(lane, number) for _ in range(-(-UNDISTURBED_MIN // rounds))]
        for at, share in enumerate(shares):
            if at > 0:
                warm(lane, number)
            losses.append(run_struck(lane, number, share, undisturbed))
            told(usual_seconds(undisturbed), losses[-1])
    return as_runs(undisturbed, losses)


def teller(name: str, number: int, say: Callable[[str], None]) -> Told:
    """Tells each loss in a line."""

    def told(usual: float, loss: Mapping[str, Any]) -> None:
        at = f"killed at {loss['share']:.0%}" if loss["killed_at"] is not None else "over before the kill"
        wrong = "" if loss["equal"] else ", ANOTHER ANSWER"
        say(f"{name}, query {number}: {usual:.2f} s, {at} {loss['seconds']:.2f} s{wrong}")

    return told


def run_calm(lane: Lane, number: int) -> dict[str, Any]:
    """One run undisturbed, with its answer."""
    run: dict[str, Any] = lane.ask("ask_killed", sql=tpch.query(number), after_seconds=0)
    return run


def run_struck(
    lane: Lane, number: int, share: float, undisturbed: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """One run with a loss at a share of the usual time, a new machine, and a wait until everything is whole again."""
    after_seconds = share * usual_seconds(undisturbed)
    disturbed = lane.ask("ask_killed", sql=tpch.query(number), after_seconds=after_seconds)
    return {
        "share": share,
        "kill_after_seconds": round(after_seconds, 3),
        "equal": disturbed.pop("sum") == undisturbed[0]["sum"],
        **disturbed,
        "settle_seconds": round(lane.ask("settle"), 2),
    }


def as_runs(undisturbed: Sequence[Mapping[str, Any]], losses: Sequence[dict[str, Any]]) -> Runs:
    """The same to be kept: instead of an answer, whether it is the first one's."""
    first = undisturbed[0]["sum"]
    calm = [
        {"equal": run["sum"] == first, **{key: value for key, value in run.items() if key != "sum"}}
        for run in undisturbed
    ]
    return {"undisturbed": calm, "losses": list(losses)}


def usual_seconds(undisturbed: Sequence[Mapping[str, Any]]) -> float:
    """What a query takes undisturbed: the median."""
    return float(median(run["seconds"] for run in undisturbed))


def struck(
    runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float | None = None
) -> list[Mapping[str, Any]]:
    """The losses that came in time, at one of the shares or at any."""
    return [
        run
        for run in runs["losses"]
        if run["killed_at"] is not None and (share is None or run["share"] == share)
    ]


def lost_seconds(runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float | None = None) -> float | None:
    """What a query takes with a loss: the median of those that came in time; None if none did."""
    found = struck(runs, share)
    return usual_seconds(found) if found else None


def loss_ratio(runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float | None = None) -> float | None:
    """With a loss over undisturbed, medians; None if no loss came in time."""
    lost = lost_seconds(runs, share)
    return None if lost is None else lost / usual_seconds(runs["undisturbed"])


def answers(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[int, int]:
    """How many answers are that of the first run, which is none of them, and of how many."""
    every = [*runs["undisturbed"][1:], *runs["losses"]]
    return sum(run["equal"] for run in every), len(every)
