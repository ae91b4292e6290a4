"""Findings: the few things that cost a query most, each with its share of the time and what to do about it.

They are made of figures that exist anyway. A query that was not observed has few: where it ran, losses, a slow client.
An observed one (`observed=True`, an event log, the live page) also has those about stages, channels and memory. Shares
are estimates: of the time from beginning to end, or, for work that many threads do at once, of all kernel time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import Final

from wallaby.lineage.graph import StageKind
from wallaby.observe.about import About
from wallaby.observe.history import History, StageInfo
from wallaby.observe.observation import QueryStats
from wallaby.observe.units import counted, duration, size
from wallaby.plan.physical import PhysicalPlan

#: A smaller share of the time is not worth a user's attention.
SHARE_MIN: Final = 0.05
#: A channel is skewed if it takes so many times the mean of its stage.
SKEW_FACTOR: Final = 2.0
#: A single channel, or reading, is worth mentioning from this share on.
LARGE_SHARE: Final = 0.25
MOSTLY: Final = 0.5
_SCAN: Final = "scan "


class FindingKind(Enum):
    """What a finding is about."""

    ON_SPARK = "on Spark"
    SPARK_LEAF = "Spark leaf"
    SKEW = "skew"
    ONE_CHANNEL = "one channel"
    READ_TWICE = "read twice"
    READING = "reading"
    SPILL = "spill"
    CLIENT = "client"
    RECOVERY = "recovery"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that cost time, and what to do about it."""

    #: What it is about.
    kind: FindingKind
    #: Its share of the time, between 0 and 1.
    share: float
    #: What cost the time, as a sentence.
    what: str
    #: What to do about it, as a sentence.
    advice: str
    #: The line of the program whose action ran the query; empty if it is not known.
    line: str = ""

    def __str__(self) -> str:
        return f"{self.share:.0%} of the time: {self.what} {self.advice}"

    def _repr_html_(self) -> str:
        return f"<p><b>{self.share:.0%}</b> of the time: {escape(self.what)} <i>{escape(self.advice)}</i></p>"


def found_on_spark(
    is_sparks: bool, reasons: Sequence[str], leaf_seconds: float, seconds: float, about: About
) -> tuple[Finding, ...]:
    """What Spark's share of a query cost."""
    why = "; ".join(reasons).rstrip(".")
    if is_sparks:
        what = f"Spark ran the query: {why}." if why else "Spark ran the query."
        advice = "docs/compatibility.md lists what runs natively."
        return (Finding(FindingKind.ON_SPARK, 1.0, what, advice, about.line),)
    share = _share(leaf_seconds, seconds)
    if share < SHARE_MIN:
        return ()
    what = f"Spark ran a part of the query first, for {duration(leaf_seconds)}{f': {why}' if why else ''}."
    advice = "Replace that part by native expressions, or keep its rows as Parquet files."
    return (Finding(FindingKind.SPARK_LEAF, share, what, advice, about.line),)


@dataclass(frozen=True, slots=True)
class _Run:
    stages: Sequence[StageInfo]
    stats: QueryStats
    seconds: float
    client_seconds: float
    restarts: int

    @property
    def kernel_seconds(self) -> float:
        return sum(stage.seconds for stage in self.stats.stages)

    def name(self, stage: int) -> str:
        label = self.stages[stage].label
        return f"s{stage} ({label})" if label else f"s{stage}"


def stages_of(plan: PhysicalPlan) -> tuple[StageInfo, ...]:
    """The stages of a plan, as an event log has them."""
    return tuple(
        StageInfo(label, stage.kind, stage.channels, stage.splits)
        for label, stage in zip(plan.labels, plan.graph.stages, strict=True)
    )


def found_in_run(
    stages: Sequence[StageInfo],
    stats: QueryStats,
    seconds: float,
    client_seconds: float = 0.0,
    restarts: int = 0,
) -> tuple[Finding, ...]:
    """What cost most in a run on the engine, the largest first."""
    run = _Run(stages, stats, max(seconds, 0.001), client_seconds, restarts)
    found = [finding for find in _FINDERS for finding in find(run) if finding.share >= SHARE_MIN]
    return tuple(sorted(found, key=lambda finding: -finding.share))


def found_in_log(history: History) -> tuple[Finding, ...]:
    """What cost most in a run, according to its event log."""
    channels: dict[tuple[int, int], float] = {}
    for run in history.tasks:
        channels[run.stage, run.channel] = channels.get((run.stage, run.channel), 0.0) + run.seconds
    again = [recovery for recovery in history.recoveries if recovery.resumed_at is not None]
    stats = QueryStats(
        query=history.query,
        seconds=history.seconds,
        commits=history.commits,
        recoveries=len(history.recoveries),
        lost_workers=tuple(worker for worker, _ in history.lost),
        channels_rewound=sum(len(each.rewound) for each in again),
        outputs_delivered_again=sum(each.delivered_again for each in again),
        outputs_read_again=sum(each.read_again for each in again),
        frozen_seconds=sum((each.resumed_at or each.at) - each.at for each in again),
        stages=tuple(history.totals()),
        channels=channels,
        workers=max(len(history.workers), 1),
        line=history.about.line,
    )
    return found_in_run(history.stages, stats, history.seconds)


def _skew(run: _Run) -> Iterator[Finding]:
    for number, stage in enumerate(run.stages):
        spent = [run.stats.channels.get((number, channel), 0.0) for channel in range(stage.channels)]
        if stage.kind is not StageKind.EXECUTE or len(spent) < 2 or not sum(spent):
            continue
        mean = sum(spent) / len(spent)
        if max(spent) < SKEW_FACTOR * mean:
            continue
        what = (
            f"one of {len(spent)} channels did {max(spent) / sum(spent):.0%} of the work of {run.name(number)}: "
            "its key is skewed."
        )
        advice = "Filter out or split up the most frequent value of the key (often null or a default)."
        yield Finding(FindingKind.SKEW, _share(max(spent) - mean, run.seconds), what, advice, _line(run))


def _one_channel(run: _Run) -> Iterator[Finding]:
    several = any(stage.channels > 1 for stage in run.stages)
    for number, (stage, totals) in enumerate(zip(run.stages, run.stats.stages, strict=False)):
        alone = stage.splits == 1 if stage.kind is StageKind.READ else stage.channels == 1
        share = _share(totals.seconds, run.seconds)
        if (
            not several
            or not alone
            or stage.kind not in (StageKind.READ, StageKind.EXECUTE)
            or share < LARGE_SHARE
        ):
            continue
        if stage.kind is StageKind.READ:
            what = f"{run.name(number)} is read by one channel, because it is one split."
            advice = "Write the table with smaller row groups, or lower spark.wallaby.split."
        else:
            what = f"{run.name(number)} is done by one channel alone."
            advice = "Add a limit to the global sort, a partitionBy to a window, or keys to an aggregation."
        yield Finding(FindingKind.ONE_CHANNEL, share, what, advice, _line(run))


def _reading(run: _Run) -> Iterator[Finding]:
    """Tables that are read more than once, and reading as a whole."""
    reads: dict[str, list[int]] = {}
    for number, stage in enumerate(run.stages[: len(run.stats.stages)]):
        table = stage.label.partition(",")[0].removeprefix(_SCAN)
        if stage.kind is StageKind.READ and stage.label.startswith(_SCAN) and table:
            reads.setdefault(table, []).append(number)
    for table, stages in reads.items():
        spent = sorted(run.stats.stages[number].seconds for number in stages)
        share = _share(sum(spent[:-1]), run.kernel_seconds)
        if len(stages) < 2:
            continue
        times = "twice" if len(stages) == 2 else f"{len(stages)} times"
        what = f"{table} is read {times}, in {', '.join(f's{number}' for number in stages)}."
        advice = "Compute what both need once, and keep it: engine.persist(df)."
        yield Finding(FindingKind.READ_TWICE, share, what, advice, _line(run))
    scanning = sum(stage.scan_seconds for stage in run.stats.stages)
    share = _share(scanning, run.kernel_seconds)
    if share >= MOSTLY and scanning >= 0.5:
        what = f"reading files took {duration(scanning)} of kernel time."
        advice = "Select fewer columns, filter on sorted or partition columns, or keep the rows: engine.persist(df)."
        yield Finding(FindingKind.READING, share, what, advice, _line(run))


def _spill(run: _Run) -> Iterator[Finding]:
    spilled = sum(stage.spilled_bytes for stage in run.stats.stages)
    if not spilled:
        return
    most = max(range(len(run.stats.stages)), key=lambda number: run.stats.stages[number].spilled_bytes)
    of_stages = sum(stage.seconds for stage in run.stats.stages if stage.spilled_bytes)
    share = _share(of_stages, run.kernel_seconds)
    per_worker = spilled / max(run.stats.workers, 1)
    what = f"stages that spilled {size(spilled)} to disk, most of it {run.name(most)}."
    advice = f"Raise spark.wallaby.memory by about {size(per_worker)}, or use more TaskManagers."
    yield Finding(FindingKind.SPILL, max(share, SHARE_MIN), what, advice, _line(run))


def _client(run: _Run) -> Iterator[Finding]:
    what = f"the workers waited {duration(run.client_seconds)} for the program to take rows."
    advice = "Take rows faster, aggregate before collecting, or write the rows with engine.write(df)."
    yield Finding(FindingKind.CLIENT, _share(run.client_seconds, run.seconds), what, advice, _line(run))


def _recovery(run: _Run) -> Iterator[Finding]:
    stats = run.stats
    if not stats.recoveries:
        return
    again = sum(stage.again_seconds for stage in stats.stages)
    cost = stats.frozen_seconds + again / max(stats.workers, 1)
    what = (
        f"recovering from the loss of {', '.join(stats.lost_workers) or 'a worker that left'}: "
        f"{counted(stats.channels_rewound, 'channel')} rewound, frozen for {duration(stats.frozen_seconds)}, "
        f"{duration(again)} of work repeated."
    )
    advice = (
        "If losses come often, look at the executors' logs; memory limits of the host are the usual cause."
    )
    yield Finding(FindingKind.RECOVERY, _share(cost, run.seconds), what, advice, _line(run))


def _restart(run: _Run) -> Iterator[Finding]:
    if not run.restarts:
        return
    what = f"the query was restarted {counted(run.restarts, 'time')}, and what it had done before was lost."
    advice = (
        "The reason is in the log; lower spark.wallaby.broadcast if a build side was larger than estimated."
    )
    yield Finding(
        FindingKind.RESTART, _share(run.seconds - run.stats.seconds, run.seconds), what, advice, _line(run)
    )


_FINDERS: Final[tuple[Callable[[_Run], Iterator[Finding]], ...]] = (
    _skew,
    _one_channel,
    _reading,
    _spill,
    _client,
    _recovery,
    _restart,
)


def _line(run: _Run) -> str:
    return run.stats.line


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole else 0.0
