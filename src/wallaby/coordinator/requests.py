"""Requests of clients to the head: begin a query, let a worker leave. Each is settled, whatever replies are lost.

A request without a reply may have been applied, may never be, or may be applied much later, when the store gets to it.
So both requests are idempotent, and repeated until the store has answered. A query that is given up before that is
removed like any other, and barred, so that a late submit is refused. Otherwise the query would stay in the store
without anyone knowing of it, and no worker that it names could ever leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.coordinator.effects import AskToDrain, Expel, ReadNeed, Submit
from wallaby.coordinator.query import Query, QueryPhase
from wallaby.errors import GcsLostError, GcsUnavailableError, WallabyError
from wallaby.lineage.attempt import RETRY_MS
from wallaby.lineage.effects import Effects, FailPoint, Pause, ask
from wallaby.lineage.names import ChannelName, WorkerId
from wallaby.lineage.verdict import Verdict

#: How often to check whether a worker may leave.
NEED_MS = 20


def submitting(
    query: Query,
    hosts: Mapping[ChannelName, WorkerId],
    payload: bytes,
    settings: CoordinatorSettings,
    now_ms: Callable[[], int],
) -> Effects[None]:
    """Put a query into the store. Afterwards it is there, is ending with an error, or has ended with the store.

    The coordinator must not tend it meanwhile: it may or may not be in the store.
    """
    began_ms = now_ms()
    try:
        while (yield from ask(Submit(query.id, query.graph, hosts, payload))) not in (
            Verdict.DONE,
            Verdict.ALREADY,
        ):
            query.doubtful = True
            waited_ms = now_ms() - began_ms
            if query.cancelled or waited_ms > settings.submit_ms:
                query.end(_unanswered(query, waited_ms))
                break
            yield Pause(RETRY_MS, FailPoint.SUBMIT)
    except GcsLostError as lost:
        query.end(lost, QueryPhase.ENDED)
    except WallabyError as error:
        query.end(error)
    query.advance(QueryPhase.RUNNING)


def draining(worker: WorkerId, is_over: Callable[[], bool]) -> Effects[bool]:
    """Let a worker leave: ask it to drain, wait until no query needs it, and dismiss it. False: not in time."""
    while (yield from ask(AskToDrain(worker))) is None:
        if is_over():
            return False
        yield Pause(RETRY_MS, FailPoint.DRAIN)
    while (yield from ask(ReadNeed(worker))) is not False:
        if is_over():
            return False
        yield Pause(NEED_MS, FailPoint.DRAIN)
    while (yield from ask(Expel(worker))) is None:
        if is_over():
            return False
        yield Pause(RETRY_MS, FailPoint.EXPEL)
    return True


def _unanswered(query: Query, waited_ms: int) -> WallabyError:
    if query.cancelled:
        return query.cancelled_error
    return GcsUnavailableError(
        f"The control store did not answer the submission of query {query.id} for {waited_ms / 1000:.1f} s.",
        fix="Check the driver's log and Redis, then run the query again.",
        query=query.id,
    )
