"""Describe campaigns, sweeps and failing seeds as plain text."""

from __future__ import annotations

from wallaby.lineage.effects import FailPoint
from wallaby_lab.simulation.campaign import Summary
from wallaby_lab.simulation.drawn.faults import FaultKind
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.shrink import Shrunk
from wallaby_lab.simulation.sweep import SweepResult
from wallaby_lab.simulation.world.process import RunTally

#: Lines of a story that only report polling.
_POLLING = ("Look()", "Watch()", "Renew()", "Discover()", "ReadStatus(")


def format_summary(summary: Summary) -> str:
    """The figures of a campaign, in total and per seed, and the table of fail points and faults."""
    seeds = max(summary.seeds, 1)
    nested = summary.seeds_nested / seeds
    lines = [
        (
            f"{summary.seeds:,} seeds in {summary.seconds:,.1f} s: "
            f"{summary.seeds / max(summary.seconds, 1e-9):.1f} a second"
        ),
        "policies: " + ", ".join(f"{name} {count:,}" for name, count in summary.policies.most_common()),
        _figure("steps", summary.steps, seeds),
        _figure("faults that struck", summary.faults, seeds),
        _figure("workers lost", summary.workers_lost, seeds),
        _figure("recoveries", summary.recoveries, seeds),
        _figure("recoveries during a recovery", summary.nested_recoveries, seeds)
        + f"; in {nested:.1%} of the seeds",
        _figure("channels rewound", summary.rewound, seeds),
        _figure("channels rewound in place", summary.rewound_in_place, seeds),
        _figure("tasks retraced", summary.retraced, seeds),
        _figure("states taken up again", summary.restored, seeds),
        _figure("outputs fetched from the store", summary.fetched, seeds),
        _figure("outputs re-read", summary.reread, seeds),
        _figure("tasks committed", summary.commits, seeds)
        + f"; {summary.lineage_bytes / max(summary.commits, 1):.1f} bytes of lineage each",
        *_rolled_back(summary, seeds),
        "queries ended: " + ", ".join(f"{name} {count:,}" for name, count in summary.outcomes.most_common()),
        "",
        format_struck(summary),
    ]
    return "\n".join(lines)


def _rolled_back(summary: Summary, seeds: int) -> list[str]:
    """Roll-backs of whole queries, under the policy that has them."""
    if not summary.rolled_back:
        return []
    to_start = f"; {summary.rolled_back_to_start:,} of them to the start"
    return [_figure("queries rolled back", summary.rolled_back, seeds) + to_start]


def _figure(name: str, total: int, seeds: int) -> str:
    return f"{name:<30}{total:>13,}  {total / seeds:>10,.2f} a seed"


def format_struck(summary: Summary) -> str:
    """How often each kind of fault (a column) struck at each fail point (a row)."""
    width = max(len(f"{max(summary.struck.values(), default=0)}"), 3) + 1
    head = " " * 19 + "".join(f"{column:>{width}}" for column in range(1, len(FaultKind) + 1))
    rows = [
        f"{point.value:<19}" + "".join(f"{summary.struck[point, kind] or '.':>{width}}" for kind in FaultKind)
        for point in FailPoint
    ]
    legend = [f"{column} {kind.value}" for column, kind in enumerate(FaultKind, start=1)]
    cells = len(FailPoint) * len(FaultKind)
    empty = len(summary.empty_cells())
    return "\n".join(
        (
            "fail points (rows) and the faults that struck there (columns):",
            head,
            *rows,
            "columns: " + ", ".join(legend),
            f"{cells - empty} of {cells} cells filled" + (f", {empty} empty" if empty else ""),
        )
    )


def format_sweep(result: SweepResult) -> str:
    """The result of the exhaustive sweep."""
    lines = [
        f"{result.tried:,} single faults tried, {result.struck:,} struck, {len(result.failures)} broke something"
    ]
    lines += [f"  {fault}: {what}" for fault, what in result.failures]
    return "\n".join(lines)


def format_scenario(scenario: Scenario) -> str:
    """The scenario that a seed has drawn."""
    slow = ", one of them slow" if scenario.slow_worker else ""
    back = "return" if scenario.restarts else "do not return"
    lines = [
        (
            f"{scenario.workers} workers{slow}; crashed ones {back}; {scenario.session.policy}; "
            f"windows of {scenario.session.window_bytes} bytes"
        )
    ]
    for number, workload in enumerate(scenario.workloads, start=1):
        lines.append(f"query q{number}:")
        for stage, (kind, operator) in enumerate(zip(workload.graph.stages, workload.operators, strict=True)):
            feeds = [
                f"{link.kind.value} l{at} from s{link.producer}"
                + (f" phase {link.phase}" if link.phase else "")
                + ("" if link.required else " (optional)")
                for at, link in enumerate(workload.graph.links)
                if link.consumer == stage
            ]
            splits = f", {kind.splits} splits" if kind.splits else ""
            lines.append(
                f"  s{stage} {operator.value}, {kind.channels} channels{splits}  " + ", ".join(feeds)
            )
    return "\n".join(lines)


def format_story(shrunk: Shrunk, lines_max: int) -> str:
    """A failing seed as a story: the scenario, the necessary faults, and what happened."""
    told = [line for line in shrunk.story if not any(polling in line for polling in _POLLING)]
    left_out = len(told) - lines_max
    head = [
        f"seed {shrunk.seed}: {shrunk.result.failure or 'no violation'}",
        format_scenario(shrunk.scenario),
        "faults:",
        *(f"  {fault}" for fault in shrunk.faults),
    ]
    if left_out > 0:
        told = [f"({left_out} earlier lines left out)", *told[-lines_max:]]
    return "\n".join((*head, "", *told))


def format_tally(tally: RunTally) -> str:
    """One run in one line."""
    return (
        f"{tally.steps} steps, {len(tally.fired)} faults struck, {tally.workers_lost} workers lost, "
        f"{tally.recoveries} recoveries ({tally.nested_recoveries} during another), {tally.rewound} channels rewound, "
        f"{tally.commits} tasks committed; ended {', '.join(tally.outcomes) or 'nothing'} "
        f"after {tally.virtual_ms / 1000:.1f} virtual seconds"
    )
