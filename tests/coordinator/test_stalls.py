"""The stall watch: a query in which nothing moves while nobody is busy ends; whoever is only slow is left alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import Driven, W, pipeline

from wallaby.coordinator.effects import Inquire, ReadStatus, Remove
from wallaby.coordinator.query import Cancellation, Query, QueryPhase, ResultState
from wallaby.coordinator.stalls import ROUNDS, SILENT_LIMITS, UNENDED_ROUNDS, WAITS_SHOWN, StallWatch
from wallaby.errors import GcsLostError, QueryCancelledError, QueryStalledError, QueryTimeoutError
from wallaby.gcs.interface import QueryStatus
from wallaby.lineage.effects import Pause
from wallaby.lineage.names import HEAD, QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.standing import Standing, standings

Q = QueryId("q")
A, B = W[:2]
LIMIT_MS = 60_000
PAUSE_MS = LIMIT_MS // ROUNDS
STATUS = QueryStatus(Verdict.DONE, 3, True, (A,), (B,), commits=7)
STANDING = Standing((3, 1, 2), "", ("s1.c0 waits for s0.c0 over l0:0>0",))


class Scene:
    """A query with two members, of which nothing moves unless a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.query = Query(Q, pipeline())
        self.status: QueryStatus | None = STATUS
        self.standings: dict[WorkerId, Standing] | None = dict.fromkeys((A, B, HEAD), STANDING)
        self.asked = self.removals = self.told = 0
        #: Does the store answer a removal?
        self.removes = True
        self.run = Driven(StallWatch(LIMIT_MS, {Q: self.query}, lambda: self.now_ms, self._tell).run())

    def round(self, pause_ms: int = PAUSE_MS) -> None:
        """One pause, and what follows it."""
        assert isinstance(self.run.now, Pause)
        self.now_ms += pause_ms
        effect: Any = self.run.answer(True)
        while not isinstance(effect, Pause):
            if isinstance(effect, Remove):
                self.removals += 1
                effect = self.run.answer(self.removes or None)
            elif isinstance(effect, ReadStatus):
                effect = self.run.answer(self.status)
            else:
                assert effect == Inquire(Q, (HEAD, A, B))
                self.asked += 1
                effect = self.run.answer(None if self.standings is None else self.gathered(effect))

    def gathered(self, effect: Inquire) -> dict[WorkerId, Standing]:
        """What the head gathers if these processes answer and the others do not."""
        assert self.standings is not None
        told: list[dict[WorkerId, Standing]] = []
        standings(effect.workers, self.standings.get, told.append, lambda job: job())
        return told[0]

    def _tell(self) -> None:
        assert self.query.ended
        self.told += 1

    @property
    def ended(self) -> list[Any]:
        """The error with which the query was ended, if it was."""
        return [self.query.cancelled_error] if self.query.cancelled else []

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.round()


def test_a_query_in_which_nothing_moves_and_nobody_is_busy_ends_after_the_limit() -> None:
    scene = Scene()
    scene.rounds(ROUNDS + 1)
    assert not scene.ended, "two looks at the status and an answer of everybody come first"
    scene.round()
    (error,) = scene.ended
    assert isinstance(error, QueryStalledError)
    assert "no progress for 60.0 s" in error.what
    for worker in (A, B, HEAD):
        assert f"{worker}: s1.c0 waits for s0.c0 over l0:0>0" in error.what
    assert len(error.fields["waits"]) == 3  # type: ignore[arg-type]


def test_a_query_that_is_being_put_into_the_store_is_not_watched_yet() -> None:
    """How long the store may take for it has a limit of its own, and an error that says so."""
    scene = Scene()
    scene.query.phase = QueryPhase.ENTERING
    scene.rounds(2 * ROUNDS)
    assert (scene.asked, scene.ended) == (0, [])


def test_while_tasks_are_committed_nobody_is_asked() -> None:
    scene = Scene()
    for commits in range(5 * ROUNDS):
        scene.status = replace(STATUS, commits=commits)
        scene.round()
    assert scene.asked == 0
    assert not scene.query.cancelled


Change = Callable[[Scene], None]


def standing(worker: WorkerId, **change: Any) -> Change:
    def apply(scene: Scene) -> None:
        assert scene.standings is not None
        scene.standings = {**scene.standings, worker: replace(STANDING, **change)}

    return apply


def status(**change: Any) -> Change:
    def apply(scene: Scene) -> None:
        scene.status = replace(STATUS, **change)

    return apply


def silence(scene: Scene) -> None:
    scene.standings = {A: STANDING, B: STANDING}


def no_answers(scene: Scene) -> None:
    scene.standings = None


def silent_store(scene: Scene) -> None:
    scene.status = None


@pytest.mark.parametrize(
    "excuse",
    [
        standing(A, busy="s1.c0.t3 is being executed, or waits for a thread"),
        standing(HEAD, busy="the client has not taken the rows that are there"),
        standing(B, marks=(3, 1, 99)),
        status(gate_open=False),
        status(epoch=5),
        status(error="something"),
        status(verdict=Verdict.GONE),
    ],
    ids=[
        "a task is executed",
        "the client is waited for",
        "something moves",
        "the gate is closed",
        "another epoch",
        "an error of its own",
        "the query is gone",
    ],
)
def test_one_round_that_was_not_still_begins_the_time_anew(excuse: Change) -> None:
    scene = Scene()
    scene.rounds(ROUNDS)
    before, asked = scene.status, scene.standings
    excuse(scene)
    scene.round()
    scene.status, scene.standings = before, asked
    scene.rounds(ROUNDS)
    assert not scene.query.cancelled
    scene.rounds(2)
    assert scene.query.cancelled


@pytest.mark.parametrize(
    "unanswered",
    [silence, no_answers, silent_store],
    ids=["the head does not answer", "nobody answers", "the store does not answer"],
)
def test_a_round_without_an_answer_does_not_count_and_hides_no_stall(unanswered: Change) -> None:
    """A wire to the head that fails every other time would else hide a query that stands still, for ever."""
    scene = Scene()
    still = scene.status, scene.standings
    scene.rounds(2)
    for _ in range(ROUNDS - 1):
        unanswered(scene)
        scene.round()
        scene.status, scene.standings = still
        scene.round()
    assert not scene.query.cancelled
    unanswered(scene)
    scene.rounds(5 * ROUNDS)
    assert not scene.query.cancelled, "nobody has answered"
    scene.status, scene.standings = still
    scene.rounds(2)
    assert scene.query.cancelled


@pytest.mark.parametrize("silent", [A, B])
def test_a_member_that_never_answers_hides_no_stall(silent: WorkerId) -> None:
    scene = Scene()
    scene.rounds(2)
    scene.standings = {worker: STANDING for worker in (A, B, HEAD) if worker != silent}
    scene.rounds((SILENT_LIMITS - 1) * ROUNDS)
    assert not scene.ended
    scene.rounds(2 * ROUNDS)
    (error,) = scene.ended
    assert f"{silent}: does not answer the driver" in str(error)
    assert str(error).count("does not answer") == 1, "the others did"


@pytest.mark.parametrize("working", [B, HEAD], ids=["another executes", "the client is slow"])
def test_a_member_that_never_answers_hides_nobody_who_is_busy(working: WorkerId) -> None:
    """Whoever is asked after the silent one may be the one who works."""
    scene = Scene()
    scene.standings = {B: STANDING, HEAD: STANDING, working: replace(STANDING, busy="busy")}
    scene.rounds(3 * SILENT_LIMITS * ROUNDS)
    assert not scene.ended


def test_a_member_that_never_answers_hides_nothing_that_moves() -> None:
    scene = Scene()
    for moved in range(3 * SILENT_LIMITS * ROUNDS):
        scene.standings = {HEAD: STANDING, B: replace(STANDING, marks=(3, 1, moved // ROUNDS))}
        scene.round()
    assert not scene.ended


def test_a_store_that_never_answers_is_no_stall() -> None:
    scene = Scene()
    scene.rounds(2)
    scene.status = None
    scene.rounds(3 * SILENT_LIMITS * ROUNDS)
    assert not scene.query.cancelled


@pytest.mark.parametrize("busy", ["s1.c0.t3 is being executed", "the client has not taken its rows"])
def test_whoever_is_busy_may_take_any_time(busy: str) -> None:
    scene = Scene()
    standing(HEAD, busy=busy)(scene)
    scene.rounds(20 * ROUNDS)
    assert not scene.query.cancelled


def test_a_head_that_stood_still_itself_has_seen_one_round_and_no_more() -> None:
    scene = Scene()
    scene.rounds(2)
    scene.round(pause_ms=100 * LIMIT_MS)
    scene.round(pause_ms=100 * LIMIT_MS)
    assert not scene.query.cancelled


@pytest.mark.parametrize(
    ("field", "over"),
    [
        ("result", ResultState.TAKEN),
        ("cancellation", Cancellation()),
        ("phase", QueryPhase.ENDING),
        ("phase", QueryPhase.ENDED),
    ],
)
def test_a_query_that_is_over_is_not_looked_at(field: str, over: object) -> None:
    scene = Scene()
    setattr(scene.query, field, over)
    scene.rounds(3 * ROUNDS)
    assert scene.asked == 0
    assert scene.query.cancellation in (None, Cancellation())


@pytest.mark.parametrize("because", [None, QueryTimeoutError("It took too long.")])
def test_a_query_that_the_coordinator_does_not_end_is_ended_here(because: QueryTimeoutError | None) -> None:
    """An answer to the coordinator may be lost as any other; it is the one that ends queries."""
    scene = Scene()
    scene.query.cancel(because)
    scene.removes = False
    scene.rounds(UNENDED_ROUNDS)
    assert scene.removals == 0, "the coordinator has its time first"
    scene.rounds(2)
    assert (scene.removals, scene.query.ended, scene.told) == (2, False, 0), "the store does not answer"
    scene.removes = True
    scene.rounds(3)
    assert (scene.removals, scene.query.ended, scene.told) == (3, True, 1)
    assert scene.query.error is because or isinstance(scene.query.error, QueryCancelledError)


def test_a_query_whose_end_the_coordinator_has_decided_ends_so() -> None:
    scene = Scene()
    scene.query.cancel()
    scene.query.end(why := QueryTimeoutError("It took too long."))
    scene.rounds(UNENDED_ROUNDS + 1)
    assert scene.query.ended
    assert scene.query.error is why


def test_a_query_that_the_coordinator_ends_is_left_to_it() -> None:
    scene = Scene()
    scene.query.cancel()
    scene.rounds(UNENDED_ROUNDS)
    scene.query.end(None, QueryPhase.ENDED)
    scene.rounds(ROUNDS)
    assert (scene.removals, scene.told) == (0, 0)


def test_a_lost_store_is_left_to_the_coordinator() -> None:
    scene = Scene()
    scene.run.answer(True)
    assert isinstance(scene.run.throw(GcsLostError("The store is another.")), Pause)
    scene.rounds(ROUNDS + 2)
    assert scene.query.cancelled


def test_a_message_stays_readable_and_the_log_has_all(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    standing(A, waits=tuple(f"line {number}" for number in range(50)))(scene)
    scene.rounds(ROUNDS + 2)
    error = scene.query.cancelled_error
    assert f"{A}: line {WAITS_SHOWN - 2};" in error.what, "the head's line comes first"
    assert f"{A}: line {WAITS_SHOWN - 1}" not in error.what
    assert "and 40 more, see the log" in error.what
    assert f"{A}: line 49" in caplog.text
