"""The figures without losses: (a) to (d), and (g)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from wallaby.lineage.tolerance import LINEAGE, POLICIES
from wallaby_lab import tpch
from wallaby_lab.bench.figures import geometric_mean
from wallaby_lab.bench.paper.measure import ratios, run_lanes, run_told_variants, run_variants
from wallaby_lab.bench.paper.setup import JOINS, OFF, QUERIES, Figure, Setup


def against_spark(setup: Setup) -> Figure:
    """(a): SparkSQL and this engine on all queries."""
    queries = setup.asked(tpch.QUERIES)
    with setup.spark() as spark, setup.wallaby(workers=setup.workers) as wallaby:
        times = run_lanes({"spark": spark, "wallaby": wallaby}, queries, setup.rounds, setup.say)
    faster = ratios(times, "spark", "wallaby")
    mean = geometric_mean(list(faster.values()))
    ours = {"times as fast as SparkSQL, geometric mean": mean}
    return Figure(
        "Wallaby and SparkSQL",
        "times as fast as SparkSQL",
        {"wallaby": faster},
        ours,
        {"seconds": times},
        str(setup.workers),
    )


def pipelined(setup: Setup) -> Figure:
    """(b): pipelined and stagewise."""
    queries = setup.asked(QUERIES)
    variants = {"pipelined": {}, "stagewise": {"fault_tolerance_policy": "stagewise"}}
    with setup.wallaby(workers=setup.workers) as lane:
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
        str(setup.workers),
    )


def dependencies(setup: Setup) -> Figure:
    """(c): dynamic task dependencies, and static ones of several sizes."""
    queries = setup.asked(QUERIES)
    variants: dict[str, dict[str, Any]] = {"dynamic": {}}
    variants |= {f"static {k}": {"execution_dependencies": f"static({k})"} for k in setup.static}
    with setup.wallaby(workers=setup.workers) as lane:
        times = run_variants(lane, variants, queries, setup.rounds, setup.say)
    static = [name for name in variants if name != "dynamic"]
    best = {n: min(static, key=lambda name: median(times[name][n])) for n in queries}
    series: dict[str, dict[int, float]] = {name: ratios(times, name, "dynamic") for name in static}
    series["best static"] = {n: series[best[n]][n] for n in queries}
    ours = {f"{name}, geometric mean": geometric_mean(list(each.values())) for name, each in series.items()}
    rows = [
        [str(n), *(f"{median(each[n]):.2f}" for each in times.values()), best[n].partition(" ")[2]]
        for n in queries
    ]
    return Figure(
        "Dynamic and static task dependencies",
        "time over that of dynamic",
        series,
        ours,
        {"seconds": times, "best": best},
        str(setup.workers),
        [["query", *(f"{name}, s" for name in times), "best K"], *rows],
        f"K is one of {', '.join(map(str, setup.static))}. The best is the least of {len(static)} times that all vary, "
        "chosen after the fact: that alone makes it smaller than one.",
    )


def overheads(setup: Setup) -> Figure:
    """(d): what lineage, spooling and checkpoints cost without a failure, and what they write."""
    queries = setup.asked(QUERIES)
    names = ("lineage", "spool", "checkpoint", "checkpoint+lineage", "spool+checkpoint")
    variants: dict[str, dict[str, Any]] = {"off": dict(OFF), **{name: setup.policy(name) for name in names}}
    with setup.wallaby(workers=setup.workers) as lane:
        times, facts = run_told_variants(lane, variants, queries, setup.rounds, setup.say)
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
        {"seconds": times, "facts": facts},
        str(setup.workers),
        _written(times["off"], facts),
        "MB and KB are those of one more run of each query: what its stages exchanged, the records of `lineage`, and "
        "what went to the durable store.",
    )


def _written(
    off: Mapping[int, Sequence[float]], facts: Mapping[str, Mapping[int, Mapping[str, Any]]]
) -> list[list[str]]:
    """By query, and in all: what is exchanged, and what the policies write."""
    storing = [name for name in facts if POLICIES.get(name, LINEAGE).uses_durable_store]
    saving = [name for name in storing if POLICIES[name].checkpoints]

    def cells(of: Sequence[int]) -> list[str]:
        def total(name: str, what: str) -> float:
            return float(sum(facts[name][n][what] for n in of))

        return [
            f"{sum(median(off[n]) for n in of):.2f}",
            f"{total('lineage', 'exchanged_bytes') / 1e6:.1f}",
            f"{total('lineage', 'lineage_bytes') / 1e3:.1f}",
            *(f"{total(name, 'durable_bytes') / 1e6:.1f}" for name in storing),
            *(f"{total(name, 'checkpoints'):.0f}" for name in saving),
        ]

    heads = [
        *("query", "off, s", "exchanged MB", "lineage KB"),
        *(f"{name} MB" for name in storing),
        *(f"{name} checkpoints" for name in saving),
    ]
    return [heads, *([str(n), *cells([n])] for n in off), ["all", *cells(list(off))]]


def more_workers(setup: Setup) -> Figure:
    """(g): more TaskManagers on the same cores."""
    queries = setup.asked(QUERIES)
    seconds: dict[str, Any] = {}
    with setup.spark() as lane:
        seconds |= run_lanes({"spark": lane}, queries, setup.rounds, setup.say)
    for workers in setup.several_workers:
        with setup.wallaby(workers=workers) as lane:
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
        ", ".join(map(str, setup.several_workers)),
    )
