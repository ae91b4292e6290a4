"""What is said about a workload under budgets, and the random queries that it asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby_lab.bench.budgets.exploding import query
from wallaby_lab.bench.budgets.page import budget_page
from wallaby_lab.bench.budgets.run import ALLOWANCE_MIB, BudgetOutcome
from wallaby_lab.tpcds import TpcdsError, generate
from wallaby_lab.tpcds import query as tpcds_query


def outcome(name: str, verdict: str, peak_mib: int, lost: int = 0) -> BudgetOutcome:
    return BudgetOutcome(
        name, "1g", verdict, "why" if verdict != "equal" else "", (), 1, 1.0, 2.0, peak_mib, lost
    )


def test_a_peak_counts_beyond_the_budget_and_its_allowance() -> None:
    within, beyond = (
        outcome("q1", "equal", 1024 + ALLOWANCE_MIB),
        outcome("q2", "equal", 1025 + ALLOWANCE_MIB),
    )
    assert (within.over_mib(1024), beyond.over_mib(1024)) == (0, 1)


def test_the_page_counts_how_queries_ended_and_names_those_that_went_wrong() -> None:
    runs = [
        outcome("q1", "equal", 900),
        outcome("q2", "memory", 1000),
        outcome("q3", "DIFFERENT", 800),
        outcome("q4", "equal", 2000, lost=1),
    ]
    page = budget_page("A title", runs, {"1g": 1024}, data="ds1")
    assert "| 1g | 4 | 2 | 1 | 1 | 0 | 0 | 1 | 2000 | 1 |" in page
    assert "- q3 with 1g: DIFFERENT. why" in page
    assert (
        f"- q4 with 1g: equal; {2000 - 1024 - ALLOWANCE_MIB} MiB beyond the promise; 1 workers lost." in page
    )
    assert "- q1 with" not in page


def test_a_seed_gives_one_query_for_ever_and_seeds_differ() -> None:
    assert len({query(seed) for seed in range(50)}) == 50
    assert query(7) == query(7)


def test_tpcds_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(TpcdsError, match="make tpcds"):
        generate(tmp_path / "data", tmp_path / "packages")
    with pytest.raises(TpcdsError, match=r"no q05\.sql"):
        tpcds_query(tmp_path, 5)
    with pytest.raises(InvalidArgumentError, match="no query 100"):
        tpcds_query(tmp_path, 100)
