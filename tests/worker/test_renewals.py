"""A worker that is busy renews its lease, and one that is silent is found in time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from wallaby.config.settings import read_settings
from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.head import PING_SECONDS
from wallaby.lineage.names import WorkerId
from wallaby.node.actors import TASK_MANAGER
from wallaby.node.effects import Renew
from wallaby.node.node import EngineNode
from wallaby.node.perform import NodeSettings, Performer
from wallaby.worker.bootstrap import Bootstrap

LIMIT_SECONDS = 10.0
ME = WorkerId("w0-1")


def test_a_lease_is_renewed_while_every_other_call_waits() -> None:
    gcs: Any = MemoryGcs(MemoryStore(lambda: 0))
    gcs.register(ME, "there", 1000)
    failed: list[BaseException | None] = []
    node = EngineNode(ME, failed.append)
    nothing: Any = None
    settings = NodeSettings(kernel_threads=1, call_threads=2)
    performer = Performer(node, gcs, nothing, nothing, nothing, nothing, nothing, settings)
    answers: list[object] = []
    answered, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        go_on.wait(LIMIT_SECONDS)

    def life() -> Any:
        answers.append((yield Renew()))
        answered.set()
        yield from ()

    try:
        for _ in range(2 * settings.call_threads):
            performer.calls.submit(wait)
        node.start(performer, {TASK_MANAGER: life()})
        assert answered.wait(LIMIT_SECONDS / 2), "the renewal waits for other calls"
        assert answers == [True]
    finally:
        go_on.set()
        node.stop()
        performer.stop(LIMIT_SECONDS)
    assert failed in ([], [None])


def test_by_default_a_silent_worker_is_found_within_two_seconds_with_time_to_spare() -> None:
    lease_seconds = read_settings({}, {}).lease
    longest_seconds = lease_seconds + CoordinatorSettings().poll_ms / 1000 + PING_SECONDS
    assert longest_seconds <= 1.8, "from its last renewal until nobody has answered"


@pytest.mark.parametrize("lease_ms", [CoordinatorSettings().lease_ms, NodeSettings(1).lease_ms])
def test_all_defaults_of_the_lease_are_the_same(lease_ms: int) -> None:
    assert (
        lease_ms
        == int(read_settings({}, {}).lease * 1000)
        == Bootstrap.__dataclass_fields__["lease_ms"].default
    )
