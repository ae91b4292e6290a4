"""Report the rounds of a benchmark: medians, ratios and geometric means, as a page and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from wallaby.observe.units import number as whole
from wallaby.observe.units import size
from wallaby_lab.bench.breakdown import EXPLANATION, HEADINGS
from wallaby_lab.bench.contenders import SPARK_SETTINGS
from wallaby_lab.bench.figures import at_scale, geometric_mean, machine, seconds, table, where
from wallaby_lab.bench.plots import Drawing, draw_means, draw_queries
from wallaby_lab.bench.rounds import MEASURE, Timed

Results = Mapping[str, Mapping[int, Timed]]


def to_json(measured: Mapping[str, Any], **about: object) -> dict[str, Any]:
    """Encode everything that was measured as JSON."""
    results = {
        name: {str(number): asdict(one) for number, one in by_query.items()}
        for name, by_query in measured["results"].items()
    }
    return {**about, "machine": machine(), **measured, "results": results}


def of_json(found: Mapping[str, Any]) -> Results:
    """Read the times from the JSON of `to_json`."""
    return {
        name: {int(number): Timed(**one) for number, one in by_query.items()}
        for name, by_query in found["results"].items()
    }


def drawings(results: Results, data: str, stem: str) -> dict[str, Drawing]:
    """The drawings of a page, by file name: the speedup of each query, and the means; none for a single contender."""
    ratios = speedups(results)
    if not ratios:
        return {}
    first = next(iter(results))
    means = {name: geometric_mean(list(by_query.values())) for name, by_query in ratios.items()}
    means[first] = 1.0  # the last, so that the others have the same colours in both
    title = f"TPC-H {at_scale(data)}: times as fast as {'SparkSQL' if first == 'spark' else first}"
    return {
        f"{stem}-queries.svg": draw_queries(ratios, f"{title}, by query"),
        f"{stem}-means.svg": draw_means(means, f"{title}, geometric mean"),
    }


def speedups(results: Results) -> dict[str, dict[int, float]]:
    """By contender and query: the first contender's time over this one's, medians of all rounds."""
    first, *others = results
    found: dict[str, dict[int, float]] = {}
    for name in others:
        pairs = {number: (results[first][number], one) for number, one in results[name].items()}
        found[name] = {
            number: median(base.seconds) / median(one.seconds)
            for number, (base, one) in pairs.items()
            if base.seconds and one.seconds
        }
    return found


def to_page(measured: Mapping[str, Any], title: str, plots: tuple[str, ...] = (), **about: object) -> str:
    """The same as a page of Markdown. `plots` are files beside it."""
    results: Results = measured["results"]
    names = list(results)
    contenders = measured["contenders"]
    lines = [f"# {title}", "", where(**about), ""]
    lines += [f"- {name}: {facts['what']}" for name, facts in contenders.items()]
    lines += [f"- {name} did not take part: {why}" for name, why in measured.get("absent", {}).items()]
    lines += ["", *(f"![{name}]({name})" for name in plots), ""] if plots else [""]
    told = "Seconds: the median of the rounds; in brackets the first round, and half of the range."
    lines += [
        f"{told} × is the time of {names[0]} divided by that of the other engine. {_compared(results)}",
        "",
        *_times(results),
        "",
        "SparkSQL's settings: " + ", ".join(f"`{k}={v}`" for k, v in SPARK_SETTINGS.items()) + ".",
        *_lives(contenders),
        *_memory(results),
        *_breakdowns(results),
        "",
        f"It took {measured.get('took_seconds', 0):.0f} s, {measured.get('timed_seconds', 0):.0f} s of it timed.",
    ]
    return "\n".join(lines) + "\n"


def _compared(results: Results) -> str:
    if MEASURE not in results:
        return "Answers were not compared: SparkSQL did not take part."
    compared = [one for by_query in results.values() for one in by_query.values() if one.compared]
    equal = sum(not one.difference for one in compared)
    return f"{equal} of {len(compared)} answers were equal to SparkSQL's."


def _times(results: Results) -> list[str]:
    first, *others = results
    ratios = speedups(results)
    heads = ["query", *(f"{name} s" for name in results), *(f"× {name}" for name in others)]
    rows: list[list[str]] = []
    for number in results[first]:
        shown = (f"{ratios[name][number]:.2f}" if number in ratios[name] else "" for name in others)
        rows.append([str(number), *(_seconds(results[name][number]) for name in results), *shown])
    sums = [
        f"{sum(median(one.seconds) for one in by_query.values() if one.seconds):.1f}"
        for by_query in results.values()
    ]
    means = [f"**{geometric_mean(list(ratios[name].values())):.2f}**" for name in others]
    least = [f"{min(ratios[name].values(), default=0):.2f}" for name in others]
    rows.append(["all: sum, geometric mean", *sums, *means])
    if others:
        rows.append(["least", *[""] * len(results), *least])
    return table(heads, rows)


def _lives(contenders: Mapping[str, Any]) -> list[str]:
    lived = {name: facts for name, facts in contenders.items() if "attach_seconds" in facts}
    if not lived:
        return []
    rows = [
        [name, *(_spread(facts[key]) for key in ("attach_seconds", "close_seconds"))]
        for name, facts in lived.items()
    ]
    title = "## Attaching and closing"
    told = "Seconds, with Spark already up: the median, in brackets the minimum and maximum."
    return ["", title, "", told, "", *table(["engine", "attach", "close"], rows)]


def _memory(results: Results) -> list[str]:
    heads = ["query"]
    for name, by_query in results.items():
        heads.append(name)
        if any(one.worker_peak_bytes for one in by_query.values()):
            heads += [f"{name}: TaskManagers", f"{name}: spilled"]
    rows = []
    for number in next(iter(results.values())):
        row = [str(number)]
        for name, by_query in results.items():
            one = by_query[number]
            row.append(size(one.peak_bytes))
            if f"{name}: spilled" in heads:
                row += [size(one.worker_peak_bytes), size(one.breakdown.get("spilled_bytes", 0))]
        rows.append(row)
    most = ["most"]
    for name, by_query in results.items():
        most.append(size(max(one.peak_bytes for one in by_query.values())))
        if f"{name}: spilled" in heads:
            most.append(size(max(one.worker_peak_bytes for one in by_query.values())))
            most.append(size(max(one.breakdown.get("spilled_bytes", 0) for one in by_query.values())))
    told = (
        "The peak of the proportional set sizes of all processes of an engine, JVM and Redis included, sampled in the "
        "first round; the sum of the TaskManagers alone; and what they spilled to disk, without DuckDB's own temporary "
        "files."
    )
    return ["", "## Peak memory", "", told, "", *table(heads, [*rows, most])]


def _breakdowns(results: Results) -> list[str]:
    lines: list[str] = []
    for name, by_query in results.items():
        told = {number: one.breakdown for number, one in by_query.items() if one.breakdown}
        if not told:
            continue
        threads = next(iter(told.values()))["threads"]
        rows = [
            [number, *(seconds(facts[key]) for key in HEADINGS), *_counts(facts)]
            for number, facts in told.items()
        ]
        sums = {key: sum(facts[key] for facts in told.values()) for key in next(iter(told.values()))}
        rows.append(["all", *(seconds(sums[key]) for key in HEADINGS), *_counts(sums)])
        heads = [
            "query",
            *HEADINGS.values(),
            *("tasks", "exchanged", "sent", "lineage bytes/task", "GCS calls/task"),
        ]
        lines += ["", f"## Where the time of {name} went", ""]
        lines += [f"{EXPLANATION} {threads} kernel threads.", "", *table(heads, rows)]
    return lines


def _counts(facts: Mapping[str, Any]) -> tuple[str, ...]:
    tasks = max(facts["tasks"], 1)
    return (
        whole(facts["tasks"]),
        size(facts["exchanged_bytes"]),
        size(facts["sent_bytes"]),
        f"{facts['lineage_bytes'] / tasks:.1f}",
        f"{facts['store_calls'] / tasks:.2f}",
    )


def _seconds(one: Timed) -> str:
    if not one.seconds:
        return f"failed: {one.error}"
    wrong = " DIFFERS" if one.difference else ""
    apart = max(one.seconds) - min(one.seconds)
    return f"{median(one.seconds):.2f} ({one.seconds[0]:.2f}, ±{apart / 2:.2f}){wrong}"


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
