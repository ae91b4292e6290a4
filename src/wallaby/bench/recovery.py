"""What a lost worker costs: one of four is killed at half of the time that a query takes undisturbed.

Wallaby and SparkSQL on standalone clusters of four machines, one after the other, so that each has all of the memory,
in the same way: a run that does not count, then, in each repetition, one undisturbed, one that is disturbed, a new
machine, and a wait until everything is whole again. Each may have tables of a size at which its queries take long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from wallaby import tpch
from wallaby.bench.contenders.settings import SETTINGS
from wallaby.bench.course import WARM_UP
from wallaby.bench.figures import geometric_mean, machine, table, where
from wallaby.bench.killing import CLUSTER_SETTINGS
from wallaby.bench.lane import Lane

#: As in the paper: each kind of plan is among them.
QUERIES: Final = (1, 3, 5, 6, 7, 8, 9, 10)
KILL_AT: Final = 0.5
_TOLD: Final = (
    "One of four machines (a worker daemon of a standalone cluster, its executor and every process below) gets SIGKILL "
    "at half of the time that the query takes undisturbed; the other three finish it, as in the paper. Seconds are "
    "medians of the repetitions. Spark's settings, for both: "
)
_LOST: Final = (
    "The seconds that were lost: until the loss was noticed; while the query stood still; tasks that were executed "
    "again, shared by {cores} cores; the rest, which is waiting for those, and having three workers instead of four. "
    "They go on meanwhile, so it may be negative."
)
_HEADS: Final = (
    *("query", "undisturbed s", "disturbed s", "ratio", "lost s"),
    *("killed in time", "answers equal"),
)
_LOST_HEADS: Final = ("detection s", "frozen s", "executed again s", "waiting s")


def run_recovery(
    tables: Mapping[str, Path],
    queries: Sequence[int],
    cores: Sequence[int],
    memory: str,
    repetitions: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """By contender, with its tables, and query: runs undisturbed and disturbed, with what the engine tells of them."""
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    contenders: dict[str, str] = {}
    for name, data in tables.items():
        lane = Lane(name, data, cores, memory, cluster=True)
        try:
            lane.await_start()
            contenders[name] = f"{lane.what}; data {data.name}"
            say(f"{contenders[name]}, started in {lane.start_seconds:.1f} s")
            lane.ask("run", sql=tpch.query(WARM_UP), save=None)
            runs[name] = {str(number): _several(lane, number, repetitions, say) for number in queries}
        finally:
            lane.end()
    return {
        "machine": machine(),
        "contenders": contenders,
        "cores": len(cores),
        "runs": runs,
        **recovery_figures(runs, len(cores)),
    }


def _several(lane: Lane, number: int, repetitions: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    lane.ask("run", sql=tpch.query(number), save=None)
    runs: list[dict[str, Any]] = []
    for repetition in range(repetitions):
        run = _one(lane, number, [run["undisturbed"]["seconds"] for run in runs])
        runs.append(run)
        say(_line(number, repetition, lane.name, run))
    return runs


def _one(lane: Lane, number: int, known: Sequence[float]) -> dict[str, Any]:
    """A run undisturbed, and one that is disturbed at half of what those before took."""
    undisturbed = lane.ask("ask_killed", sql=tpch.query(number), after_seconds=0)
    after = KILL_AT * median([*known, undisturbed["seconds"]])
    disturbed = lane.ask("ask_killed", sql=tpch.query(number), after_seconds=after)
    equal = undisturbed.pop("sum") == disturbed.pop("sum")
    settle = lane.ask("settle")
    return {
        "undisturbed": undisturbed,
        "disturbed": disturbed,
        "kill_after_seconds": round(after, 3),
        "equal": equal,
        "settle_seconds": round(settle, 2),
    }


def recovery_figures(runs: Mapping[str, Mapping[str, Any]], cores: int) -> dict[str, Any]:
    """Per contender and query: medians, the ratio, and how the seconds that were lost are divided."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name, by_query in runs.items():
        figures[name] = {number: _query_figures(several, cores) for number, several in by_query.items()}
    means = {
        name: geometric_mean([each["ratio"] for each in by_query.values()])
        for name, by_query in figures.items()
    }
    return {"figures": figures, "geometric_means": means}


def _query_figures(runs: Sequence[Mapping[str, Any]], cores: int) -> dict[str, float]:
    struck = [run for run in runs if run["disturbed"]["killed_at"] is not None]
    undisturbed = median(run["undisturbed"]["seconds"] for run in runs)
    disturbed = median(run["disturbed"]["seconds"] for run in struck) if struck else undisturbed
    found = {
        "undisturbed": undisturbed,
        "disturbed": disturbed,
        "ratio": disturbed / undisturbed,
        "lost": disturbed - undisturbed,
        "struck": len(struck),
        "equal": sum(run["equal"] for run in runs),
        "runs": len(runs),
    }
    noticed = [run["disturbed"] for run in struck if run["disturbed"].get("froze_at")]
    if noticed:
        detection = median(each["froze_at"] - each["killed_at"] for each in noticed)
        frozen = median(each["frozen_seconds"] for each in noticed)
        again = median(each["again_seconds"] for each in noticed)
        found |= {"detection": detection, "frozen": frozen, "again": again / cores}
        found["waiting"] = found["lost"] - detection - frozen - again / cores
    return found


def recovery_page(report: Mapping[str, Any], title: str, **about: object) -> str:
    """The same as a page of Markdown."""
    lines = [f"# {title}", "", where(**about), ""]
    lines += [f"- {name}: {what}" for name, what in report["contenders"].items()]
    settings = ", ".join(f"`{key}={value}`" for key, value in {**SETTINGS, **CLUSTER_SETTINGS}.items())
    means = ", ".join(f"{name} **{mean:.3f}**" for name, mean in report["geometric_means"].items())
    lines += ["", f"{_TOLD}{settings}.", "", f"Disturbed over undisturbed, geometric mean: {means}.", ""]
    for name, by_query in report["figures"].items():
        divided = any("detection" in each for each in by_query.values())
        lines += [f"## {name}", ""]
        lines += [_LOST.format(cores=report["cores"]), ""] if divided else []
        heads = [*_HEADS, *_LOST_HEADS] if divided else [*_HEADS]
        rows = [[number, *_cells(each, divided)] for number, each in by_query.items()]
        lines += [*table(heads, rows), ""]
    return "\n".join(lines)


def _cells(each: Mapping[str, float], divided: bool) -> list[str]:
    cells = [f"{each[key]:.2f}" for key in ("undisturbed", "disturbed", "ratio", "lost")]
    cells += [f"{each[key]:.0f} of {each['runs']:.0f}" for key in ("struck", "equal")]
    if divided:
        parts = ("detection", "frozen", "again", "waiting")
        cells += [f"{each[key]:.2f}" if key in each else "" for key in parts]
    return cells


def _line(number: int, repetition: int, name: str, run: Mapping[str, Any]) -> str:
    before, after = run["undisturbed"]["seconds"], run["disturbed"]["seconds"]
    struck = "" if run["disturbed"]["killed_at"] is not None else ", over before the kill"
    wrong = "" if run["equal"] else ", ANOTHER ANSWER"
    ran = f"query {number:2d}, repetition {repetition + 1}, {name}"
    return f"{ran}: {before:.2f} s, with a loss {after:.2f} s{struck}{wrong}"
