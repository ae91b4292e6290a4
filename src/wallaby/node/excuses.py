"""Decide which of the effects that may take arbitrarily long excuse a standstill; see `standing`.

An effect whose answer was lost looks like one that takes long. So an excuse needs more than an effect that waits: a
step needs a thread that computes, a collector needs rows that the client has not taken, and a disk has a limit.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from wallaby.lineage.barriers import Cover, RestoreCut, SaveCut
from wallaby.lineage.effects import BackUp, Collect, Execute, RestoreState, SaveState
from wallaby.lineage.names import QueryId
from wallaby.node.effects import OpenSession

if TYPE_CHECKING:
    from wallaby.node.node import Actor, WorkerQuery

#: Reading outputs for a push counts as busy if it takes longer than this.
READS_SECONDS: Final = 1.0
#: A disk or a durable store that takes longer than this for one output or state is no excuse.
STORAGE_SECONDS_MAX: Final = 600.0


def is_excuse(actor: Actor, worker_query: WorkerQuery, *, computes: bool) -> bool:
    """Does the effect of an actor excuse a standstill? `computes`: a kernel thread of the process runs a step."""
    effect: Any = actor.effect
    match effect:
        case Execute():
            return computes and bool(worker_query.steps)
        case Collect() | Cover():
            return worker_query.waits_for_client()
        case BackUp() | SaveState() | RestoreState() | SaveCut() | RestoreCut():
            return time.monotonic() - actor.since_seconds < STORAGE_SECONDS_MAX
        case _:
            return False


def is_opening(actor: Actor, query: QueryId) -> bool:
    """Is an actor still opening a query? It may take its time: nothing of the query can move before."""
    effect: Any = actor.effect
    if not isinstance(effect, OpenSession) or effect.query != query:
        return False
    return time.monotonic() - actor.since_seconds < OpenSession.answered_within_seconds


def reading(worker_query: WorkerQuery) -> str:
    """Are outputs being read for long? A disk or a durable store may be slow, which is not a stall."""
    now = time.monotonic()
    ages = [now - since for since in tuple(worker_query.reads.values())]
    return "outputs are being read" if any(READS_SECONDS < age < STORAGE_SECONDS_MAX for age in ages) else ""
