"""Whether something moves at the workers: asked at most once a second, and silence is no move."""

from __future__ import annotations

from tests.builders import W

from wallaby.head.moves import KeptMoves
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.node.standing import Standing

QUERY = QueryId("q-1")
A, B = W[:2]


class Workers:
    """Workers with a standing, or none, under a clock."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self.standings: dict[WorkerId, Standing] = {A: Standing((1,)), B: Standing((1,))}
        self.asked = 0
        self.moves = KeptMoves(self._ask, lambda: self.now_seconds)

    def _ask(self, query: QueryId, worker: WorkerId) -> Standing | None:
        assert query == QUERY
        self.asked += 1
        return self.standings.get(worker)

    def look(self, **changed: Standing) -> int:
        self.standings |= {WorkerId(worker): standing for worker, standing in changed.items()}
        self.now_seconds += 2
        return self.moves.of(QUERY, (A, B))


def test_moves_grow_with_marks_and_with_work() -> None:
    workers = Workers()
    first = workers.look()
    assert workers.look() == first
    assert workers.look(**{A: Standing((2,))}) == first + 1
    busy = Standing((2,), "s1.c0.t3 is being executed")
    assert [workers.look(**{A: busy}) for _ in range(2)] == [first + 2, first + 3]
    assert workers.look(**{A: Standing((2,))}) == first + 3


def test_a_worker_that_answers_now_and_then_does_not_move() -> None:
    workers = Workers()
    first = workers.look()
    silent = workers.standings.pop(B)
    assert workers.look() == first
    assert workers.look(**{B: silent}) == first


def test_workers_are_asked_at_most_once_a_second() -> None:
    workers = Workers()
    workers.look()
    assert workers.asked == 2
    workers.now_seconds += 0.5
    workers.moves.of(QUERY, (A, B))
    assert workers.asked == 2
