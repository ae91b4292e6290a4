"""A result on its way to the client: slices as they arrive, in order, and how the query ended.

A client that takes rows more slowly than they arrive does not fill the driver's memory: beyond a limit the collector
waits until rows are taken, its window fills up, and the workers keep their outputs.

If a query that loses a worker is to be restarted, its rows are held back until the result is complete:
another run may give them in another order, and rows that a client has cannot be taken back.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from wallaby.errors import QueryError, ResultSizeError, WallabyError
from wallaby.lineage.effects import Slice
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import QueryId
from wallaby.observe.observation import Observation

#: The bytes that may wait in the driver for the client. The rest waits at the workers, in windows and backups.
UNTAKEN_BYTES_MAX = 64 << 20


@dataclass(slots=True)
class Figures:
    """The figures of a run; complete once the query has been removed from the store."""

    stages: int
    tasks: int = 0
    rows: int = 0
    bytes: int = 0
    recoveries: int = 0
    #: How often the query was restarted.
    restarts: int = 0
    seconds: float = 0.0


class Collected:
    """Filled by the head's control loop, drained by the client's thread."""

    def __init__(
        self,
        query: QueryId,
        graph: StageGraph,
        cancel: Callable[[WallabyError | None], None],
        *,
        held_back: bool = False,
        whole_bytes_max: int = 0,
    ) -> None:
        self.query = query
        self._held_back: list[Any] | None = [] if held_back else None
        self._held_back_bytes = 0
        #: The reason if rows were dropped: all of them may have arrived before the query could be cancelled.
        self._refused: WallabyError | None = None
        self.graph = graph
        self._cancel = cancel
        self.figures = Figures(len(graph.stages))
        #: The observation of the running query; set when it is submitted.
        self.observation: Observation | None = None
        #: Called when a client begins to wait; it returns a function to call when the wait is over.
        self.on_wait: Callable[[], Callable[[], None]] | None = None
        #: Called after each recovery, on a thread of the head's. It must not block.
        self.on_recovery: Callable[[], None] | None = None
        #: How many bytes of the result the driver may hold at once; 0: no limit. A stream has no limit.
        self.whole_bytes_max = whole_bytes_max
        #: Set when nothing is left of the query in the store: the figures are complete.
        self.removed = threading.Event()
        self._batches: queue.SimpleQueue[Any] = queue.SimpleQueue()
        #: The bytes that the client has not taken yet, and the functions to call when there are fewer.
        self._untaken_bytes = 0
        self._waiting: list[Callable[[], None]] = []
        #: How long workers have waited for the client to take rows, and since when they do now.
        self.client_seconds = 0.0
        self._waits_since: float | None = None
        self._ended = threading.Event()
        self._when_over: list[Callable[[BaseException | None], None]] = []
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def cancel(self, because: WallabyError | None = None) -> None:
        """End the query, unless its result is complete. The error is for the client, if it did not cancel itself."""
        self._cancel(because)

    def recovered(self) -> None:
        """Note that the query goes on after a loss."""
        self.figures.recoveries += 1
        if self.on_recovery is not None:
            self.on_recovery()

    def is_too_large(self, whole_bytes: int) -> bool:
        """Is this more than the driver may hold of one result?"""
        return 0 < self.whole_bytes_max < whole_bytes

    def too_large(self) -> ResultSizeError:
        """The error of a result that is too large."""
        return ResultSizeError(
            f"The result of query {self.query} is bigger than spark.driver.maxResultSize "
            f"({self.whole_bytes_max / (1 << 20):.1f} MiB).",
            fix="Raise spark.driver.maxResultSize, set it to 0 for no limit, or read the rows as a stream.",
            setting="spark.driver.maxResultSize",
            max_bytes=self.whole_bytes_max,
        )

    def when_over(self, call: Callable[[BaseException | None], None]) -> None:
        """Register a function to call with the query's error, or None, when it has ended. It must not block."""
        with self._lock:
            if not self._ended.is_set():
                self._when_over.append(call)
                return
        call(self._error)

    def add(self, slices: tuple[Slice, ...], go_on: Callable[[], None]) -> None:
        """Add rows to the result; they are never taken back. `go_on` is called once the client has room for more."""
        if self._held_back is not None:
            self._held_back += [batch for piece in slices for batch in piece.body or ()]  # type: ignore[attr-defined]
            self._held_back_bytes += sum(batch.nbytes for piece in slices for batch in piece.body or ())  # type: ignore[attr-defined]
            if self.is_too_large(self._held_back_bytes):
                self._held_back.clear()
                self._refused = self._refused or self.too_large()
                self.cancel(self._refused)
            go_on()
            return
        for piece in slices:
            for batch in piece.body or ():  # type: ignore[attr-defined]
                self.figures.rows += batch.num_rows
                self.figures.bytes += batch.nbytes
                with self._lock:
                    self._untaken_bytes += batch.nbytes
                self._batches.put(batch)
        with self._lock:
            full = self._untaken_bytes > UNTAKEN_BYTES_MAX and not self._ended.is_set()
            if full:
                self._waiting.append(go_on)
                self._waits_since = self._waits_since or time.monotonic()
        if not full:
            go_on()

    def waits_for_client(self) -> bool:
        """Do more rows wait for the client than may wait in the driver?"""
        with self._lock:
            return self._untaken_bytes > UNTAKEN_BYTES_MAX

    def _take(self, batch: Any) -> Any:
        """Note that the client has taken a batch or the end: there may be room for more."""
        with self._lock:
            self._untaken_bytes -= batch.nbytes if batch is not None else 0
            room = self._untaken_bytes <= UNTAKEN_BYTES_MAX
        if room:
            self._let_go_on()
        return batch

    def _let_go_on(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            if self._waits_since is not None:
                self.client_seconds += time.monotonic() - self._waits_since
                self._waits_since = None
        for go_on in waiting:
            go_on()

    def begin_again(self, query: QueryId, *, goes_on: bool = False) -> None:
        """Note a restart under another name. The rows so far are dropped, unless the query goes on after them."""
        self.query = query
        self.figures.restarts += 1
        if not goes_on:
            assert self._held_back is not None, "rows that the client may have are not taken back"
            self._held_back.clear()
            self._held_back_bytes, self._refused = 0, None

    def end(self, error: BaseException | None) -> None:
        """Note the end of the result. Only the first call counts."""
        with self._lock:
            if self._ended.is_set():
                return
            error = error or self._refused
            self._error = error
            self._ended.set()
            held = self._held_back or () if error is None else ()
            self._untaken_bytes += sum(batch.nbytes for batch in held)
        for batch in held:
            self.figures.rows += batch.num_rows
            self.figures.bytes += batch.nbytes
            self._batches.put(batch)
        self._batches.put(None)
        self._let_go_on()
        for call in self._when_over:
            call(error)

    @property
    def is_over(self) -> bool:
        """Has the query ended, with a result or an error?"""
        return self._ended.is_set()

    def _first(self) -> Any:
        """Wait for the first batch or the end. A progress bar may be shown meanwhile."""
        stop_showing = self.on_wait() if self.on_wait is not None else None
        try:
            return self._take(self._batches.get())
        finally:
            if stop_showing is not None:
                stop_showing()

    def batches(self) -> Iterator[Any]:
        """Yield record batches as they arrive; raise the query's error, if it has one, at the end.

        A client that is interrupted while it waits, or takes no more, cancels its query.
        """
        try:
            batch = self._first()
            while batch is not None:
                yield batch
                batch = self._take(self._batches.get())
        except (KeyboardInterrupt, GeneratorExit):
            self.cancel()
            raise
        self._batches.put(None)
        if isinstance(self._error, WallabyError):
            raise self._error.again()
        if self._error is not None:
            raise QueryError(f"The engine failed: {self._error}.") from self._error
