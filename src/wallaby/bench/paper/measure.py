"""The measurements that figures are made of: variants of the engine in turn, undisturbed or with a loss.

A variant is a set of engine settings. One Spark session serves all variants of a figure: the engine is closed and
attached anew between them, so that nothing but the settings differs. Variants take turns within each round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from wallaby import tpch
from wallaby.bench.course import WARM_UP
from wallaby.bench.lane import Lane

Say = Callable[[str], None]
#: Seconds of each round, by variant and query.
Times = dict[str, dict[int, list[float]]]


def run_variants(
    lane: Lane, variants: Mapping[str, Mapping[str, Any]], queries: Sequence[int], rounds: int, say: Say
) -> Times:
    """Every query by every variant, so many times, and each time once before, which does not count."""
    found = _in_turn(lane, variants, queries, rounds, say, "run", save=None)
    return {
        name: {number: [round(run["seconds"], 4) for run in runs] for number, runs in by.items()}
        for name, by in found.items()
    }


def run_policies(
    lane: Lane, variants: Mapping[str, Mapping[str, Any]], queries: Sequence[int], rounds: int, say: Say
) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """The same, and then every query by every variant with an executor killed at half of the time that it took.

    Variants of which nothing survives a loss stand in `variants` without a policy, and lose nobody.
    """
    calm = _in_turn(lane, variants, queries, rounds, say, "ask_killed", after_seconds=0)
    runs: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for name, more in variants.items():
        strikes = "fault_tolerance_policy" in more
        if strikes:
            lane.ask("configure", more=dict(more))
        runs[name] = {}
        for number in queries:
            known = calm[name][number]
            usual = median(run["seconds"] for run in known)
            struck = []
            for _ in known if strikes else ():
                lane.ask("run", sql=tpch.query(number), save=None)  # one of the workers is new
                struck.append(_struck(lane, number, usual / 2, known[0]["sum"]))
            say(
                f"{name}, query {number}: {usual:.2f} s, lost one: {[run['disturbed']['seconds'] for run in struck]}"
            )
            runs[name][number] = [
                {"undisturbed": {**run, "sum": None}, **loss}
                for run, loss in zip(known, struck or [{} for _ in known], strict=True)
            ]
    return runs


def _struck(lane: Lane, number: int, after_seconds: float, answer: object) -> dict[str, Any]:
    disturbed = lane.ask("ask_killed", sql=tpch.query(number), after_seconds=after_seconds)
    equal = disturbed.pop("sum") == answer
    return {"disturbed": disturbed, "equal": equal, "settle": round(lane.ask("settle"), 2)}


def _in_turn(
    lane: Lane,
    variants: Mapping[str, Mapping[str, Any]],
    queries: Sequence[int],
    rounds: int,
    say: Say,
    command: str,
    **arguments: object,
) -> dict[str, dict[int, list[dict[str, Any]]]]:
    found: dict[str, dict[int, list[dict[str, Any]]]] = {name: {n: [] for n in queries} for name in variants}
    lane.ask("configure", more=dict(next(iter(variants.values()))))
    for number in queries:
        lane.ask("run", sql=tpch.query(number), save=None)  # the session is new
    for at in range(rounds):
        for name in list(variants)[:: 1 if at % 2 == 0 else -1]:
            lane.ask("configure", more=dict(variants[name]))
            for number in queries:
                lane.ask("run", sql=tpch.query(number), save=None)  # the workers are new
                found[name][number].append(lane.ask(command, sql=tpch.query(number), **arguments))
            total = sum(each[-1]["seconds"] for each in found[name].values())
            say(f"round {at + 1}, {name}: {total:.2f} s for {len(queries)} queries")
    return found


def run_lanes(lanes: Mapping[str, Lane], queries: Sequence[int], rounds: int, say: Say) -> Times:
    """The same for engines that are all alive: each query is asked of each in turn."""
    times: Times = {name: {number: [] for number in queries} for name in lanes}
    for lane in lanes.values():
        lane.ask("run", sql=tpch.query(WARM_UP), save=None)
    for at in range(rounds):
        for number in queries:
            for name, lane in lanes.items():
                seconds = lane.ask("run", sql=tpch.query(number), save=None)["seconds"]
                times[name][number].append(round(seconds, 4))
        say(f"round {at + 1} of {rounds}")
    return times


def run_losses(lane: Lane, number: int, shares: Sequence[float], rounds: int) -> list[dict[str, Any]]:
    """A query undisturbed, then with an executor killed at each of these shares of its time, so many times."""
    runs: list[dict[str, Any]] = []
    lane.ask("run", sql=tpch.query(number), save=None)
    for _ in range(rounds):
        undisturbed = lane.ask("ask_killed", sql=tpch.query(number), after_seconds=0)
        answer = undisturbed.pop("sum")
        known = [run["undisturbed"]["seconds"] for run in runs]
        usual = median([*known, undisturbed["seconds"]])
        for share in shares:
            if share != shares[0]:
                lane.ask("run", sql=tpch.query(number), save=None)  # one of the workers is new
            loss = _struck(lane, number, share * usual, answer)
            runs.append({"share": share, "undisturbed": undisturbed, **loss})
    return runs


def ratios(times: Times, of: str, over: str) -> dict[int, float]:
    """By query: the median of one variant over that of another."""
    return {number: median(times[of][number]) / median(each) for number, each in times[over].items()}


def loss_ratio(runs: Sequence[Mapping[str, Any]]) -> float | None:
    """Disturbed over undisturbed, medians of the runs in which the kill came in time; None if it never did."""
    struck = [run for run in runs if run["disturbed"]["killed_at"] is not None]
    if not struck:
        return None
    disturbed = median(run["disturbed"]["seconds"] for run in struck)
    return float(disturbed / median(run["undisturbed"]["seconds"] for run in runs))


def started(name: str, data: Path, cores: Sequence[int], memory: str, say: Say, **further: object) -> Lane:
    """An engine of its own, ready for queries."""
    lane = Lane(name, data, cores, memory, **further)  # type: ignore[arg-type]
    lane.await_start()
    say(f"{lane.what}, started in {lane.start_seconds:.1f} s")
    return lane
