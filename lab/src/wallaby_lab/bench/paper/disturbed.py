"""The figures in which a worker is lost: (e), (f) and the table of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from wallaby.lineage.tolerance import POLICIES
from wallaby_lab.bench.figures import geometric_mean
from wallaby_lab.bench.killing import EXECUTORS
from wallaby_lab.bench.losses import (
    UNDISTURBED_MIN,
    Runs,
    answers,
    loss_ratio,
    lost_seconds,
    run_losses,
    teller,
    usual_seconds,
)
from wallaby_lab.bench.paper.measure import run_policies
from wallaby_lab.bench.paper.setup import OFF, QUERIES, SHARES, Figure, Setup

_SECONDS: Final = (
    "Seconds are medians, of all undisturbed runs and of those with a loss. Undisturbed ones: one a round, and "
    f"{UNDISTURBED_MIN} at least."
)


def recovery(setup: Setup) -> Figure:
    """(e): a worker killed at half of the time; SparkSQL killed in the same way; running the query again."""
    queries = setup.asked(QUERIES)
    raw: dict[str, dict[int, Runs]] = {}
    for name, engine in setup.losing().items():
        with engine as lane:
            raw[name] = {
                n: run_losses(lane, n, (0.5,), setup.rounds, teller(name, n, setup.say)) for n in queries
            }
    series = {name: _known({n: loss_ratio(runs) for n, runs in by.items()}) for name, by in raw.items()}
    ours = {
        f"{name}, geometric mean": geometric_mean(list(each.values()))
        for name, each in series.items()
        if each
    }
    heads = [f"{name} {what}, s" for name in raw for what in ("undisturbed", "with a loss")]
    rows = [[str(n), *(cell for by in raw.values() for cell in _seconds(by[n], 0.5))] for n in queries]
    return Figure(
        "A worker killed at half of the time",
        "time over that undisturbed",
        series,
        ours,
        {"runs": raw},
        str(EXECUTORS),
        [["query", *heads], *rows],
        _SECONDS,
        *_answers(runs for by in raw.values() for runs in by.values()),
    )


def case_study(setup: Setup) -> Figure:
    """(f): query 9, killed earlier and later."""
    number = setup.queries[0] if setup.queries else 9
    raw: dict[str, Runs] = {}
    for name, engine in setup.losing().items():
        with engine as lane:
            raw[name] = run_losses(lane, number, SHARES, setup.rounds, teller(name, number, setup.say))
    series = {
        name: _known({round(share * 100): loss_ratio(runs, share) for share in SHARES})
        for name, runs in raw.items()
    }
    rows = [[name, *_seconds(runs, *SHARES)] for name, runs in raw.items()]
    return Figure(
        f"Query {number}, a worker killed at so many per cent of the time",
        "time over that undisturbed",
        series,
        {},
        {"runs": raw},
        str(EXECUTORS),
        [["seconds", "undisturbed", *(f"at {share:.0%}" for share in SHARES)], *rows],
        _SECONDS,
        *_answers(raw.values()),
    )


def policies(setup: Setup) -> Figure:
    """All policies: overhead without a failure and with one, bytes persisted, channels rewound."""
    queries = setup.asked(QUERIES)
    names = [name for name in POLICIES if name != "off"]
    variants: dict[str, dict[str, Any]] = {"off": dict(OFF), **{name: setup.policy(name) for name in names}}
    with setup.wallaby(cluster=True) as lane:
        raw = run_policies(lane, variants, queries, setup.rounds, setup.say)
    base = {n: usual_seconds(raw["off"][n]["undisturbed"]) for n in queries}
    series = {
        name: {n: usual_seconds(raw[name][n]["undisturbed"]) / base[n] for n in queries} for name in names
    }
    heads = [
        *("policy", "without a failure", "with one", "persisted MB", "lineage KB", "spilled MB", "rewound"),
        *("killed in time", "equal answers"),
    ]
    table = [heads, *([name, *_policy_cells(raw[name], series[name], base)] for name in names)]
    return Figure(
        "Fault-tolerance policies",
        "time over that without fault tolerance",
        series,
        {},
        {"runs": raw},
        str(EXECUTORS),
        table,
        "Bytes are those of one undisturbed run of each query, channels rewound those of all losses.",
        *_answers(runs for by in raw.values() for runs in by.values()),
    )


def _policy_cells(
    by_query: Mapping[int, Runs], overheads: Mapping[int, float], base: Mapping[int, float]
) -> list[str]:
    lost = _known({n: lost_seconds(runs) for n, runs in by_query.items()})
    first = [runs["undisturbed"][0] for runs in by_query.values()]
    losses = [loss for runs in by_query.values() for loss in runs["losses"]]
    equal, of = _answers(by_query.values())

    def total(what: str) -> float:
        return float(sum(run[what] for run in first))

    return [
        f"{geometric_mean(list(overheads.values())):.2f}",
        f"{geometric_mean([seconds / base[n] for n, seconds in lost.items()]):.2f}" if lost else "",
        f"{total('durable_bytes') / 1e6:.1f}",
        f"{total('lineage_bytes') / 1e3:.1f}",
        f"{total('spilled_bytes') / 1e6:.1f}",
        str(sum(loss["channels_rewound"] for loss in losses)),
        f"{sum(loss['killed_at'] is not None for loss in losses)} of {len(losses)}",
        f"{equal} of {of}",
    ]


def _seconds(runs: Runs, *shares: float) -> list[str]:
    """What a query takes undisturbed, and with a loss at each of these shares."""
    lost = [lost_seconds(runs, share) for share in shares]
    return [f"{usual_seconds(runs['undisturbed']):.2f}", *("" if s is None else f"{s:.2f}" for s in lost)]


def _answers(all_runs: Iterable[Runs]) -> tuple[int, int]:
    counts = [answers(runs) for runs in all_runs]
    return sum(equal for equal, _ in counts), sum(of for _, of in counts)


def _known(values: Mapping[int, float | None]) -> dict[int, float]:
    return {at: value for at, value in values.items() if value is not None}
