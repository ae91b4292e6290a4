"""Results that stay with the workers, as the head knows them: where their readers find what, and why they do not.

Readers are Spark's tasks, in other processes. They ask the head only where something is, and only if they do not find
it where it was; rows go from workers to readers. What the head answers it reads from the store, which is the truth.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Final

from wallaby.coordinator.query import Query
from wallaby.errors import EncodingError, GcsError, KeptResultError, WallabyError
from wallaby.exchange.kept_questions import decode_question, decode_reach, encode_place
from wallaby.exchange.kept_stream import SIZES, decode_sizes
from wallaby.exchange.wire import encode_name
from wallaby.gcs.interface import Gcs
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.kept import KeptChannels, kept_channels
from wallaby.lineage.names import ChannelName, QueryId
from wallaby.node.directory import Directory
from wallaby.node.standing import Asks
from wallaby.node.worker_address import WorkerAddress

_log = logging.getLogger(__name__)
#: How long a worker has to tell the sizes of what it keeps.
SIZES_SECONDS: Final = 5.0
#: So many results that are gone are remembered, so that a late reader is told why.
GONE_MAX: Final = 4096


class KeptResults:
    """The results that stay, of one head. From any thread."""

    def __init__(self, gcs: Gcs, directory: Directory) -> None:
        self._gcs = gcs
        self._directory = directory
        self._lock = threading.Lock()
        self._graphs: dict[QueryId, StageGraph] = {}
        self._gone: dict[QueryId, WallabyError] = {}

    def add(self, query: Query) -> None:
        """A result is whole."""
        with self._lock:
            if query.id not in self._gone:
                self._graphs[query.id] = query.graph

    def released(self, query: QueryId) -> None:
        """A result is not wanted any more."""
        self._forget(
            query,
            KeptResultError(
                f"The rows of query {query} were released and are gone.",
                fix="Run the query again: make the DataFrame anew, or persist it again.",
                query=query,
            ),
        )

    def ended(self, query: QueryId, error: WallabyError | None) -> None:
        """A query has ended: if its result was kept and nobody has released it, it is lost."""
        with self._lock:
            if query not in self._graphs:
                return
        what = "the engine was closed" if error is None else error.what
        self._forget(
            query,
            KeptResultError(
                f"The rows of query {query} are gone: {what}", fix="Run the query again.", query=query
            ),
        )

    def _forget(self, query: QueryId, why: WallabyError) -> None:
        with self._lock:
            self._graphs.pop(query, None)
            self._gone.setdefault(query, why)
            while len(self._gone) > GONE_MAX:
                del self._gone[next(iter(self._gone))]

    @property
    def queries(self) -> tuple[QueryId, ...]:
        """The results that are there."""
        with self._lock:
            return tuple(self._graphs)

    def channels(self, query: QueryId) -> KeptChannels:
        """The channels that make a result, as they are now.

        Raises:
            KeptResultError: the result is not there.
            GcsError: the store does not answer, or is lost.
        """
        with self._lock:
            graph, gone = self._graphs.get(query), self._gone.get(query)
        if graph is None:
            raise gone or KeptResultError(
                f"Query {query} has kept no rows.", fix="Run the query again.", query=query
            )
        snapshot = self._gcs.snapshot(query)
        if snapshot is None:
            raise KeptResultError(
                f"The store no longer knows query {query}, whose rows were to stay.",
                fix="Run the query again.",
                query=query,
            )
        return kept_channels(graph, snapshot)

    def addresses(self, query: QueryId) -> Mapping[ChannelName, str]:
        """Where the channels are that make a result; without those whose workers are not known.

        Raises:
            KeptResultError: the result is not there.
            GcsError: the store does not answer, or is lost.
        """
        found = {
            name: self._directory.address_of(channel.host) for name, channel in self.channels(query).items()
        }
        return {name: address for name, address in found.items() if address is not None}

    def note_reach(self, said: bytes) -> bytes | None:
        """A reader says that a worker does not answer it, or does again: the worker is accused in its own name."""
        query, address, reachable = decode_reach(said)
        try:
            for lease in self._gcs.workers():
                if WorkerAddress.decode(lease.address).endpoint == address:
                    self._gcs.complain(lease.worker, lease.worker, reachable, query)
        except GcsError:
            return None
        return b""

    def answer(self, question: bytes) -> bytes | None:
        """The answer to a reader's question, in the form of `decode_place`; None if the store does not answer."""
        query, channel = decode_question(question)
        try:
            address = self.addresses(query).get(channel)
        except KeptResultError as error:
            return encode_place(error)
        except GcsError:
            return None
        return None if address is None else encode_place(address)


def sizes_of(
    query: QueryId, channels: KeptChannels, peers: Asks, directory: Directory
) -> dict[ChannelName, list[tuple[int, int]]]:
    """Rows and bytes of every output of a result, asked of the workers that have them.

    A channel is left out if its worker does not answer, or is only about to make its outputs again.
    """
    found: dict[ChannelName, list[tuple[int, int]]] = {}
    for worker in sorted({channel.host for channel in channels.values()}):
        address = directory.address_of(worker)
        answer = peers.ask(address, SIZES, encode_name(query), SIZES_SECONDS) if address else None
        try:
            found.update(decode_sizes(answer) if answer is not None else {})
        except EncodingError as error:
            _log.warning("%s: %s", worker, error)
    return {name: sizes for name, sizes in found.items() if len(sizes) == channels[name].length}
