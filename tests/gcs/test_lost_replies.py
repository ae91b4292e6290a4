"""Every action of the control store with its reply lost, or its request: settled, it comes to what it would have.

The table says how whoever asks finds out, as docs/protocol.md does: by asking again, or by a look first. An action
that is not in it fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import isfunction
from typing import Any

import pytest
from tests.gcs.test_rules import GRAPH, HOSTS, HOUR_MS, R0, R1, SINK, X0, X1, A, B, C, Q, gcs, record

from wallaby.errors import GcsUnavailableError
from wallaby.gcs.interface import Commit, CommitReply, Gcs, QueryView, Verdict, WorkerLease
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.names import Edge, QueryId, TaskName
from wallaby.lineage.snapshot import RecoveryPlan, ReRead
from wallaby.lineage.verdict import Claim

__all__ = ["gcs"]
pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]

ENDED, LATE = QueryId("ended"), QueryId("late")


class Lost(Enum):
    """What does not arrive."""

    REQUEST = "the request"
    REPLY = "the reply"


class Lossy:
    """Loses something of the n-th call of one action."""

    def __init__(self, store: Gcs, action: str, nth: int, lost: Lost) -> None:
        self._store = store
        self._action = action
        self._left = nth
        self._lost = lost
        self.struck = False

    def ask(self, action: str, *arguments: Any, **named: Any) -> Any:
        do = getattr(self._store, action)
        if action != self._action:
            return do(*arguments, **named)
        self._left -= 1
        if self._left or self.struck:
            return do(*arguments, **named)
        self.struck = True
        if self._lost is Lost.REPLY:
            do(*arguments, **named)
        raise GcsUnavailableError("No answer in time.")


def again(lossy: Lossy, action: str, *arguments: Any, **named: Any) -> Any:
    return lossy.ask(action, *arguments, **named)


def look_whether_frozen(lossy: Lossy, action: str, *arguments: Any) -> Any:
    """The coordinator's next look: a gate that is closed needs no second freeze."""
    query, lost, _ = arguments
    status = lossy.ask("status", query)
    done = not status.gate_open and not set(lost) & {*status.members, *status.draining}
    return Verdict.DONE if done else lossy.ask(action, *arguments)


def look_whether_open(lossy: Lossy, action: str, *arguments: Any) -> Any:
    """The same: a gate that is open needs no second resume."""
    return Verdict.DONE if lossy.ask("status", arguments[0]).gate_open else lossy.ask(action, *arguments)


#: How each action is settled whose reply did not come.
SETTLED: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("register", "renew", "expel", "ask_to_drain", "complain", "workers"), again),
    **dict.fromkeys(("submit", "payload", "join", "status", "snapshot", "history", "remove"), again),
    **dict.fromkeys(
        ("look", "records", "commit", "acknowledge", "claim", "close_early", "fail", "strain"), again
    ),
    **dict.fromkeys(("dump", "queries"), again),
    "freeze": look_whether_frozen,
    "resume": look_whether_open,
}


def story(lossy: Lossy) -> list[tuple[str, Any]]:
    """A query's life, with every action in it: what each came to."""
    told: list[tuple[str, Any]] = []

    def do(action: str, *arguments: Any, **named: Any) -> Any:
        try:
            answer = lossy.ask(action, *arguments, **named)
        except GcsUnavailableError:
            answer = SETTLED[action](lossy, action, *arguments, **named)
        told.append((action, _plain(answer)))
        return answer

    for worker in (A, B, C):
        do("register", worker, f"{worker}:1", HOUR_MS)
        do("renew", worker, HOUR_MS)
    do("submit", Q, GRAPH, HOSTS, b"payload")
    do("submit", ENDED, GRAPH, HOSTS)
    do("payload", Q)
    do("look", Q, A)
    do("commit", Q, A, 1, (record(R0, 0), record(X0, 0)))
    do("commit", Q, A, 1, (record(R0, 1),))
    do("commit", Q, B, 1, (record(R1, 0, final=True),))
    do("acknowledge", Q, B, 1, ((Edge(0, 1, 0), 1),))
    do("complain", C, A, reachable=False, query=Q, lasts_ms=HOUR_MS)
    do("complain", C, B, reachable=False, query=Q, lasts_ms=HOUR_MS)
    do("complain", C, B, reachable=True, query=Q)
    do("strain", Q, C, strained=True)
    do("strain", Q, B, strained=True)
    do("strain", Q, B, strained=False)
    do("join", Q, C)
    do("expel", B)
    do("ask_to_drain", A)
    do("freeze", Q, (B,), (A,))
    found = do("snapshot", Q)
    plan = RecoveryPlan(
        hosts={R1: C, X1: C},
        bases={R1: 1},
        losses={X1: 1},
        rereads=(ReRead(R1, 0, 1, (Edge(0, 1, 0), Edge(0, 1, 1))),),
    )
    do("resume", Q, plan, found.version)
    do("history", Q)
    do("records", Q, C, 3, X1)
    do("claim", Q, C, 3, 0, None)
    do("claim", Q, C, 3, 0, TaskName(*R1, 0))
    do("commit", Q, C, 3, (Commit(TaskName(*X1, 0), b"again", True, ((Edge(1, 1, 0), 1),), 3),))
    do("commit", Q, A, 3, (record(X0, 1, final=True),))
    do("close_early", Q, C, 3, ((R0, (X0, X1)), (R1, (X0, X1))))
    do("fail", Q, C, 3, "an error of its own")
    do("status", Q)
    do("workers")
    do("dump", Q)
    do("remove", ENDED)
    do("remove", LATE, barred=True)
    do("submit", LATE, GRAPH, {**dict.fromkeys(GRAPH.channels, A), SINK: A})
    do("queries")
    return told


def _plain(answer: Any) -> Any:
    """What an answer says, but for times, and for whether it says so for the first time."""
    match answer:
        case Verdict.ALREADY:
            return Verdict.DONE
        case CommitReply(verdict, split):
            return _plain(verdict), split
        case Claim() | QueryView():
            return answer
        case WorkerLease():
            return answer.worker, answer.address, answer.draining, [who for who, _ in answer.complaints]
        case tuple():
            return tuple(map(_plain, answer))
        case _:
            return answer


def end_of(store: Gcs) -> Any:
    return {query: store.dump(query) for query in store.queries()}, _plain(store.workers())


def undisturbed() -> tuple[list[tuple[str, Any]], Any]:
    store = MemoryGcs(MemoryStore(now_ms=lambda: 0))
    return story(Lossy(store, "", 0, Lost.REPLY)), end_of(store)


TOLD, END = undisturbed()
CALLS = [
    (action, nth)
    for action in sorted(SETTLED)
    for nth in range(1, 1 + sum(action == each for each, _ in TOLD))
]


def test_the_story_has_every_action_and_the_table_says_how_each_is_settled() -> None:
    actions = {name for name, member in vars(Gcs).items() if isfunction(member) and not name.startswith("_")}
    assert actions == set(SETTLED) == {action for action, _ in TOLD}


@pytest.mark.parametrize("lost", Lost)
@pytest.mark.parametrize(("action", "nth"), CALLS)
def test_an_action_without_an_answer_is_settled_and_comes_to_the_same(
    gcs: Gcs, action: str, nth: int, lost: Lost
) -> None:
    lossy = Lossy(gcs, action, nth, lost)
    told = story(lossy)
    assert lossy.struck
    assert told == TOLD
    assert end_of(gcs) == END
