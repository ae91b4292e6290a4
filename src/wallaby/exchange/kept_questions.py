"""Messages between readers of kept results and the head, encoded as versioned JSON."""

from __future__ import annotations

import json
from typing import Final

from wallaby.errors import EncodingError, WallabyError
from wallaby.errors.text import read_error, write_error
from wallaby.lineage.kept import KeptPlace
from wallaby.lineage.names import ChannelName, QueryId, WorkerId

#: The actions by which a reader asks for the place of a channel, and reports that a worker does not answer.
LOCATE: Final = "locate"
REACH: Final = "reach"
_VERSION: Final = 2


def encode_question(query: QueryId, channel: ChannelName) -> bytes:
    """Encode a reader's question: where is this channel?"""
    return json.dumps({"version": _VERSION, "query": query, "channel": list(channel)}).encode()


def decode_question(data: bytes) -> tuple[QueryId, ChannelName]:
    """Decode what `encode_question` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        said = json.loads(data)
        stage, channel = said["channel"]
        if said["version"] == _VERSION:
            return QueryId(str(said["query"])), ChannelName(int(stage), int(channel))
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"Not a question about a kept result: {data[:80]!r}.") from error
    raise EncodingError(f"Unknown version {said['version']!r} of a question about a kept result.")


def encode_reach(query: QueryId, address: str, *, reachable: bool) -> bytes:
    """Encode a reader's report that a worker does not answer, or answers again."""
    return json.dumps(
        {"version": _VERSION, "query": query, "address": address, "reachable": reachable}
    ).encode()


def decode_reach(data: bytes) -> tuple[QueryId, str, bool]:
    """Decode what `encode_reach` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        said = json.loads(data)
        if said["version"] == _VERSION:
            return QueryId(str(said["query"])), str(said["address"]), bool(said["reachable"])
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"Not a report on whether a worker answers: {data[:80]!r}.") from error
    raise EncodingError(f"Unknown version {said['version']!r} of a report on a worker.")


def encode_place(found: KeptPlace | WallabyError) -> bytes:
    """Encode the head's answer: a place, whose worker is named by its address, or why the result is gone."""
    said: dict[str, object]
    if isinstance(found, WallabyError):
        said = {"error": write_error(found)}
    else:
        said = {"address": found.worker, "moves": found.moves}
    return json.dumps({"version": _VERSION, **said}).encode()


def decode_place(data: bytes) -> KeptPlace | WallabyError:
    """Decode what `encode_place` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        said = json.loads(data)
        if said["version"] == _VERSION:
            if "error" in said:
                return read_error(said["error"])
            return KeptPlace(WorkerId(str(said["address"])), int(said["moves"]))
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"Not the place of a kept result: {data[:80]!r}.") from error
    raise EncodingError(f"Unknown version {said['version']!r} of an answer about a kept result.")
