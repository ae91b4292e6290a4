"""A page about a workload under budgets: how the queries ended, and their peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby_lab.bench.budgets.run import ALLOWANCE_MIB, SAMPLE_SECONDS, BudgetOutcome
from wallaby_lab.bench.figures import table, where

#: A page names at most this many queries of a long workload: those with the highest peaks.
_QUERIES_MAX: Final = 100


def budget_page(
    title: str, outcomes: Sequence[BudgetOutcome], budgets_mib: dict[str, int], **about: object
) -> str:
    """Markdown. `budgets_mib` has the budgets in the order of the columns."""
    told = (
        f"The promise is the budget and {ALLOWANCE_MIB} MiB beside it. Each peak is the largest proportional set "
        f"size of the TaskManager, sampled every {SAMPLE_SECONDS * 1000:.0f} ms. All answers are compared "
        "with Spark's."
    )
    lines = [f"# {title}", "", where(**about), "", told, ""]
    lines += table(
        [
            "budget",
            "queries",
            "equal",
            "memory error",
            "different",
            "failed",
            "by Spark",
            "workers lost",
            "highest peak (MiB)",
            "beyond the promise",
        ],
        [_summary(name, budget, outcomes) for name, budget in budgets_mib.items()],
    )
    for one in outcomes:
        if one.verdict != "equal" or one.lost or one.over_mib(budgets_mib[one.memory]):
            over = one.over_mib(budgets_mib[one.memory])
            also = f"; {over} MiB beyond the promise" if over else ""
            lost = f"; {one.lost} workers lost" if one.lost else ""
            lines += [
                "",
                f"- {one.query} with {one.memory}: {one.verdict}{also}{lost}. {one.detail}".rstrip(),
            ]
    lines += ["", "Peaks in MiB and seconds, by query:", "", *_by_query(outcomes, list(budgets_mib))]
    return "\n".join(lines) + "\n"


def _summary(name: str, budget_mib: int, outcomes: Sequence[BudgetOutcome]) -> list[object]:
    own = [one for one in outcomes if one.memory == name]
    verdicts = [one.verdict for one in own]
    return [
        name,
        len(own),
        *(verdicts.count(verdict) for verdict in ("equal", "memory", "DIFFERENT", "FAILED")),
        sum(bool(one.reasons) for one in own),
        sum(one.lost for one in own),
        max((one.peak_mib for one in own), default=0),
        sum(bool(one.over_mib(budget_mib)) for one in own),
    ]


def _by_query(outcomes: Sequence[BudgetOutcome], budgets: Sequence[str]) -> list[str]:
    by_name: dict[str, dict[str, BudgetOutcome]] = {}
    for one in outcomes:
        by_name.setdefault(one.query, {})[one.memory] = one
    highest = sorted(by_name, key=lambda name: -max(one.peak_mib for one in by_name[name].values()))
    chosen = set(highest[:_QUERIES_MAX])
    rows = [
        [
            name,
            f"{max(one.spark_seconds for one in found.values()):.1f}",
            *(_cell(found.get(budget)) for budget in budgets),
        ]
        for name, found in sorted(by_name.items())
        if name in chosen
    ]
    return table(["query", "Spark, s", *(f"{budget}: peak, s" for budget in budgets)], rows)


def _cell(one: BudgetOutcome | None) -> str:
    if one is None:
        return ""
    mark = "" if one.verdict == "equal" else f" {one.verdict}"
    return f"{one.peak_mib:,}, {one.seconds:.1f}{mark}"
