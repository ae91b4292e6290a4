"""What shapes the execution of a query travels with its plan, and comes out as it went in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.test_tpch_graphs import STATISTICS
from tests.plan.tpch_fixtures import load_relation

from wallaby.errors import EncodingError
from wallaby.lineage.choose import Dynamic, Static
from wallaby.lineage.tolerance import POLICIES, Tolerance
from wallaby.node.payload import QueryPayload
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings
from wallaby.relations.storage import HdfsStorage, S3Storage, Storage

PAYLOAD = QueryPayload(plan(load_relation(6), STATISTICS, PlanSettings(channels=2, workers=1)), 100, 50, 1000)


@pytest.mark.parametrize("tolerance", POLICIES.values())
def test_a_payload_comes_back_as_it_was(tolerance: Tolerance) -> None:
    sent = replace(PAYLOAD, tolerance=tolerance, static_outputs=8, several=False, observed=True)
    assert QueryPayload.decode(sent.encode()) == sent
    assert sent.session_settings().tolerance == tolerance


def test_how_to_reach_files_travels_too_and_is_not_shown() -> None:
    storages: dict[str, Storage] = {
        "a": S3Storage("host:1", "us-east-1", False, False, False, "key", "very-secret", "token"),
        "b": HdfsStorage("namenode:8020", "someone", (("dfs.x", "y"),)),
    }
    sent = replace(PAYLOAD, storages=storages)
    assert QueryPayload.decode(sent.encode()) == sent
    assert "very-secret" not in repr(sent)


def test_the_settings_decide_what_a_task_draws() -> None:
    assert PAYLOAD.session_settings().policy == Dynamic(50)
    assert replace(PAYLOAD, several=False).session_settings().policy == Dynamic(50, several=False)
    assert replace(PAYLOAD, static_outputs=8).session_settings().policy == Static(8)


def test_what_is_no_payload_is_an_error() -> None:
    with pytest.raises(EncodingError):
        QueryPayload.decode(b'{"version": 3}\n')
