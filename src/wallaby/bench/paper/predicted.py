"""What is predicted for clusters that are not there, as a part of the page on the evaluation: ratios by workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from wallaby.bench.bars_svg import draw_queries
from wallaby.bench.figures import geometric_mean, table
from wallaby.bench.paper.published import PAPER_WORKERS, PUBLISHED

#: Seconds by what is predicted, of one query on one cluster.
Seconds = Mapping[str, float]
PIPELINED: Final = "pipelined"
STAGEWISE: Final = "stagewise"
_HALF: Final = "killed at 50 %"
_TITLE: Final = "Beyond one machine, predicted"


def _over(what: str, base: str) -> Callable[[Seconds], float]:
    return lambda seconds: seconds[what] / seconds[base]


def _relative(seconds: Seconds) -> float:
    """After a loss: this engine's ratio over that of Spark's way of recovery."""
    staged = seconds[f"{STAGEWISE}, {_HALF}"] / seconds[STAGEWISE]
    return seconds[_HALF] / seconds[PIPELINED] / staged


def _paper(letter: str, place: int) -> dict[int, float]:
    """A line of what the paper says of a figure, by workers."""
    _, values = PUBLISHED[letter][place]
    return {count: value for count, value in zip(PAPER_WORKERS, values, strict=True) if value is not None}


#: A line of the table: its name, the ratio, and what the paper says of it.
_RATIOS: Final[Sequence[tuple[str, Callable[[Seconds], float], Mapping[int, float]]]] = (
    ("(b) stagewise over pipelined", _over(STAGEWISE, PIPELINED), _paper("b", 0)),
    ("(d) spooling over lineage", _over("spool", PIPELINED), {}),
    (f"(e) {_HALF} over undisturbed", _over(_HALF, PIPELINED), {}),
    (f"(e) {STAGEWISE}, {_HALF} over undisturbed", _over(f"{STAGEWISE}, {_HALF}", STAGEWISE), {}),
    ("(e) the former over the latter", _relative, _paper("g", 1)),
)


def ratios(found: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """By line of the table and number of workers: the geometric mean over the queries that have it."""
    by_workers: dict[int, list[Seconds]] = {}
    for line in found["lines"]:
        by_workers.setdefault(line["workers"], []).append(line["seconds"])
    lines = {name: _means(by_workers, ratio) for name, ratio, _ in _RATIOS}
    known = dict.fromkeys(what for line in found["lines"] for what in line["seconds"])
    for what in known:
        if what.startswith("static "):
            lines[f"(c) {what} over dynamic"] = _means(by_workers, _over(what, PIPELINED))
        elif what.startswith("killed at ") and what != _HALF:
            lines[f"(f) {what} over undisturbed"] = _means(by_workers, _over(what, PIPELINED))
    first = by_workers[min(by_workers)]
    lines[f"(g) times as fast as on {min(by_workers)} workers"] = {
        count: geometric_mean(
            [few[PIPELINED] / many[PIPELINED] for few, many in zip(first, some, strict=True)]
        )
        for count, some in by_workers.items()
    }
    return {name: lines[name] for name in sorted(lines, key=lambda name: name[:3]) if lines[name]}


def _means(
    by_workers: Mapping[int, Sequence[Seconds]], ratio: Callable[[Seconds], float]
) -> dict[int, float]:
    means = {}
    for count, some in by_workers.items():
        known = []
        for seconds in some:
            try:
                known.append(ratio(seconds))
            except KeyError:  # this figure was not asked for
                continue
        if known:
            means[count] = geometric_mean(known)
    return means


def drawn(found: Mapping[str, Any]) -> str:
    """What a loss costs, both ways, and pipelining's gain, by workers."""
    shown = {name: each for name, each in ratios(found).items() if name.startswith(("(b)", "(d)", "(e)"))}
    return draw_queries(shown, f"{_TITLE}: ratios by workers")


def to_section(found: Mapping[str, Any], drawing: str) -> str:
    """The predictions, to be read."""
    queries = list(dict.fromkeys(line["query"] for line in found["lines"]))
    counts = sorted({line["workers"] for line in found["lines"]})
    paper = {name: said for name, _, said in _RATIOS}
    rows = []
    for name, values in ratios(found).items():
        said = ", ".join(f"{value} on {count}" for count, value in paper.get(name, {}).items())
        rows.append([name, *(f"{values[count]:.2f}" if count in values else "" for count in counts), said])
    verdict = "Validated" if found["validated"] else "**Unvalidated**"
    about = (
        f"Queries {', '.join(queries)}, data {found['times']} times as large as {found['data']}, "
        f"{found['threads']} kernel threads a worker, "
        f"{found['network_bytes_per_second'] * 8 / 1e9:g} Gbit/s a network card, "
        f"{found['store_bytes_per_second'] / 1e6:g} MB/s of the durable store a worker. {verdict}: "
        "what was learned from runs with 1 and 2 workers on the cores of one machine, beside runs with more."
    )
    checks = [
        [
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
            *table(["query", "workers", "predicted s", "measured s", "off"], checks),
            "",
            f"![ratios by workers]({drawing})",
            "",
            *table(["geometric means", *(f"{count} workers" for count in counts), "paper"], rows),
            "",
        ]
    )
