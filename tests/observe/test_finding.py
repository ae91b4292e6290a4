"""Findings: each kind has figures that show it and figures that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wallaby.lineage.graph import StageKind
from wallaby.observe.about import About
from wallaby.observe.event_batch import StageTotals
from wallaby.observe.finding import Finding, FindingKind, found_in_log, found_in_run, found_on_spark
from wallaby.observe.history import StageInfo
from wallaby.observe.log_reading import read_log
from wallaby.observe.observation import QueryStats

GIB = 1 << 30


def plan(*tables: str, splits: int = 8) -> tuple[StageInfo, ...]:
    """Two tables are read by two channels each; a join of four channels, and a sort of one."""
    one, two = (f"scan {table}, filter" for table in tables)
    return (
        StageInfo(one, StageKind.READ, 2, splits),
        StageInfo(two, StageKind.READ, 2, 8),
        StageInfo("join", StageKind.EXECUTE, 4, 0),
        StageInfo("sort", StageKind.EXECUTE, 1, 0),
        StageInfo("", StageKind.COLLECT, 1, 0),
    )


PLAN = plan("a", "b")
#: A healthy run of ten seconds.
STATS = QueryStats(
    query="q",
    seconds=10.0,
    commits=40,
    recoveries=0,
    lost_workers=(),
    channels_rewound=0,
    outputs_delivered_again=0,
    outputs_read_again=0,
    frozen_seconds=0.0,
    stages=(
        StageTotals(tasks=8, seconds=4.0, scan_seconds=1.0),
        StageTotals(tasks=8, seconds=4.0, scan_seconds=1.0),
        StageTotals(tasks=16, seconds=8.0),
        StageTotals(tasks=1, seconds=0.5),
        StageTotals(),
    ),
    channels={
        (0, 0): 2.0,
        (0, 1): 2.0,
        (1, 0): 2.0,
        (1, 1): 2.0,
        **{(2, n): 2.0 for n in range(4)},
        (3, 0): 0.5,
    },
    workers=2,
    line="job.py:7",
)


def found(
    stats: QueryStats = STATS,
    of: tuple[StageInfo, ...] = PLAN,
    client_seconds: float = 0.0,
    restarts: int = 0,
) -> list[Finding]:
    return list(found_in_run(of, stats, 10.0, client_seconds, restarts))


def stages(at: int, **changes: float) -> tuple[StageTotals, ...]:
    return tuple(replace(each, **changes) if n == at else each for n, each in enumerate(STATS.stages))  # type: ignore[arg-type]


def test_a_healthy_run_has_no_findings() -> None:
    assert found() == []
    assert list(found_on_spark(False, (), 0.1, 10.0, About())) == []


@pytest.mark.parametrize(
    ("kind", "share", "words", "findings"),
    [
        (
            FindingKind.SKEW,
            0.5,
            ("one of 4 channels did 88% of the work of s2 (join)", "skewed"),
            found(replace(STATS, channels={(2, 0): 7.0, (2, 1): 0.5, (2, 2): 0.5, (2, 3): 0.0})),
        ),
        (
            FindingKind.ONE_CHANNEL,
            0.6,
            ("s3 (sort)", "one channel", "limit"),
            found(replace(STATS, stages=stages(3, seconds=6.0))),
        ),
        (
            FindingKind.ONE_CHANNEL,
            0.4,
            ("s0 (scan a, filter)", "one split", "spark.wallaby.split"),
            found(of=plan("a", "b", splits=1)),
        ),
        (
            FindingKind.READ_TWICE,
            4 / 16.5,
            ("a is read twice, in s0, s1", "persist"),
            found(of=plan("a", "a")),
        ),
        (
            FindingKind.READING,
            10.0 / 17.5,
            ("reading files took 10.00 s",),
            found(replace(STATS, stages=stages(0, scan_seconds=9.0, seconds=5.0))),
        ),
        (
            FindingKind.SPILL,
            8 / 16.5,
            ("spilled 3.0 GiB", "s2 (join)", "Raise spark.wallaby.memory by about 1.5 GiB"),
            found(replace(STATS, stages=stages(2, spilled_bytes=3 * GIB))),
        ),
        (FindingKind.CLIENT, 0.3, ("waited 3.00 s", "engine.write"), found(client_seconds=3.0)),
        (
            FindingKind.RECOVERY,
            0.3,
            ("loss of w1: 3 channels rewound, frozen for 1.00 s, 4.00 s of work repeated",),
            found(
                replace(
                    STATS,
                    recoveries=1,
                    lost_workers=("w1",),
                    channels_rewound=3,
                    frozen_seconds=1.0,
                    stages=stages(2, again_seconds=4.0),
                )
            ),
        ),
        (
            FindingKind.RESTART,
            0.6,
            ("restarted 1 time", "broadcast"),
            found(replace(STATS, seconds=4.0), restarts=1),
        ),
        (
            FindingKind.SPARK_LEAF,
            0.4,
            ("Spark ran a part of the query first, for 4.00 s: a UDF",),
            list(found_on_spark(False, ("a UDF",), 4.0, 10.0, About(line="job.py:7"))),
        ),
        (
            FindingKind.ON_SPARK,
            1.0,
            ("Spark ran the query: Sin is not exact. docs",),
            list(found_on_spark(True, ("Sin is not exact.",), 0.0, 10.0, About(line="job.py:7"))),
        ),
    ],
    ids=lambda value: value.value if isinstance(value, FindingKind) else None,
)
def test_what_costs_time_is_found(
    kind: FindingKind, share: float, words: tuple[str, ...], findings: list[Finding]
) -> None:
    (finding,) = findings
    assert finding.kind is kind
    assert finding.share == pytest.approx(share)
    assert finding.line == "job.py:7"
    text = str(finding)
    assert all(word in text for word in words), text
    assert text.startswith(f"{share:.0%} of the time: ")


def test_the_costliest_comes_first_and_trifles_are_left_out() -> None:
    kinds = [finding.kind for finding in found(of=plan("a", "a"), client_seconds=4.0)]
    assert kinds == [FindingKind.CLIENT, FindingKind.READ_TWICE]
    assert found(client_seconds=0.4) == []
    assert "<script>" not in Finding(FindingKind.CLIENT, 0.5, "<script>", "x")._repr_html_()


def test_an_event_log_has_findings_too() -> None:
    history = read_log(Path(__file__).parent / "logs" / "recovery.jsonl")
    assert FindingKind.RECOVERY not in {finding.kind for finding in found_in_log(history)}, (
        "it was a short one"
    )
    (recovery,) = history.recoveries
    history.recoveries = [replace(recovery, resumed_at=recovery.at + history.seconds / 2)]
    (finding,) = found_in_log(history)
    assert finding.kind is FindingKind.RECOVERY
    assert finding.share == pytest.approx(0.5, abs=0.1)
    assert history.lost[0][0] in finding.what
