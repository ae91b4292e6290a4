"""In Spark's tasks: the rows of one partition of a result that stays, straight from the TaskManagers that have them.

A task drives the protocol's own reader (`lineage.kept`): it fetches from where the rows were when the job was planned,
and asks the driver where they are only if they are not there. A task that runs twice gets the same rows twice. While
Spark takes some rows, the next ones are fetched; so a task holds two portions at most.
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
from wallaby.lineage.kept import Fetch, KeptRange, Locate, ReportReach, read_kept
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.results.answered import as_spark_names
from wallaby.worker.bootstrap import TLS_NAME, ReaderAccess

#: What one call brings at most, but for an output that is larger.
FETCH_BYTES: Final = 16 << 20
#: How long a TaskManager, or the head, has to begin its answer.
CALL_SECONDS: Final = 5.0
#: How often a task looks whether it is still wanted.
LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """What one task of Spark's reads."""

    ranges: tuple[KeptRange, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptReading:
    """A result divided between tasks. All tasks get the same description, and each takes its partition of it."""

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
        """For `mapInArrow`: the input names partitions, the output is their rows."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self.rows(number)

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one partition.

        Raises:
            KeptResultError: the result was released, is lost, or nothing of it came for too long.
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
    """Drives the protocol's reader for one task. A worker is known to it by its address."""

    def __init__(self, reading: KeptReading, client: PeerClient) -> None:
        self._reading = reading
        self._client = client

    def portions(self, ranges: tuple[KeptRange, ...]) -> Iterator[list[pa.RecordBatch]]:
        """The batches of some outputs, one call's after the other."""
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

    def _locate(self, channel: ChannelName) -> WorkerId | None:
        question = encode_question(self._reading.query, channel)
        said = self._client.ask(self._reading.access.head_address, LOCATE, question, CALL_SECONDS)
        place = None if said is None else decode_place(said)
        if isinstance(place, WallabyError):
            raise place
        return None if place is None else WorkerId(place)


def _ahead(portions: Iterator[list[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """The same portions, the next one fetched while the one before is used."""
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
                raise QueryError(f"Reading rows that stay failed: {item}.") from item
            yield item
    finally:
        over.set()


def reads(reading: KeptReading) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that `mapInArrow` runs in each task; PySpark pickles functions only."""

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return reading(numbers)

    return read
