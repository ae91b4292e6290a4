"""Side inputs at a worker: which are too large, computed from the slices that have arrived.

Those that a task requires end the query if all of them together exceed the limit. An optional one that exceeds it by
itself is given up: what still comes of it is accepted and dropped.
"""

from __future__ import annotations

from wallaby.errors import MemoryLimitError
from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.names import ChannelName
from wallaby.node.session import QuerySession
from wallaby_lab.invariants.audit import InvariantViolation

#: A side input that a run of a channel has given up: the channel, the epoch of the run, and the link.
GivenUp = set[tuple[ChannelName, int, int]]


def too_much_beside(
    session: QuerySession, limit_bytes: int | None, given_up: GivenUp, *, refused: bool
) -> MemoryLimitError | None:
    """What the session says of its side inputs, after that has been judged; `given_up` is brought up to date.

    `refused`: it has said so before, the query is about to end, and nothing more is required.
    """
    if limit_bytes is None or refused:
        _require_nothing(session)
        return None
    required: dict[int, int] = {}
    for run in session.runs.values():
        for link in session.graph.sides(run.channel.stage):
            size = _size(run, link)
            if session.graph.links[link].required:
                required[link] = max(required.get(link, 0), size)
            elif size > limit_bytes:
                given_up.add((run.channel, run.since_epoch, link))
    error = session.too_much_beside()
    for run in session.runs.values():
        for link in session.graph.sides(run.channel.stage):
            if (run.channel, run.since_epoch, link) in given_up and _size(run, link):
                raise InvariantViolation(10, f"{run.channel} keeps side input {link}, which is too large")
    if (error is not None) is not (sum(required.values()) > limit_bytes):
        raise InvariantViolation(
            7,
            f"of side inputs of {required} bytes {session.worker} says {error}, with room for {limit_bytes}",
        )
    return error


def _require_nothing(session: QuerySession) -> None:
    """Nothing is too large without a limit, and nothing is refused twice."""
    if (error := session.too_much_beside()) is not None:
        raise InvariantViolation(7, f"{session.worker} says without a reason: {error}")


def _size(run: ChannelRun, link: int) -> int:
    lanes = run.inbox.lanes().items()
    return sum(
        piece.size_bytes for upstream, lane in lanes if upstream.link == link for piece in lane.held.values()
    )
