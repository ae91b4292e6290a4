"""The stage graph of every TPC-H query at scale factor 10, as reviewed. To accept a change: WALLABY_GOLDEN=write.

Relations and statistics come from files (see `tpch_fixtures`), so this needs neither Spark nor data.
"""

from __future__ import annotations

import difflib
import os

import pytest
from tests.plan.checks import check_plan
from tests.plan.tpch_fixtures import FOLDER, load_relation, load_statistics

from wallaby.plan.explain import explain
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings
from wallaby_lab import tpch

STATISTICS = load_statistics()


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_the_stage_graph_is_as_reviewed(number: int) -> None:
    made = plan(load_relation(number), STATISTICS, PlanSettings(channels=4, workers=2))
    check_plan(made)
    text = explain(made)
    golden = FOLDER / f"q{number:02d}.txt"
    if os.environ.get("WALLABY_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    kept = golden.read_text(encoding="utf-8")
    diff = difflib.unified_diff(kept.splitlines(), text.splitlines(), golden.name, "now", lineterm="")
    assert text == kept, "review it, then WALLABY_GOLDEN=write:\n" + "\n".join(diff)
