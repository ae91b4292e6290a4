"""The head's view of kept results: where readers find outputs, or why the result is gone.

Readers are Spark's tasks, in other processes. They ask the head only for the place of outputs, and only if the outputs
are no longer where they were; rows go directly from workers to readers. The head answers from the store.
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
from wallaby.head.moves import KeptMoves
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.kept import KeptChannels, KeptPlace, kept_channels
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.node.directory import Directory
from wallaby.node.standing import Asks
from wallaby.node.worker_address import WorkerAddress

_log = logging.getLogger(__name__)
#: How long a worker may take to report the sizes of its outputs.
SIZES_SECONDS: Final = 5.0
#: How many results that are gone are remembered, so that late readers learn why.
GONE_MAX: Final = 4096


class KeptResults:
    """The kept results of one head. Any thread may use it."""

    def __init__(self, gcs: Gcs, directory: Directory, moves: KeptMoves) -> None:
        self._gcs = gcs
        self._moves = moves
        self._directory = directory
        self._lock = threading.Lock()
        self._graphs: dict[QueryId, StageGraph] = {}
        self._gone: dict[QueryId, WallabyError] = {}

    def add(self, query: Query) -> None:
        """Note that a result is whole."""
        with self._lock:
            if query.id not in self._gone:
                self._graphs[query.id] = query.graph

    def released(self, query: QueryId) -> None:
        """Note that a result was released."""
        self._forget(
            query,
            KeptResultError(
                f"The rows of query {query} were released and are gone.",
                fix="Run the query again: create or persist the DataFrame again.",
                query=query,
            ),
        )

    def ended(self, query: QueryId, error: WallabyError | None) -> None:
        """Note that a query has ended: if its result was kept and not released, it is lost."""
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
            self._moves.forget(query)
            self._gone.setdefault(query, why)
            while len(self._gone) > GONE_MAX:
                del self._gone[next(iter(self._gone))]

    @property
    def queries(self) -> tuple[QueryId, ...]:
        """The results that can be read."""
        with self._lock:
            return tuple(self._graphs)

    def channels(self, query: QueryId) -> KeptChannels:
        """The current state of the channels that make a result.

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
                f"The control store no longer knows query {query}, whose rows were kept.",
                fix="Run the query again.",
                query=query,
            )
        return kept_channels(graph, snapshot)

    def addresses(self, query: QueryId) -> Mapping[ChannelName, str]:
        """The addresses of the channels that make a result, except those whose workers are unknown.

        Raises:
            KeptResultError: the result is not there.
            GcsError: the store does not answer, or is lost.
        """
        found = {
            name: self._directory.address_of(channel.host) for name, channel in self.channels(query).items()
        }
        return {name: address for name, address in found.items() if address is not None}

    def note_reach(self, said: bytes) -> bytes | None:
        """Take a reader's report on a worker: complain about the worker in its own name, or withdraw the complaint."""
        query, address, reachable = decode_reach(said)
        try:
            for lease in self._gcs.workers():
                if WorkerAddress.decode(lease.address).endpoint == address:
                    self._gcs.complain(lease.worker, lease.worker, reachable, query)
        except GcsError:
            return None
        return b""

    def answer(self, question: bytes) -> bytes | None:
        """Answer a reader's question, encoded for `decode_place`; None if the store does not answer."""
        query, channel = decode_question(question)
        try:
            address = self.addresses(query).get(channel)
            leases = self._gcs.workers()
        except KeptResultError as error:
            return encode_place(error)
        except GcsError:
            return None
        if address is None:
            return None
        moves = self._moves.of(query, [lease.worker for lease in leases if lease.remaining_ms > 0])
        return encode_place(KeptPlace(WorkerId(address), moves))


def sizes_of(
    query: QueryId, channels: KeptChannels, peers: Asks, directory: Directory
) -> dict[ChannelName, list[tuple[int, int]]]:
    """Ask the workers for the rows and bytes of every output of a result.

    A channel is missing if its worker does not answer, or has yet to make its outputs again.
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
