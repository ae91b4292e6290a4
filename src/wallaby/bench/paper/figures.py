"""Figures (a) to (g) and the table of policies: what is measured for each, and the bars that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from wallaby import tpch
from wallaby.bench.figures import geometric_mean
from wallaby.bench.lane import Lane
from wallaby.bench.paper.measure import (
    Say,
    loss_ratio,
    ratios,
    run_lanes,
    run_losses,
    run_policies,
    run_variants,
    started,
)

#: The paper's eight, by category: reads, simple joins, join trees.
QUERIES: Final = (1, 6, 3, 10, 5, 7, 8, 9)
JOINS: Final = (3, 10, 5, 7, 8, 9)
STATIC: Final = (1, 2, 4, 8, 16, 32, 64, 128)
SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
OFF: Final = {"fault_tolerance_enabled": False}


@dataclass(frozen=True, slots=True)
class Setup:
    """On what a figure is measured."""

    data: Path
    cores: Sequence[int]
    memory: str
    workers: int
    rounds: int
    store: str
    say: Say
    #: Other queries than the figure's own; empty: its own.
    queries: tuple[int, ...] = ()
    #: For (g).
    several_workers: tuple[int, ...] = (1, 2, 4)
    #: For (c).
    static: tuple[int, ...] = STATIC
    checkpoint_seconds: float = 2.0

    def asked(self, usual: Sequence[int]) -> tuple[int, ...]:
        """The queries to measure."""
        return self.queries or tuple(usual)

    def policy(self, name: str) -> dict[str, Any]:
        """The settings of a policy."""
        return {
            "fault_tolerance_policy": name,
            "fault_tolerance_store": self.store,
            "fault_tolerance_checkpoint": self.checkpoint_seconds,
        }

    @contextmanager
    def lane(self, name: str, **further: object) -> Iterator[Lane]:
        """An engine for as long as it is needed."""
        lane = started(name, self.data, self.cores, self.memory, self.say, **further)
        try:
            yield lane
        finally:
            lane.end()


@dataclass(slots=True)
class Figure:
    """What came of a figure: bars by series and position, means to be read beside the paper's, and all raw figures."""

    title: str
    #: What a bar says.
    axis: str
    series: dict[str, dict[int, float]]
    ours: dict[str, float]
    raw: dict[str, Any]
    table: list[list[str]] = field(default_factory=list)


def against_spark(setup: Setup) -> Figure:
    """(a): SparkSQL and this engine on all queries."""
    queries = setup.asked(tpch.QUERIES)
    with setup.lane("spark") as spark, setup.lane("wallaby", workers=setup.workers) as wallaby:
        times = run_lanes({"spark": spark, "wallaby": wallaby}, queries, setup.rounds, setup.say)
    faster = ratios(times, "spark", "wallaby")
    mean = geometric_mean(list(faster.values()))
    ours = {"times as fast as SparkSQL, geometric mean": mean}
    return Figure(
        "Wallaby and SparkSQL", "times as fast as SparkSQL", {"wallaby": faster}, ours, {"seconds": times}
    )


def pipelined(setup: Setup) -> Figure:
    """(b): pipelined and stagewise."""
    queries = setup.asked(QUERIES)
    variants = {"pipelined": {}, "stagewise": {"execution_mode": "stagewise"}}
    with setup.lane("wallaby", workers=setup.workers) as lane:
        times = run_variants(lane, variants, queries, setup.rounds, setup.say)
    slower = ratios(times, "stagewise", "pipelined")
    joins = [ratio for number, ratio in slower.items() if number in JOINS]
    ours = {"pipelined over stagewise, geometric mean of the joins": geometric_mean(joins)} if joins else {}
    return Figure(
        "Pipelined and stagewise",
        "time of stagewise over pipelined",
        {"stagewise": slower},
        ours,
        {"seconds": times},
    )


def dependencies(setup: Setup) -> Figure:
    """(c): dynamic task dependencies, and static ones of several sizes."""
    queries = setup.asked(QUERIES)
    variants: dict[str, dict[str, Any]] = {"dynamic": {}}
    variants |= {f"static {k}": {"execution_dependencies": f"static({k})"} for k in setup.static}
    with setup.lane("wallaby", workers=setup.workers) as lane:
        times = run_variants(lane, variants, queries, setup.rounds, setup.say)
    static = [name for name in variants if name != "dynamic"]
    best = {n: min(static, key=lambda name: median(times[name][n])) for n in queries}
    shown = [name for name in ("static 8", "static 128") if name in times]
    series: dict[str, dict[int, float]] = {name: ratios(times, name, "dynamic") for name in shown}
    series["best static"] = {n: median(times[best[n]][n]) / median(times["dynamic"][n]) for n in queries}
    ours = {f"{name}, geometric mean": geometric_mean(list(each.values())) for name, each in series.items()}
    table = [["query", "best static K"], *([str(n), best[n].partition(" ")[2]] for n in queries)]
    return Figure(
        "Dynamic and static task dependencies",
        "time over that of dynamic",
        series,
        ours,
        {"seconds": times, "best": best},
        table,
    )


def overheads(setup: Setup) -> Figure:
    """(d): what lineage, spooling and checkpoints cost without a failure."""
    queries = setup.asked(QUERIES)
    names = ("lineage", "spool", "checkpoint+lineage", "spool+checkpoint")
    variants: dict[str, dict[str, Any]] = {"off": dict(OFF), **{name: setup.policy(name) for name in names}}
    with setup.lane("wallaby", workers=setup.workers) as lane:
        times = run_variants(lane, variants, queries, setup.rounds, setup.say)
    series = {name: ratios(times, name, "off") for name in names}
    ours = {f"{name}, geometric mean": geometric_mean(list(each.values())) for name, each in series.items()}
    joins = [n for n in queries if n in JOINS]
    ours |= {
        f"{name}, geometric mean of the joins": geometric_mean([each[n] for n in joins])
        for name, each in series.items()
        if joins
    }
    return Figure(
        "The overhead of lineage, spooling and checkpoints",
        "time over that without fault tolerance",
        series,
        ours,
        {"seconds": times},
    )


def recovery(setup: Setup) -> Figure:
    """(e): a worker killed at half of the time; SparkSQL killed in the same way; running the query again."""
    queries = setup.asked(QUERIES)
    again = setup.policy("none")
    lanes = {"wallaby": ("wallaby", {}), "run again": ("wallaby", {"more": again}), "spark": ("spark", {})}
    raw: dict[str, dict[int, Any]] = {}
    for name, (engine, further) in lanes.items():
        with setup.lane(engine, cluster=True, **further) as lane:
            raw[name] = {n: _told(setup, name, n, run_losses(lane, n, (0.5,), setup.rounds)) for n in queries}
    series = {name: _known({n: loss_ratio(runs) for n, runs in by.items()}) for name, by in raw.items()}
    ours = {
        f"{name}, geometric mean": geometric_mean(list(each.values()))
        for name, each in series.items()
        if each
    }
    return Figure(
        "A worker killed at half of the time", "time over that undisturbed", series, ours, {"runs": raw}
    )


def case_study(setup: Setup) -> Figure:
    """(f): query 9, killed earlier and later."""
    number = setup.queries[0] if setup.queries else 9
    raw: dict[str, list[dict[str, Any]]] = {}
    for name, (engine, further) in {
        "wallaby": ("wallaby", {}),
        "run again": ("wallaby", {"more": setup.policy("none")}),
        "spark": ("spark", {}),
    }.items():
        with setup.lane(engine, cluster=True, **further) as lane:
            raw[name] = run_losses(lane, number, SHARES, setup.rounds)
    series = {
        name: _known({round(s * 100): loss_ratio([run for run in runs if run["share"] == s]) for s in SHARES})
        for name, runs in raw.items()
    }
    title = f"Query {number}, a worker killed at so many per cent of the time"
    return Figure(title, "time over that undisturbed", series, {}, {"runs": raw})


def more_workers(setup: Setup) -> Figure:
    """(g): more TaskManagers on the same cores."""
    queries = setup.asked(QUERIES)
    seconds: dict[str, Any] = {}
    with setup.lane("spark") as lane:
        seconds |= run_lanes({"spark": lane}, queries, setup.rounds, setup.say)
    for workers in setup.several_workers:
        with setup.lane("wallaby", workers=workers) as lane:
            seconds |= run_lanes({str(workers): lane}, queries, setup.rounds, setup.say)
    faster = {n: ratios(seconds, "spark", str(n)) for n in setup.several_workers}
    series = {"wallaby": {n: geometric_mean(list(each.values())) for n, each in faster.items()}}
    ours = {f"times as fast as SparkSQL, {n} TaskManagers": ratio for n, ratio in series["wallaby"].items()}
    return Figure(
        "More TaskManagers on the same cores",
        "times as fast as SparkSQL, geometric mean",
        series,
        ours,
        {"seconds": seconds},
    )


def policies(setup: Setup) -> Figure:
    """All policies: overhead without a failure and with one, bytes persisted, channels rewound."""
    queries = setup.asked(QUERIES)
    names = ("lineage", "none", "stagewise", "spool", "checkpoint+lineage", "spool+checkpoint")
    variants: dict[str, dict[str, Any]] = {"off": dict(OFF), **{name: setup.policy(name) for name in names}}
    with setup.lane("wallaby", cluster=True) as lane:
        raw = run_policies(lane, variants, queries, setup.rounds, setup.say)
    base = {n: _undisturbed(raw["off"][n]) for n in queries}
    series = {name: {n: _undisturbed(raw[name][n]) / base[n] for n in queries} for name in names}
    heads = [
        "policy",
        "without a failure",
        "with one",
        "persisted MB",
        "spilled MB",
        "rewound",
        "equal answers",
    ]
    table = [heads]
    for name in names:
        runs = [run for each in raw[name].values() for run in each]
        losses = _known({n: _with_loss(raw[name][n], base[n]) for n in queries})
        first = [each[0]["undisturbed"] for each in raw[name].values()]
        table.append(
            [
                name,
                f"{geometric_mean(list(series[name].values())):.2f}",
                f"{geometric_mean(list(losses.values())):.2f}" if losses else "",
                f"{sum(run['durable_bytes'] for run in first) / 1e6:.1f}",
                f"{sum(run['spilled_bytes'] for run in first) / 1e6:.1f}",
                str(sum(run["disturbed"]["channels_rewound"] for run in runs)),
                f"{sum(run['equal'] for run in runs)} of {len(runs)}",
            ]
        )
    return Figure(
        "Fault-tolerance policies", "time over that without fault tolerance", series, {}, {"runs": raw}, table
    )


FIGURES: Final[Mapping[str, Callable[[Setup], Figure]]] = {
    "a": against_spark,
    "b": pipelined,
    "c": dependencies,
    "d": overheads,
    "e": recovery,
    "f": case_study,
    "g": more_workers,
    "policies": policies,
}


def _told(setup: Setup, name: str, number: int, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ratio = loss_ratio(runs)
    wrong = "" if all(run["equal"] for run in runs) else ", ANOTHER ANSWER"
    setup.say(f"{name}, query {number}: {f'{ratio:.2f}' if ratio else 'over before the kill'}{wrong}")
    return runs


def _undisturbed(runs: Sequence[Mapping[str, Any]]) -> float:
    return float(median(run["undisturbed"]["seconds"] for run in runs))


def _with_loss(runs: Sequence[Mapping[str, Any]], base: float) -> float | None:
    struck = [run["disturbed"]["seconds"] for run in runs if run["disturbed"]["killed_at"] is not None]
    return float(median(struck)) / base if struck else None


def _known(values: Mapping[int, float | None]) -> dict[int, float]:
    return {at: value for at, value in values.items() if value is not None}
