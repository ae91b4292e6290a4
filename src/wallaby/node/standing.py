"""A process is asked how it stands with a query: the question, the answer, and both as bytes.

The answer is made on the thread that drives the generators, so that it also says that this thread runs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from wallaby.errors import EncodingError
from wallaby.exchange.wire import encode_name
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.standing import Standing, marks_of, occupation, waits_of
from wallaby.node.session import Session

#: The action of a data server that answers; its body is the id of a query.
STANDING: Final = "standing"
_VERSION: Final = 1
_log = logging.getLogger(__name__)


class Asks(Protocol):
    """The other nodes; see `exchange.client`."""

    def ask(self, address: str, action: str, body: bytes, timeout_seconds: float) -> bytes | None:
        """Have an action done that answers once; None if no answer came in time."""


def standing_of(session: Session, actors: Iterable[tuple[str, Any]], busy: str = "") -> Standing:
    """How a session stands: `actors` are the names of what runs for it, each with the effect that it waits for.

    `busy` is what the process does for it beside its effects.
    """
    waiting = list(actors)
    outbox = session.host.outbox
    marks = marks_of(session.host.epoch, session.tenures, outbox)
    busy = busy or next(filter(None, (occupation(effect) for _, effect in waiting)), "")
    # Whoever is busy is not to be judged, and nobody reads what it waits for.
    waits = () if busy else waits_of(session.graph, session.tenures, outbox, waiting)
    return Standing(marks, busy, waits)


def encode_standing(standing: Standing) -> bytes:
    """The bytes of an answer."""
    said = {
        "version": _VERSION,
        "marks": standing.marks,
        "busy": standing.busy,
        "waits": standing.waits,
    }
    return json.dumps(said, separators=(",", ":")).encode()


def decode_standing(data: bytes) -> Standing:
    """The answer in these bytes.

    Raises:
        EncodingError: there is none.
    """
    try:
        said = json.loads(data)
        if said["version"] != _VERSION:
            raise EncodingError(f"An answer of version {said['version']} is not understood.")
        marks, waits = tuple(map(int, said["marks"])), tuple(map(str, said["waits"]))
        return Standing(marks, str(said["busy"]), waits)
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"This is not a valid answer about how a query stands: {error}.") from error


def ask_standing(peers: Asks, address: str, query: QueryId, timeout_seconds: float) -> Standing | None:
    """How the process at an address stands with a query; None if it does not say so in time."""
    answer = peers.ask(address, STANDING, encode_name(query), timeout_seconds)
    try:
        return decode_standing(answer) if answer is not None else None
    except EncodingError as error:
        _log.warning("%s: %s", address, error)
        return None


def standings(
    workers: Iterable[WorkerId], ask: Callable[[WorkerId], Standing | None]
) -> dict[WorkerId, Standing]:
    """The answers of processes; whoever comes after one that gives none is not asked: nothing will be judged."""
    found: dict[WorkerId, Standing] = {}
    for worker in workers:
        standing = ask(worker)
        if standing is None:
            break
        found[worker] = standing
    return found
