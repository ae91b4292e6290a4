"""The page says what the report says, and the page in the documentation is that of the report beside it."""

from __future__ import annotations

import json
from pathlib import Path

from wallaby_lab.differential.page import page

ROOT = Path(__file__).parents[3]


def test_shares_are_of_the_queries_that_read_something() -> None:
    report = {
        "entries": {"Upper": {"native": 2, "on_spark": 1, "compared": 8, "raised": 0, "in_doubt": 3, "different": []}},
        "queries": [
            {"seeds": [0, 6], "queries": 6, "how": {"native": 3, "local": 2, "spark": 1}, "raised": 1, "invalid": 0,
             "reasons": {"Sample: it is random": 1, "plan: local rows need no engine": 2}, "different": [4]},
        ],
    }  # fmt: skip
    text = page(report)
    assert "| `Upper` | 2 | 1 | 8 | 0 | 3 |" in text
    assert "75.0 % ran natively" in text
    assert "25.0 % on Spark" in text
    assert "| 1 | Sample: it is random |" in text
    assert "need no engine" not in text
    assert "Different: 4." in text
    assert "| `Lower` | not compared as a whole yet |" in text
    assert "| `Upper` | not compared" not in text
    assert "| `AtLeastNNonNulls` | no SQL" in text


def test_reasons_are_put_together_by_what_they_are_about() -> None:
    reasons = {
        "MapSort(MapFilter([[{'string': 'c'}], [, -…: maps have no order": 2,
        "MapSort(t0_4): maps have no order": 1,
        "plan: Spark did not plan this query: [DIVIDE_BY_ZERO] Division by zero. Use try_divide": 1,
    }
    part = {
        "seeds": [0, 4],
        "queries": 4,
        "how": {"spark": 4},
        "raised": 1,
        "reasons": reasons,
        "different": [],
    }
    text = page({"queries": [part]})
    assert "| 3 | MapSort: maps have no order |" in text
    assert "| 1 | plan: Spark did not plan this query: [DIVIDE_BY_ZERO] |" in text


def test_the_page_in_the_documentation_is_that_of_its_report() -> None:
    report = json.loads((ROOT / "reports" / "differential.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "differential.md").read_text(encoding="utf-8") == page(report)
