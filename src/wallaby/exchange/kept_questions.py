"""What readers of a result that stays ask the head, and tell it, as bytes: versioned JSON, with one form each."""

from __future__ import annotations

import json
from typing import Final

from wallaby.errors import EncodingError, WallabyError
from wallaby.errors.text import read_error, write_error
from wallaby.lineage.names import ChannelName, QueryId

#: The actions by which a reader asks where a channel of a result is, and says that a worker does not answer it.
LOCATE: Final = "locate"
REACH: Final = "reach"
_VERSION: Final = 1


def encode_question(query: QueryId, channel: ChannelName) -> bytes:
    """A reader's question: where is this channel?"""
    return json.dumps({"version": _VERSION, "query": query, "channel": list(channel)}).encode()


def decode_question(data: bytes) -> tuple[QueryId, ChannelName]:
    """What `encode_question` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        said = json.loads(data)
        stage, channel = said["channel"]
        if said["version"] == _VERSION:
            return QueryId(str(said["query"])), ChannelName(int(stage), int(channel))
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"This does not ask for a kept result: {data[:80]!r}.") from error
    raise EncodingError(f"A question of version {said['version']!r} is not understood.")


def encode_reach(query: QueryId, address: str, *, reachable: bool) -> bytes:
    """A reader's word about a worker that does not answer, or does again."""
    return json.dumps(
        {"version": _VERSION, "query": query, "address": address, "reachable": reachable}
    ).encode()


def decode_reach(data: bytes) -> tuple[QueryId, str, bool]:
    """What `encode_reach` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        said = json.loads(data)
        if said["version"] == _VERSION:
            return QueryId(str(said["query"])), str(said["address"]), bool(said["reachable"])
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"This does not say whether a worker answers: {data[:80]!r}.") from error
    raise EncodingError(f"A word of version {said['version']!r} is not understood.")


def encode_place(found: str | WallabyError) -> bytes:
    """The head's answer: an address, or why there is no result any more."""
    said = {"error": write_error(found)} if isinstance(found, WallabyError) else {"address": found}
    return json.dumps({"version": _VERSION, **said}).encode()


def decode_place(data: bytes) -> str | WallabyError:
    """What `encode_place` wrote.

    Raises:
        EncodingError: it is something else.
    """
    try:
        said = json.loads(data)
        if said["version"] == _VERSION:
            return read_error(said["error"]) if "error" in said else str(said["address"])
    except (ValueError, KeyError, TypeError) as error:
        raise EncodingError(f"This does not say where a kept result is: {data[:80]!r}.") from error
    raise EncodingError(f"An answer of version {said['version']!r} is not understood.")
