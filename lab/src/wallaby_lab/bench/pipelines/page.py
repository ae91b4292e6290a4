"""The page about pipelines, from the figures of all parts that have been run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from wallaby.observe.units import size
from wallaby_lab.bench.contenders import SPARK_SETTINGS
from wallaby_lab.bench.figures import geometric_mean, on_machine, seconds, table
from wallaby_lab.bench.pipelines.handover import HandOver
from wallaby_lab.bench.pipelines.leaves import NOISE_SECONDS, SLOWER_MAX
from wallaby_lab.bench.pipelines.planning import SMALL_SCALE

PLANNING_MAX_MS: Final = 10
_INTRODUCTION: Final = (
    "What runs below Spark's own plans, how fast its rows get into Spark's tasks, and what the engine costs queries "
    "that stay on Spark. `wallaby bench pipelines` measures it. “With” and “without” are the same session with "
    "`spark.wallaby.enabled` true and false, in turn, on the same cores; medians of the rounds."
)
_RATES: Final = {
    "read": ("to read a row", 1e6, "µs"),
    "probe": ("to bring a row to a broadcast table", 1e6, "µs"),
    "reduce": ("to exchange a row for an aggregation or a sort", 1e6, "µs"),
    "join": ("to exchange a row for a join", 1e6, "µs"),
    "row": ("to hand a row over", 1e6, "µs"),
    "byte": ("to hand a byte over", 1e9, "ns"),
    "leaf_row": ("to take a row over that Spark has to make", 1e6, "µs"),
    "write_row": ("to write a row", 1e6, "µs"),
    "write_byte": ("to write a byte", 1e9, "ns"),
    "fixed": ("to begin and end a part", 1e3, "ms"),
}


def pipelines_page(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown. `parts` are figures by part, each with what it is about."""
    lines = ["# Pipelines", "", _INTRODUCTION]
    makers = {
        "handover": _hand_over,
        "pipelines": _pipelines,
        "writes": _writes,
        "planning": _planning,
        "leaves": _leaves,
        "rates": _rates,
    }
    for part, make in makers.items():
        if part in parts:
            rest = ["", "**More cases have not been measured yet.**"] if parts[part].get("unfinished") else []
            lines += ["", *make(parts[part]), *rest, "", _about(parts[part]["about"])]
    lines += ["", "SparkSQL's settings: " + ", ".join(f"`{k}={v}`" for k, v in SPARK_SETTINGS.items()) + "."]
    return "\n".join(lines) + "\n"


def _about(about: Mapping[str, Any]) -> str:
    busy = about["load_before"] > about["cores"] / 4
    noted = f" {about['note']}" if "note" in about else ""
    other = f"; OTHER WORK RAN (load {about['load_before']} before it began)" if busy else ""
    return (
        f"Measured on {on_machine(about['machine'])}: TPC-H {about['data']}, {about['cores']} cores, "
        f"{about['memory_mib']} MiB, half of it the JVM's, {about['rounds']} rounds after {about.get('warm_ups', 1)} "
        f"untimed, commit {about['commit']}, {about['date']}, in {about['took_seconds']} s{other}.{noted}"
    )


def _hand_over(figures: Mapping[str, Any]) -> list[str]:
    rows = []
    for each in figures["cases"]:
        one = HandOver(**each)
        rows.append(
            [
                f"{one.name} ({one.columns} columns)",
                f"{one.rows:,}",
                size(one.size_bytes),
                *(
                    f"{one.rows_per_second(source) / 1e6:.2f} M, {one.bytes_per_second(source) / (1 << 20):.0f} MiB"
                    for source in ("wallaby", "shuffle", "cache")
                ),
            ]
        )
    told = (
        "Rows and bytes per second into Spark's tasks: rows kept in a TaskManager (`engine.persist`), the same "
        "rows in files of a Spark shuffle whose map side has run, and in Spark's cache. Bytes are those of the rows as "
        "Arrow data, whatever a source has. Spark counts the rows of the plan's RDD; each read was checked to run one "
        "stage only."
    )
    heads = ["rows", "number", "bytes", "TaskManager", "Spark's shuffle", "Spark's cache"]
    return ["## Rows into Spark's tasks", "", told, "", *table(heads, rows)]


def _pipelines(figures: Mapping[str, Any]) -> list[str]:
    told = (
        "Whole pipelines. × is how many times as fast they are with the engine. “Parts” counts the parts of the plan "
        "that the TaskManager ran in one run, as counted where it gets them; without the engine it got none. Answers "
        "are compared by number and hashes of the rows that were written. CPU seconds are those of all processes of "
        "the session."
    )
    return ["## Pipelines beside SparkSQL", "", told, "", *_times("pipeline", figures)]


def _writes(figures: Mapping[str, Any]) -> list[str]:
    told = (
        "Whole Parquet tables that the TaskManager writes, beside SparkSQL writing the same; columns as above. Tables "
        "of the catalog are dropped first."
    )
    return ["## Tables written", "", told, "", *_times("table", figures)]


def _times(what: str, figures: Mapping[str, Any]) -> list[str]:
    cases: Sequence[Mapping[str, Any]] = figures["cases"]
    rows = [
        [
            each["name"],
            seconds(median(each["off"])),
            seconds(median(each["on"])),
            f"{each['times_as_fast']:.2f}",
            f"{median(each['off_cpu']):.1f}",
            f"{median(each['on_cpu']):.1f}",
            len(each["parts"]),
            "equal" if each["equal"] else "DIFFERENT",
        ]
        for each in cases
    ]
    mean = geometric_mean([each["times_as_fast"] for each in cases])
    rows.append(["geometric mean", "", "", f"**{mean:.2f}**", "", "", "", ""])
    lines = table([what, "without s", "with s", "×", "CPU s without", "CPU s with", "parts", "answers"], rows)
    strange = [each["name"] for each in cases if not each["parts"] or each["queries_off"]]
    if strange:
        lines += [
            "",
            f"Not as it should be: {'; '.join(strange)}: nothing ran here, or something ran without.",
        ]
    return lines


def _planning(figures: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            each["name"],
            f"{median(each['off']) * 1000:.1f}",
            f"{each['added_ms']:+.1f}",
            f"{each['jvm_added_ms']:+.1f}" if "jvm_added_ms" in each else "",
            f"{each['python_ms']:+.1f}" if "python_ms" in each else "",
            each["taken"],
        ]
        for each in figures["cases"]
    ]
    scale = figures.get("small_scale", SMALL_SCALE)
    untaken = [each["added_ms"] for each in figures["cases"] if not each["taken"]]
    over = sum(added > PLANNING_MAX_MS for added in untaken)
    busy = [
        each["jvm_added_ms"] + each["python_ms"]
        for each in figures["cases"]
        if not each["taken"] and "python_ms" in each
    ]
    told = (
        "Milliseconds that the engine adds to a query of which it takes nothing: the median of the differences of "
        "neighbouring runs. “Plan”: Spark plans the query, and nothing runs. “Small tables” are those of scale "
        f"{scale:g}. CPU time is the driver's, from the optimized to the physical plan: of the thread "
        "of the JVM that plans, and of Python. “Taken” counts parts that were taken: the time of such a query is no "
        "overhead, and it is not counted."
    )
    said = (
        f"**{len(untaken)} queries of which nothing was taken: {max(untaken, default=0):+.1f} ms at most, "
        f"{median(untaken or [0]):+.1f} ms in the median; {over} of them above {PLANNING_MAX_MS} ms. CPU time of the "
        f"driver: {max(busy, default=0):+.1f} ms at most, {median(busy or [0]):+.1f} ms in the median.**"
    )
    heads = ["query", "without ms", "added ms", "CPU ms in the JVM", "CPU ms in Python", "taken"]
    return ["## What planning costs", "", told, "", said, "", *table(heads, rows)]


def _leaves(figures: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            each["name"],
            f"{median(each['off']):.3f}",
            f"{median(each['on']):.3f}",
            f"{median(each['off']) / median(each['on']):.2f}",
            each["queries_on"],
            "SLOWER" if each["slower"] else "",
        ]
        for each in figures["cases"]
    ]
    slower = sum(each["slower"] for each in figures["cases"])
    told = (
        "Queries for which the engine could be a mistake: rows that Spark has in its cache, or has to make by a Python "
        "function or from JSON; and small and medium queries. “Queries” counts what the TaskManager got in one run: 0 "
        "if all of it was left to Spark."
    )
    said = (
        f"**{slower} of {len(rows)} are slower than on Spark alone** by more than {SLOWER_MAX:.0%} and "
        f"{NOISE_SECONDS * 1000:.0f} ms."
    )
    heads = ["query", "without s", "with s", "×", "queries", ""]
    return ["## Queries that should not get slower", "", told, "", said, "", *table(heads, rows)]


def _rates(figures: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            what,
            f"{figures['measured'][name] * factor:.3f} {unit}",
            f"{figures['in_code'][name] * factor:.3f} {unit}",
        ]
        for name, (what, factor, unit) in _RATES.items()
        if name in figures["measured"]
    ]
    told = (
        "The rates from which parts of plans are chosen (`wallaby/plan/choice.py`), in time of one core. The first "
        "four are what Spark needs beyond what the engine needs; each is taken from a query that does one thing more "
        "than those before. The last is time during which all cores wait."
    )
    return ["## Rates", "", told, "", *table(["", "measured", "in the code"], rows)]
