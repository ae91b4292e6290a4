"""One deployment after the other: the old one ends first, its queries go on or their clients are told, never both."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from tests.coordinator.cluster import GRAPH

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.coordinator.query import Query
from wallaby.errors import AttachError, GcsError, GcsLostError, GcsUnreachableError, QueryCancelledError
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.submission import Submission
from wallaby.lineage.names import QueryId
from wallaby.spark.succession import Succession

LOST = GcsLostError("lost, on purpose")


class FakeHead:
    """A head whose store is lost or not, and that keeps what it is given."""

    def __init__(self) -> None:
        self.lost_store: GcsError | None = None
        self.taken: list[Collected] = []
        self.took = threading.Event()

    def take_over(self, _: Submission, collected: Collected) -> None:
        self.taken.append(collected)
        self.took.set()


class FakeDeployment:
    """What is done to a deployment, in the order of all deployments of a test."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.engine = name
        self.head = FakeHead()
        self._said = said
        said.append(f"{name} is made")

    def start(self) -> None:
        self._said.append(f"{self.engine} is started")

    def await_workers(self) -> None:
        self._said.append(f"{self.engine} has workers")

    def close(self) -> None:
        self._said.append(f"{self.engine} is closed")


class Deployments:
    """Makes them, unless there is trouble."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.made: list[FakeDeployment] = []
        self.formerly: list[tuple[str, ...]] = []
        self.trouble: Exception | None = None
        self.taken: list[str] = []
        self.succession = Succession(cast("Any", self._make), lambda each: self.taken.append(each.engine))

    def _make(self, formerly: tuple[str, ...]) -> FakeDeployment:
        if self.trouble is not None:
            raise self.trouble
        self.formerly.append(formerly)
        self.made.append(FakeDeployment(f"d{len(self.made)}", self.said))
        return self.made[-1]


def collected_of(query: str = "q") -> Collected:
    return Collected(QueryId(query), GRAPH, lambda _because: None, held_back=True)


def submission_of(collected: Collected, losses: int) -> Submission:
    none: Any = None
    return Submission(none, none, Query(collected.query, GRAPH), store_losses_left=losses)


def test_a_head_whose_store_is_well_stays() -> None:
    deployments = Deployments()
    assert deployments.succession.head() is cast("Any", deployments.made[0].head)
    assert deployments.said == ["d0 is made"]


def test_everything_of_the_old_deployment_ends_before_anything_of_the_new_one_begins() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    assert deployments.succession.head() is cast("Any", deployments.made[1].head)
    assert deployments.said == ["d0 is made", "d0 is closed", "d1 is made", "d1 is started", "d1 has workers"]
    assert deployments.formerly == [(), ("d0",)]
    assert deployments.taken == ["d0", "d1"]


def test_a_store_that_is_not_there_is_said_and_tried_again_with_the_next_query() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    deployments.trouble = GcsUnreachableError("nothing there")
    for _ in range(2):
        with pytest.raises(GcsUnreachableError):
            deployments.succession.head()
    deployments.trouble = None
    assert deployments.succession.head() is cast("Any", deployments.made[1].head)
    assert set(deployments.formerly[-1]) == {"d0"}


def test_a_query_that_is_lost_is_taken_over_by_the_new_head() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    collected = collected_of()
    deployments.succession.run_elsewhere(submission_of(collected, 1), collected)
    assert collected.removed.wait(0) is False
    assert deployments.succession.head() is cast("Any", deployments.made[1].head), (
        "made by whoever came first"
    )
    assert deployments.made[1].head.took.wait(10)
    assert deployments.made[1].head.taken == [collected]


def test_a_client_whose_query_cannot_be_taken_over_is_told() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    deployments.trouble = GcsUnreachableError("nothing there")
    collected = collected_of()
    deployments.succession.run_elsewhere(submission_of(collected, 1), collected)
    with pytest.raises(GcsUnreachableError):
        list(collected.batches())
    assert collected.removed.wait(10)


def test_a_query_that_is_run_again_waits_for_a_store_that_will_do() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    deployments.trouble = GcsUnreachableError("nothing there yet")
    deployments.succession._patience_seconds = 60.0
    refused = threading.Event()
    make = deployments.succession._make

    def noticed(formerly: tuple[str, ...]) -> Any:
        try:
            return make(formerly)
        except GcsUnreachableError:
            deployments.trouble = None
            refused.set()
            raise

    deployments.succession._make = noticed
    collected = collected_of()
    deployments.succession.run_elsewhere(submission_of(collected, 1), collected)
    assert refused.wait(10)
    until_taken = threading.Event()
    for _ in range(100):
        if len(deployments.made) > 1 and deployments.made[1].head.took.wait(0.1):
            break
        until_taken.wait(0.05)
    assert deployments.made[1].head.taken == [collected]
    assert not collected.is_over


def test_a_query_that_is_cancelled_waits_for_no_other_store() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    asked = []

    def unusable(names: tuple[str, ...]) -> Any:
        asked.append(names)
        raise GcsUnreachableError("Redis is away.")

    deployments.succession._make = unusable
    deployments.succession._patience_seconds = 3600
    collected = collected_of()
    submission = submission_of(collected, 1)
    deployments.succession.run_elsewhere(submission, collected)
    submission.query.cancel()
    with pytest.raises(QueryCancelledError):
        list(collected.batches())


def test_a_closed_engine_makes_no_other_deployment() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    deployments.succession.close()
    with pytest.raises(AttachError, match="closed"):
        deployments.succession.head()
    assert len(deployments.made) == 1


def test_a_deployment_that_was_made_while_the_engine_was_closed_is_closed_too() -> None:
    deployments = Deployments()
    deployments.made[0].head.lost_store = LOST
    closing = deployments.succession

    def close_meanwhile(self: FakeDeployment) -> None:
        closing.close()

    FakeDeployment.await_workers, before = close_meanwhile, FakeDeployment.await_workers  # type: ignore[method-assign]
    try:
        with pytest.raises(AttachError, match="closed"):
            deployments.succession.head()
    finally:
        FakeDeployment.await_workers = before  # type: ignore[method-assign]
    assert deployments.said[-1] == "d1 is closed"


# --- the head --------------------------------------------------------------------------------------------------


class Handed:
    """A head of which the store can be lost, and the queries that it has handed over."""

    def __init__(self) -> None:
        self.queries: list[QueryId] = []
        none: Any = None
        self.head = Head(
            MemoryGcs(MemoryStore(lambda: 0)),
            none,
            none,
            lambda _address, _seconds: None,
            CoordinatorSettings(),
            run_elsewhere=lambda _, collected: self.queries.append(collected.query),
        )

    def lose(self, collected: Collected, submission: Submission, error: BaseException = LOST) -> None:
        self.head._collected[collected.query] = collected
        self.head._submissions[collected.query] = submission
        self.head._node_ended(error)


@pytest.fixture
def handed() -> Any:
    found = Handed()
    found.head.start()
    yield found
    found.head.stop(1.0)


def test_a_client_that_finds_the_store_lost_tells_the_head_at_once(handed: Handed) -> None:
    handed.head.lose_store(LOST)
    assert handed.head.lost_store is LOST, "else the next query would be given to the same head"


def test_a_query_is_run_again_as_often_as_it_may_be_and_then_its_client_is_told(handed: Handed) -> None:
    collected = collected_of()
    submission = submission_of(collected, 3)
    for times in (1, 2, 3):
        handed.lose(collected, submission)
        assert len(handed.queries) == times
        assert not collected.is_over
    handed.lose(collected, submission)
    assert len(handed.queries) == 3
    with pytest.raises(GcsLostError):
        list(collected.batches())


@pytest.mark.parametrize("why", ["not asked", "cancelled", "another error"])
def test_a_query_is_not_run_again(handed: Handed, why: str) -> None:
    collected = collected_of()
    submission = submission_of(collected, 0 if why == "not asked" else 3)
    if why == "cancelled":
        submission.query.cancel()
    error = QueryCancelledError("over") if why == "another error" else LOST
    handed.lose(collected, submission, error)
    assert handed.queries == []
    with pytest.raises(type(error)):
        list(collected.batches())


def test_a_worker_that_has_lost_the_store_ends_the_queries_of_a_head_whose_own_store_answers(
    handed: Handed,
) -> None:
    collected = collected_of()
    handed.head._collected[collected.query] = collected
    handed.head._submissions[collected.query] = submission_of(collected, 0)
    assert handed.head.node.take_loss is not None
    handed.head.node.take_loss("Redis is not the store it was.")
    with pytest.raises(GcsLostError, match="A TaskManager has lost the control store"):
        list(collected.batches())
    assert handed.head.lost_store is not None
