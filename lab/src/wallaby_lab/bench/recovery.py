"""What a lost worker costs: one of four is killed at half of a query's undisturbed time.

Wallaby and SparkSQL run on standalone clusters of four machines, one after the other, so that each has all of the
memory, in the same way (`losses`): each repetition has an untimed run, undisturbed runs, one with a loss, a new
machine, and a wait for full recovery. Each may have tables of a size at which its queries take long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from wallaby_lab.bench.contenders import SPARK_SETTINGS
from wallaby_lab.bench.figures import geometric_mean, machine, table, where
from wallaby_lab.bench.killing import CLUSTER_SETTINGS
from wallaby_lab.bench.lane import Lane
from wallaby_lab.bench.losses import (
    Runs,
    answers,
    lost_seconds,
    run_losses,
    struck,
    teller,
    usual_seconds,
    warm,
)
from wallaby_lab.bench.rounds import WARM_UP

#: As in the paper: each kind of plan is among them.
QUERIES: Final = (1, 3, 5, 6, 7, 8, 9, 10)
KILL_AT: Final = 0.5
_TOLD: Final = (
    "One of four machines (a worker daemon of a standalone cluster, its executor and every process below) gets SIGKILL "
    "at half of the time that the query takes undisturbed; the other three finish it, as in the paper. Wherever a "
    "machine is new the query runs once before it counts. Seconds are medians. Spark's settings, for both: "
)
_LOST: Final = (
    "The lost seconds are divided into the time until the loss was detected, the time the query was frozen, tasks that "
    "were executed again (shared by {cores} cores), and the rest: waiting for those, and having three workers instead "
    "of four. The other workers continue meanwhile, so the rest may be negative."
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
    """By contender, with its tables, and query: undisturbed and disturbed runs, with the engine's figures."""
    runs: dict[str, dict[str, Runs]] = {}
    contenders: dict[str, str] = {}
    for name, data in tables.items():
        lane = Lane(name, data, cores, memory, cluster=True)
        try:
            lane.await_start()
            contenders[name] = f"{lane.what}; data {data.name}"
            say(f"{contenders[name]}, started in {lane.start_seconds:.1f} s")
            warm(lane, WARM_UP)
            runs[name] = {}
            for number in queries:
                told = teller(name, number, say)
                runs[name][str(number)] = run_losses(lane, number, (KILL_AT,), repetitions, told)
        finally:
            lane.end()
    return {
        "machine": machine(),
        "contenders": contenders,
        "cores": len(cores),
        "runs": runs,
        **recovery_figures(runs, len(cores)),
    }


def recovery_figures(runs: Mapping[str, Mapping[str, Runs]], cores: int) -> dict[str, Any]:
    """Per contender and query: medians, the ratio, and a breakdown of the lost seconds."""
    figures = {
        name: {number: _query_figures(several, cores) for number, several in by_query.items()}
        for name, by_query in runs.items()
    }
    means = {
        name: geometric_mean([each["ratio"] for each in by_query.values() if "ratio" in each])
        for name, by_query in figures.items()
    }
    return {"figures": figures, "geometric_means": means}


def _query_figures(runs: Runs, cores: int) -> dict[str, float]:
    """The figures of one query; without a loss that struck in time there are none about losses."""
    undisturbed, disturbed = usual_seconds(runs["undisturbed"]), lost_seconds(runs)
    equal, of = answers(runs)
    in_time = struck(runs)
    found = {
        "undisturbed": undisturbed,
        "struck": len(in_time),
        "losses": len(runs["losses"]),
        "equal": equal,
        "answers": of,
    }
    if disturbed is None:
        return found
    found |= {"disturbed": disturbed, "ratio": disturbed / undisturbed, "lost": disturbed - undisturbed}
    if noticed := [run for run in in_time if run.get("froze_at")]:
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
    settings = ", ".join(f"`{key}={value}`" for key, value in {**SPARK_SETTINGS, **CLUSTER_SETTINGS}.items())
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
    known = ("undisturbed", "disturbed", "ratio", "lost")
    parts = ("detection", "frozen", "again", "waiting") if divided else ()
    counts = (("struck", "losses"), ("equal", "answers"))
    return [
        *(_shown(each, key) for key in known),
        *(f"{each[some]:.0f} of {each[all_]:.0f}" for some, all_ in counts),
        *(_shown(each, key) for key in parts),
    ]


def _shown(each: Mapping[str, float], key: str) -> str:
    return f"{each[key]:.2f}" if key in each else ""
