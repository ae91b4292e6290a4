"""The measurements for figures: variants of the engine in turn, undisturbed or with a loss.

A variant is a set of engine settings. One Spark session serves all variants of a figure: the engine is closed and
attached anew between them, so that nothing but the settings differs. Variants take turns within each round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from wallaby_lab import tpch
from wallaby_lab.bench.lane import Lane
from wallaby_lab.bench.losses import Runs, as_runs, run_calm, run_struck, usual_seconds, warm

Say = Callable[[str], None]
#: Seconds of each round, by variant and query.
Times = dict[str, dict[int, list[float]]]


def run_variants(
    lane: Lane, variants: Mapping[str, Mapping[str, Any]], queries: Sequence[int], rounds: int, say: Say
) -> Times:
    """Run every query with every variant several times, each time after an untimed run."""
    return _times(_in_turn(lane, variants, queries, rounds, say, _timed))


def run_told_variants(
    lane: Lane, variants: Mapping[str, Mapping[str, Any]], queries: Sequence[int], rounds: int, say: Say
) -> tuple[Times, dict[str, dict[int, dict[str, Any]]]]:
    """The same, with the engine's figures of one more run of each, which is observed and untimed."""
    facts: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in variants}

    def observe(name: str) -> None:
        for number in queries:
            if number not in facts[name]:
                facts[name][number] = lane.ask("facts", sql=tpch.query(number))

    return _times(_in_turn(lane, variants, queries, rounds, say, _timed, observe)), facts


def run_policies(
    lane: Lane, variants: Mapping[str, Mapping[str, Any]], queries: Sequence[int], rounds: int, say: Say
) -> dict[str, dict[int, Runs]]:
    """The same, and then every query with every variant with an executor killed halfway.

    Variants that do not survive a loss have no policy in `variants`, and get no loss.
    """
    calm = _in_turn(lane, variants, queries, rounds, say, run_calm)
    runs: dict[str, dict[int, Runs]] = {}
    for name, more in variants.items():
        strikes = "fault_tolerance_policy" in more
        if strikes:
            lane.ask("configure", more=dict(more))
        runs[name] = {}
        for number in queries:
            known, losses = calm[name][number], list[dict[str, Any]]()
            for _ in range(rounds if strikes else 0):
                warm(lane, number)  # one of the workers is new
                losses.append(run_struck(lane, number, 0.5, known))
            say(
                f"{name}, query {number}: {usual_seconds(known):.2f} s, lost one: {[run['seconds'] for run in losses]}"
            )
            runs[name][number] = as_runs(known, losses)
    return runs


def _timed(lane: Lane, number: int) -> dict[str, Any]:
    run: dict[str, Any] = lane.ask("run", sql=tpch.query(number), save=None)
    return run


def _times(found: Mapping[str, Mapping[int, Sequence[Mapping[str, Any]]]]) -> Times:
    return {
        name: {number: [round(run["seconds"], 4) for run in runs] for number, runs in by.items()}
        for name, by in found.items()
    }


def _in_turn(
    lane: Lane,
    variants: Mapping[str, Mapping[str, Any]],
    queries: Sequence[int],
    rounds: int,
    say: Say,
    run: Callable[[Lane, int], dict[str, Any]],
    then: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """Go through all variants, forwards and backwards in turn; each may do something after its queries."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {name: {n: [] for n in queries} for name in variants}
    lane.ask("configure", more=dict(next(iter(variants.values()))))
    for number in queries:
        warm(lane, number)  # the session is new
    for at in range(rounds):
        for name in list(variants)[:: 1 if at % 2 == 0 else -1]:
            lane.ask("configure", more=dict(variants[name]))
            for number in queries:
                warm(lane, number)  # the workers are new
                found[name][number].append(run(lane, number))
            total = sum(each[-1]["seconds"] for each in found[name].values())
            say(f"round {at + 1}, {name}: {total:.2f} s for {len(queries)} queries")
            then(name)
    return found


def run_lanes(lanes: Mapping[str, Lane], queries: Sequence[int], rounds: int, say: Say) -> Times:
    """The same for engines that are all alive: each query runs on each in turn, after an untimed run."""
    times: Times = {name: {number: [] for number in queries} for name in lanes}
    for number in queries:
        for lane in lanes.values():
            warm(lane, number)
    for at in range(rounds):
        for number in queries:
            for name, lane in lanes.items():
                seconds = lane.ask("run", sql=tpch.query(number), save=None)["seconds"]
                times[name][number].append(round(seconds, 4))
        say(f"round {at + 1} of {rounds}")
    return times


def ratios(times: Times, of: str, over: str) -> dict[int, float]:
    """By query: the median of one variant over that of another."""
    return {number: median(times[of][number]) / median(each) for number, each in times[over].items()}


def started(name: str, data: Path, cores: Sequence[int], memory: str, say: Say, **further: object) -> Lane:
    """A separate engine, ready for queries."""
    lane = Lane(name, data, cores, memory, **further)  # type: ignore[arg-type]
    lane.await_start()
    say(f"{lane.what}, started in {lane.start_seconds:.1f} s")
    return lane
