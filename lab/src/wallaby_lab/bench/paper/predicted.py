"""The predictions for larger clusters, as a part of the evaluation page: ratios by workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from wallaby_lab.bench.figures import geometric_mean, table
from wallaby_lab.bench.paper.published import PAPER_WORKERS, PUBLISHED
from wallaby_lab.bench.plots import Drawing, draw_queries
from wallaby_lab.simulation.predict.checks import TOLERATED
from wallaby_lab.simulation.predict.known import (
    AGAIN,
    CHECKPOINT,
    HALF,
    ONE_CHANNEL,
    ONE_CHANNEL_HALF,
    PIPELINED,
    SPOOL,
    STAGEWISE,
    STAGEWISE_HALF,
    UNRECORDED,
)

#: Seconds by what is predicted, of one query on one cluster.
Seconds = Mapping[str, float]
_TITLE: Final = "Beyond one machine, predicted"


def _over(what: str, base: str) -> Callable[[Seconds], float]:
    return lambda seconds: seconds[what] / seconds[base]


def _relative(seconds: Seconds) -> float:
    """After a loss: this engine's ratio over that of Spark's way of recovery."""
    return seconds[HALF] / seconds[PIPELINED] / (seconds[STAGEWISE_HALF] / seconds[STAGEWISE])


def _paper(letter: str, place: int) -> dict[int, float]:
    """A line of what the paper says of a figure, by workers."""
    _, values = PUBLISHED[letter][place]
    return {count: value for count, value in zip(PAPER_WORKERS, values, strict=True) if value is not None}


class _Ratio(NamedTuple):
    """A line of the table."""

    name: str
    of: Callable[[Seconds], float]
    #: The checks by real runs that validate it.
    checked_by: tuple[str, ...] = ()
    #: What the paper says of it, by workers.
    paper: Mapping[int, float] = MappingProxyType({})


_RATIOS: Final = (
    _Ratio(f"(b) {STAGEWISE} over pipelined", _over(STAGEWISE, PIPELINED), (STAGEWISE,), _paper("b", 0)),
    _Ratio("(d) lineage over none", _over(PIPELINED, UNRECORDED)),
    _Ratio("(d) spooling over lineage", _over(SPOOL, PIPELINED), (SPOOL,)),
    _Ratio("(d) checkpoints over lineage", _over(CHECKPOINT, PIPELINED), (CHECKPOINT,)),
    _Ratio(f"(e) {HALF} over undisturbed", _over(HALF, PIPELINED), (HALF,)),
    _Ratio(f"(e) {STAGEWISE_HALF}, over undisturbed", _over(STAGEWISE_HALF, STAGEWISE), (STAGEWISE_HALF,)),
    _Ratio("(e) the former over the latter", _relative, (HALF, STAGEWISE_HALF), _paper("g", 1)),
    _Ratio(f"(e) {ONE_CHANNEL_HALF}, over undisturbed", _over(ONE_CHANNEL_HALF, ONE_CHANNEL)),
    _Ratio(f"(e) {AGAIN}, over undisturbed", _over(AGAIN, PIPELINED)),
)


def _ratios_of(found: Mapping[str, Any]) -> list[_Ratio]:
    """The lines that there may be, in the order of the figures."""
    lines = list(_RATIOS)
    for what in dict.fromkeys(what for line in found["lines"] for what in line["seconds"]):
        if what.startswith("static "):
            lines.append(_Ratio(f"(c) {what} over dynamic", _over(what, PIPELINED)))
        elif what.startswith("killed at ") and what != HALF:
            lines.append(_Ratio(f"(f) {what} over undisturbed", _over(what, PIPELINED), (HALF,)))
    return sorted(lines, key=lambda each: each.name[:3])


def ratios(found: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """By line of the table and number of workers: the geometric mean over the queries, if all of them have it."""
    by_workers: dict[int, list[Seconds]] = {}
    for line in found["lines"]:
        by_workers.setdefault(line["workers"], []).append(line["seconds"])
    lines = {each.name: _means(by_workers, each.of) for each in _ratios_of(found)}
    few = min(by_workers)
    lines[_faster(few)] = {
        count: geometric_mean(
            [slow[PIPELINED] / fast[PIPELINED] for slow, fast in zip(by_workers[few], some, strict=True)]
        )
        for count, some in by_workers.items()
    }
    return {name: each for name, each in lines.items() if each}


def _faster(few: int) -> str:
    return f"(g) times as fast as on {few} workers"


def _means(
    by_workers: Mapping[int, Sequence[Seconds]], ratio: Callable[[Seconds], float]
) -> dict[int, float]:
    means = {}
    for count, some in by_workers.items():
        known = []
        for seconds in some:
            try:
                known.append(ratio(seconds))
            except KeyError:  # it was not asked for, or cannot be predicted
                continue
        if len(known) == len(some):
            means[count] = geometric_mean(known)
    return means


def drawn(found: Mapping[str, Any]) -> Drawing:
    """What a loss costs, both ways, and pipelining's gain, by workers."""
    shown = {name: each for name, each in ratios(found).items() if name.startswith(("(b)", "(d)", "(e)"))}
    return draw_queries(shown, f"{_TITLE}: ratios by workers")


def to_section(found: Mapping[str, Any], drawing: str) -> str:
    """The predictions as a section of the page."""
    queries = list(dict.fromkeys(line["query"] for line in found["lines"]))
    counts = sorted({line["workers"] for line in found["lines"]})
    known = {each.name: each for each in _ratios_of(found)}
    known[_faster(min(counts))] = _Ratio("", _over(PIPELINED, PIPELINED), (PIPELINED,))
    rows = []
    for name, values in ratios(found).items():
        said = ", ".join(f"{value} on {count}" for count, value in known[name].paper.items())
        shown = (f"{values[count]:.2f}" if count in values else "" for count in counts)
        rows.append([name, *shown, said, _verdict(found["off"], known[name].checked_by)])
    about = (
        f"Queries {', '.join(queries)}, data {found['times']} times as large as {found['data']}, "
        f"{found['threads']} kernel threads a worker, "
        f"{found['network_bytes_per_second'] * 8 / 1e9:g} Gbit/s a network card, "
        f"{found['store_bytes_per_second'] / 1e6:g} MB/s of the durable store a worker, "
        f"a checkpoint of each state every {found['snapshot_seconds']:g} s, "
        f"{found['gcs_calls_per_second']:g} calls a second of the control store, "
        f"a loss is noticed after {found['detection_seconds']:g} s and the worker is not replaced. "
        "Learned from runs with 1 and 2 workers on the cores of one machine. Seconds are checked by runs with more, "
        "ratios by those of the table of policies; what is further off than a quarter, or has no run beside it, "
        "is unvalidated."
    )
    checks = [
        [
            each["what"],
            each["query"],
            str(each["workers"]),
            *(f"{each[what]:.2f}" for what in ("predicted", "measured")),
            f"{each['off']:.0%}",
        ]
        for each in found["checks"]
    ]
    return "\n".join(
        [
            f"### {_TITLE}",
            "",
            about,
            "",
            *table(["checked", "query", "workers", "predicted", "measured", "off"], checks),
            "",
            f"![ratios by workers]({drawing})",
            "",
            *table(["geometric means", *(f"{count} workers" for count in counts), "paper", "checked"], rows),
            "",
        ]
    )


def _verdict(off: Mapping[str, float], needed: Sequence[str]) -> str:
    """How far off the checks were, or that the line is unvalidated."""
    if not needed or any(what not in off for what in needed):
        return "**unvalidated**: no run"
    most = max(off[what] for what in needed)
    return f"{most:.0%} off" if most <= TOLERATED else f"**unvalidated**: {most:.0%} off"
