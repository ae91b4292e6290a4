"""A process's standing with a query: what has moved, who is busy, and who waits for what.

A query in which nothing moves although nobody is busy has stalled because of a bug in Wallaby. To find out, the
coordinator asks every process from time to time: `marks` change whenever something moves, `busy` names what excuses a
standstill, and `waits` tells people where to look. All three are derived from the state of the protocol, so the
simulation asks the same question. The answer is made on the thread that drives the generators, so it also shows that
this thread runs.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from wallaby.errors import EncodingError
from wallaby.exchange.wire import encode_name
from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.barriers import Cover, RestoreCut, SaveCut
from wallaby.lineage.effects import Await, BackUp, Collect, Execute, Pause, RestoreState, SaveState
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, QueryId, Upstream, WorkerId
from wallaby.lineage.outbox import Outbox
from wallaby.node.session import QuerySession

#: The action of a data server that returns the standing; its body is the id of a query.
STANDING: Final = "standing"
_VERSION: Final = 1
_log = logging.getLogger(__name__)
#: The most lines of `waits` of one process.
WAITS_MAX = 200


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing; see the module. `busy` is empty if nothing here computes, reads, writes or waits for the client."""

    marks: tuple[int, ...] = ()
    busy: str = ""
    waits: tuple[str, ...] = ()


def marks_of(epoch: int, runs: Mapping[ChannelName, ChannelRun], outbox: Outbox) -> tuple[int, ...]:
    """Numbers, one of which changes whenever something moves: a task, an arrival, a delivery, an early end."""
    return (
        epoch,
        len(runs),
        sum(run.seq for run in runs.values()),
        sum(run.inbox.arrived for run in runs.values()),
        sum(run.closed + run.phase for run in runs.values()),
        sum(outbox.delivered().values()),
    )


def occupation(effect: Any) -> str:
    """A description of an effect that may take arbitrarily long; empty for other effects.

    It is a reason to wait only while it is really under way: see `excuses`.

    Calls to the store and to other processes are not included: they have their own time limits.
    """
    match effect:
        case Execute():
            return f"{effect.task} is being executed, or waits for a thread"
        case BackUp() | SaveState():
            return f"{effect.task} is being written"
        case RestoreState():
            return f"the state after {effect.task} is being read"
        case SaveCut():
            return f"the part of {effect.task.of} in snapshot {effect.number} is being written"
        case RestoreCut():
            return f"the part of {effect.channel} in snapshot {effect.start.number} is being read"
        case Collect() | Cover():
            return "the client has not taken the rows that are there"
        case _:
            return ""


def waits_of(
    graph: StageGraph,
    runs: Mapping[ChannelName, ChannelRun],
    outbox: Outbox,
    actors: Iterable[tuple[str, Any]],
) -> tuple[str, ...]:
    """Who waits for what, one line each: channels for inputs, outputs for room, actors for answers."""
    lines = [line for name, run in runs.items() if not run.ended for line in _channel(graph, name, run)]
    for edge, target, delivered, published, refused in outbox.waiting():
        why = "refused when it was last offered" if refused else "not refused"
        lines.append(
            f"{graph.producer(edge)} has outputs {delivered} to {published - 1} for {graph.consumer(edge)} over "
            f"{edge} at {target}: {why}"
        )
    lines += [
        f"{name} waits for an answer to {type(effect).__name__}"
        for name, effect in actors
        if effect is not None and not isinstance(effect, (Await, Pause))
    ]
    return tuple(lines[:WAITS_MAX])


def _channel(graph: StageGraph, name: ChannelName, run: ChannelRun) -> list[str]:
    doing = "repeats task" if run.retracing else "is at task"
    lines = []
    for edge in graph.edges_into(name):
        lane = run.inbox.lane(Upstream(edge.link, edge.producer))
        if lane.consumed == lane.total:
            continue
        end = "" if lane.total is None else f" of {lane.total}"
        window = f" of a window of {lane.window_bytes}" if lane.window_bytes is not None else ""
        line = (
            f"{name} {doing} {run.seq} and waits for {graph.producer(edge)} over {edge}: consumed "
            f"{lane.consumed}{end}, holds {lane.held} with {lane.held_bytes} bytes{window}"
        )
        if lane.refused is not None:
            line += f", has refused output {lane.refused[0]} with {lane.refused[1]} bytes"
        lines.append(line)
    return lines or [f"{name} {doing} {run.seq}, and lacks no input"]


class Asks(Protocol):
    """The other nodes; see `exchange.client`."""

    def ask(self, address: str, action: str, body: bytes, timeout_seconds: float) -> bytes | None:
        """Send an action and return its answer; None if no answer came in time."""


def standing_of(
    session: QuerySession,
    actors: Iterable[tuple[str, Any]],
    busy: str = "",
    excuses: Iterable[Any] | None = None,
) -> Standing:
    """The standing of a session; `actors` are the names of its actors, each with the effect that it waits for.

    `busy` is what the process does for the session besides its effects, `excuses` are the effects that may excuse a
    standstill: by default all (see `excuses`).
    """
    waiting = list(actors)
    excuses = [effect for _, effect in waiting] if excuses is None else excuses
    outbox = session.context.outbox
    marks = marks_of(session.context.epoch, session.runs, outbox)
    busy = busy or next(filter(None, map(occupation, excuses)), "")
    # A busy process is not judged, so its waits are not needed.
    waits = () if busy else waits_of(session.graph, session.runs, outbox, waiting)
    return Standing(marks, busy, waits)


def encode_standing(standing: Standing) -> bytes:
    """Encode a standing."""
    said = {
        "version": _VERSION,
        "marks": standing.marks,
        "busy": standing.busy,
        "waits": standing.waits,
    }
    return json.dumps(said, separators=(",", ":")).encode()


def decode_standing(data: bytes) -> Standing:
    """Decode a standing.

    Raises:
        EncodingError: the bytes hold none.
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
    """The standing of the process at an address with a query; None if it does not answer in time."""
    answer = peers.ask(address, STANDING, encode_name(query), timeout_seconds)
    try:
        return decode_standing(answer) if answer is not None else None
    except EncodingError as error:
        _log.warning("%s: %s", address, error)
        return None


def standings(
    workers: Iterable[WorkerId],
    ask: Callable[[WorkerId], Standing | None],
    tell: Callable[[dict[WorkerId, Standing]], None],
    run: Callable[[Callable[[], None]], None],
) -> None:
    """Ask all processes, and tell the standings of those that answered.

    Each is asked in a job of its own, so that a silent one hides no answer of another: whoever is busy excuses all.
    """
    lock = threading.Lock()
    found: dict[WorkerId, Standing | None] = dict.fromkeys(workers)
    waiting = set(found)

    def ask_one(worker: WorkerId) -> None:
        standing = ask(worker)
        with lock:
            found[worker] = standing
            waiting.discard(worker)
            is_last = not waiting
        if is_last:
            tell({each: said for each, said in found.items() if said is not None})

    for worker in found:
        run(partial(ask_one, worker))
