"""Measure losses: a query undisturbed and with a lost machine, in the same way for all figures about losses.

Whenever a worker is new, at the beginning and after a loss, the query first runs once untimed. The cost of a loss is
relative to the median of all undisturbed runs of the measurement, of which there are at least three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from wallaby_lab import tpch
from wallaby_lab.bench.lane import Lane

#: The minimum number of undisturbed runs.
UNDISTURBED_MIN: Final = 3

#: For one query: its `undisturbed` runs, and its `losses`, each with the share of the time at which it struck.
Runs = dict[str, list[dict[str, Any]]]
#: What is told of each loss: the usual seconds, and the loss.
Told = Callable[[float, Mapping[str, Any]], None]


def warm(lane: Lane, number: int) -> None:
    """Run a query untimed."""
    lane.ask("run", sql=tpch.query(number), save=None)


def run_losses(lane: Lane, number: int, shares: Sequence[float], rounds: int, told: Told) -> Runs:
    """Run a query undisturbed, then with a machine lost at each of these shares of its usual time, repeatedly."""
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
    """One run with a loss at a share of the usual time; then a new machine, and a wait for full recovery."""
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
    """The runs for saving: instead of the answer, whether it equals the first one."""
    first = undisturbed[0]["sum"]
    calm = [
        {"equal": run["sum"] == first, **{key: value for key, value in run.items() if key != "sum"}}
        for run in undisturbed
    ]
    return {"undisturbed": calm, "losses": list(losses)}


def usual_seconds(undisturbed: Sequence[Mapping[str, Any]]) -> float:
    """The median time of a query undisturbed."""
    return float(median(run["seconds"] for run in undisturbed))


def struck(
    runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float | None = None
) -> list[Mapping[str, Any]]:
    """The losses that struck in time, at one of the shares or at any."""
    return [
        run
        for run in runs["losses"]
        if run["killed_at"] is not None and (share is None or run["share"] == share)
    ]


def lost_seconds(runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float | None = None) -> float | None:
    """The median time of a query with a loss that struck in time; None if none did."""
    found = struck(runs, share)
    return usual_seconds(found) if found else None


def loss_ratio(runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float | None = None) -> float | None:
    """The ratio of the medians with a loss and undisturbed; None if no loss struck in time."""
    lost = lost_seconds(runs, share)
    return None if lost is None else lost / usual_seconds(runs["undisturbed"])


def answers(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[int, int]:
    """Count the answers that equal that of the first run, and the answers; the first run does not count."""
    every = [*runs["undisturbed"][1:], *runs["losses"]]
    return sum(run["equal"] for run in every), len(every)
