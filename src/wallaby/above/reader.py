"""Read one partition of a kept result in a Spark task, directly from the TaskManagers that hold its rows.

A task drives the protocol's own reader (`lineage.kept`). It fetches the rows from where they were when the job was
planned, and asks the driver for their place only if they have moved. A task that runs twice gets the same rows twice.
The next rows are fetched while Spark takes the current ones, so a task holds at most two portions.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from wallaby.errors import QueryError, WallabyError
from wallaby.exchange.client import PeerClient
from wallaby.exchange.kept_questions import LOCATE, REACH, decode_place, encode_question, encode_reach
from wallaby.exchange.kept_stream import KeptTicket
from wallaby.lineage.effects import Pause
from wallaby.lineage.kept import Fetch, KeptPlace, KeptRange, Locate, ReportReach, read_kept
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.results.answered import as_spark_names
from wallaby.worker.bootstrap import TLS_NAME, ReaderAccess

#: The most bytes that one call returns, except for a single output that is larger.
FETCH_BYTES: Final = 16 << 20
#: How long a TaskManager or the head may take to begin its answer.
CALL_SECONDS: Final = 5.0
#: How often a task checks whether Spark still wants it.
LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """The part of a kept result that one Spark task reads."""

    ranges: tuple[KeptRange, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptReading:
    """A result divided among tasks. All tasks get the same description, and each reads its own partition."""

    query: QueryId
    access: ReaderAccess = field(repr=False)
    partitions: tuple[KeptPartition, ...]
    #: Where the channels were when the result was divided.
    addresses: dict[ChannelName, str]
    #: The form in which Spark wants the rows.
    schema: pa.Schema
    #: How long a task waits for rows before it gives up.
    patience_seconds: float

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Serve `mapInArrow`: the input names partitions, the output is their rows."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self.rows(number)

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one partition.

        Raises:
            KeptResultError: the result was released, is lost, or did not arrive in time.
        """
        access = self.access
        tls = {"tls_roots": access.tls_certificate, "tls_name": TLS_NAME} if access.tls_certificate else {}
        client = PeerClient(access.token, timeout_seconds=CALL_SECONDS, **tls)  # type: ignore[arg-type]
        try:
            for batches in _ahead(_Reader(self, client).portions(self.partitions[number].ranges)):
                yield from (as_spark_names(batch, self.schema) for batch in batches)
        finally:
            client.close()


class _Reader:
    """Drives the protocol's reader for one task; it identifies workers by their addresses."""

    def __init__(self, reading: KeptReading, client: PeerClient) -> None:
        self._reading = reading
        self._client = client

    def portions(self, ranges: tuple[KeptRange, ...]) -> Iterator[list[pa.RecordBatch]]:
        """Yield the batches of some outputs, one list for each call."""
        known = {name: WorkerId(address) for name, address in self._reading.addresses.items()}
        patience_ms = int(self._reading.patience_seconds * 1000)
        effects = read_kept(ranges, lambda: int(time.monotonic() * 1000), patience_ms, known)
        answer: Any = None
        while True:
            try:
                effect = effects.send(answer)
            except StopIteration:
                return
            answer = None
            match effect:
                case Fetch():
                    got = self._client.fetch(effect.worker, self._ticket(effect))
                    if got is not None:
                        answer, batches = got
                        yield batches
                case Locate():
                    answer = self._locate(effect.channel)
                case ReportReach():
                    said = encode_reach(self._reading.query, effect.worker, reachable=effect.reachable)
                    self._client.ask(self._reading.access.head_address, REACH, said, CALL_SECONDS)
                case Pause():
                    time.sleep(effect.limit_ms / 1000)
                case _:
                    raise AssertionError(f"a reader asks for {effect}")

    def _ticket(self, effect: Fetch) -> KeptTicket:
        return KeptTicket(
            self._reading.query, effect.channel, effect.edge, effect.first, effect.end, FETCH_BYTES
        )

    def _locate(self, channel: ChannelName) -> KeptPlace | None:
        question = encode_question(self._reading.query, channel)
        said = self._client.ask(self._reading.access.head_address, LOCATE, question, CALL_SECONDS)
        place = None if said is None else decode_place(said)
        if isinstance(place, WallabyError):
            raise place
        return place


def _ahead(portions: Iterator[list[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the same portions, but fetch the next one while the current one is used."""
    ready: queue.Queue[list[pa.RecordBatch] | BaseException | None] = queue.Queue(maxsize=1)
    over = threading.Event()

    def put(item: list[pa.RecordBatch] | BaseException | None) -> None:
        while not over.is_set():
            try:
                ready.put(item, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def fetch() -> None:
        try:
            for portion in portions:
                if over.is_set():
                    return
                if portion:
                    put(portion)
            put(None)
        except BaseException as error:  # noqa: BLE001 - whoever takes the rows gets it
            put(error)

    thread = threading.Thread(target=fetch, name="wallaby-reader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, WallabyError):
                raise item
            if isinstance(item, BaseException):
                raise QueryError(f"Reading kept rows failed: {item}.") from item
            yield item
    finally:
        over.set()


def reads(reading: KeptReading) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that `mapInArrow` runs in each task; PySpark pickles only functions."""

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return reading(numbers)

    return read
