"""DuckDB, locked down: one instance for each executing thread, with a single thread.

With one thread and the same limits, DuckDB gives the same bytes for the same input; with two it does not. The settings
are therefore constants of a query, equal on every worker. The instance reads and writes nothing but its temporary
directory, loads no extension, sees no Python variable, and no statement can change its settings. This is defence in
depth, since statements are only ever made from typed trees. If DuckDB itself reads files of a query, it may read those
files and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import duckdb
import pyarrow as pa

from wallaby.batches import stopping
from wallaby.batches.sizes import BATCH_ROWS_MAX, rows_within, varying_bytes
from wallaby.errors import (
    REPORT_IT,
    STEP_FAILED,
    ArithmeticOverflowError,
    ArrayIndexError,
    BinaryArithmeticOverflowError,
    CastInvalidInputError,
    CastOverflowError,
    DateTimeFieldError,
    DateTimeOverflowError,
    DivideByZeroError,
    DuplicatedMapKeyError,
    ElementAtError,
    FractionOfSecondError,
    IndexOfZeroError,
    InvalidArgumentError,
    KernelError,
    MapLengthsError,
    MemoryLimitError,
    NullMapKeyError,
    NumericOutOfRangeError,
    ParseTimestampError,
    QueryCancelledError,
    QueryError,
    RemainderByZeroError,
    SequenceError,
    SliceLengthError,
    SliceStartError,
    TooManyRowsError,
    query_errors,
)
from wallaby.functions import registry
from wallaby.functions.size import LARGEST_SQL
from wallaby.sql.words import identifier, text

MIB: Final = 1 << 20
#: The input of a statement: a reader can be read once, and need not be in memory; a view's rows stay where they are.
Rows: TypeAlias = "pa.Table | pa.RecordBatchReader | TableView"
#: With less than this, DuckDB cannot even hold the blocks that one operator pins.
MEMORY_MIN_BYTES: Final = 32 * MIB


@dataclass(frozen=True, slots=True)
class TableView:
    """Rows that DuckDB reads by a statement of its own."""

    sql: str


#: The output of a step may have this many portions. With fewer, steps that give a little more than they take would
#: compute some of it twice.
OVER_PORTIONS: Final = 4


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """Constants of a query. Other values give other bytes, so all workers of a query must have the same values."""

    #: For one thread: what DuckDB may hold before it spills, not counting Arrow data that goes in and out.
    memory_bytes: int = 512 * MIB
    #: Where DuckDB spills. It may differ between workers, because it does not affect results. None: DuckDB cannot
    #: spill.
    temp_directory: Path | None = None
    temp_directory_bytes: int = 1 << 40
    #: A reduction merges what it has collected when at least this many rows are waiting.
    combine_rows: int = 1 << 18
    #: The approximate size of one output, and of the rows that are processed at once if they are on disk.
    portion_bytes: int = 32 * MIB
    #: The largest decoded size of a split that is read at once; 0: a few portions.
    read_bytes: int = 0
    #: The files that DuckDB may read.
    readable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.memory_bytes < MEMORY_MIN_BYTES:
            raise InvalidArgumentError(
                f"A kernel cannot work in {self.memory_bytes} bytes.",
                fix=f"Give it at least {MEMORY_MIN_BYTES}, or use fewer threads.",
            )

    @property
    def part_bytes(self) -> int:
        """The size of rows that DuckDB processes at once; it needs a few times as much memory for them."""
        return self.memory_bytes // 4

    @property
    def flow_bytes(self) -> int:
        """The size of rows that one step hands to the next at a time: each step of a task has a portion."""
        return min(self.portion_bytes, self.part_bytes)

    @property
    def indexed_bytes(self) -> int:
        """The size of rows that are indexed at once: an index takes about as much as the narrowest of them."""
        return self.memory_bytes // 2

    @property
    def aside_bytes(self) -> int:
        """The size up to which rows that wait to be output stay in memory."""
        return max(self.memory_bytes // 8, self.portion_bytes)


class NoRoomError(MemoryLimitError):
    """DuckDB could not hold what a statement needs for all its rows; for fewer rows it may."""


#: What the functions of a single row make may be at most this part of what a kernel may hold. There are up to seven
#: copies of it (four of DuckDB's, which counts hardly any, two or three of a Python function, and the output), and the
#: kernels have 35 % of the budget: so all copies together take about the budget, and everything else the allowance.
_GROWN_PART: Final = 0.4


def grown_bytes_max(settings: KernelSettings) -> int:
    """The largest result of a function for a single row."""
    return int(settings.memory_bytes * _GROWN_PART)


class DuckDbSession:
    """A DuckDB instance that belongs to the thread which made it."""

    def __init__(self, settings: KernelSettings) -> None:
        self.settings = settings
        self._connection = duckdb.connect(":memory:", config=_config(settings))
        #: Idle connections: a connection gives one answer at a time.
        self._idle = [self._connection]
        self._all = [self._connection]
        self._functions: set[str] = set()
        #: Has an error occurred after which the instance no longer answers?
        self.is_broken = False
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        # It would appear in the executor's log. Further connections inherit the setting.
        self._connection.execute("SET enable_progress_bar = false")
        largest = grown_bytes_max(settings)
        self._connection.execute(f"CREATE MACRO {LARGEST_SQL} AS CAST({largest} AS DOUBLE)")
        if settings.readable:
            paths = ", ".join(text(path) for path in settings.readable)
            self._connection.execute(f"SET allowed_paths = [{paths}]")
            self._connection.execute("SET parquet_metadata_cache = true")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def query(self, sql: str, tables: Mapping[str, Rows]) -> pa.Table:
        """Run one SELECT on the given tables. DuckDB's errors become ours, with Spark's condition names."""
        registry.register(self._connection, sql, self._functions)
        with self._asked(tables) as connection:
            return connection.sql(sql).to_arrow_table(BATCH_ROWS_MAX)

    def stream(self, sql: str, tables: Mapping[str, Rows], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Run a SELECT and yield its batches, in a schema's types. Other statements may run meanwhile."""
        registry.register(self._connection, sql, self._functions)
        with self._asked(tables) as connection:
            unknown_bytes = max(
                (varying_bytes(t) for t in tables.values() if isinstance(t, pa.Table)), default=0
            )
            rows = rows_within(schema, self.settings.flow_bytes, unknown_bytes)
            with contextlib.closing(connection.sql(sql).to_arrow_reader(rows)) as reader:
                for batch in reader:
                    stopping.check()
                    if batch.num_rows:
                        yield batch if batch.schema.equals(schema) else batch.cast(schema)

    @contextlib.contextmanager
    def _asked(self, tables: Mapping[str, Rows]) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection with these tables for one statement, which other threads can interrupt."""
        with (
            self._free() as connection,
            _our_errors(self.settings),
            self._watched(),
            self._registered(connection, tables),
            stopping.statement(self.interrupt),
        ):
            yield connection

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, OSError) as error:
            self.is_broken |= bool(_FATAL.match(_first_line(error)))
            raise

    @contextlib.contextmanager
    def _free(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """An idle connection to this instance."""
        if not self._idle:
            self._idle.append(self._connection.cursor())
            self._all.append(self._idle[-1])
        connection = self._idle.pop()
        try:
            yield connection
        finally:
            self._idle.append(connection)

    @contextlib.contextmanager
    def _registered(
        self, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Rows]
    ) -> Iterator[None]:
        for name, table in tables.items():
            if isinstance(table, TableView):
                registry.register(self._connection, table.sql, self._functions)
                connection.execute(f"CREATE OR REPLACE TEMP VIEW {identifier(name)} AS {table.sql}")
            else:
                connection.register(name, table)
        try:
            yield
        finally:
            for name, table in tables.items():
                if isinstance(table, TableView):
                    connection.execute(f"DROP VIEW {identifier(name)}")
                else:
                    connection.unregister(name)

    def interrupt(self) -> None:
        """Stop the running statements; may be called from any thread."""
        for connection in tuple(self._all):
            connection.interrupt()

    def close(self) -> None:
        """Free everything that the session holds."""
        for connection in reversed(self._all):
            connection.close()


#: A thread keeps this many sessions with different settings. To open one takes 11 ms of CPU time; an idle one holds
#: 4 MiB.
_SESSIONS_MAX: Final = 4


class _Sessions(threading.local):
    """The sessions of a thread, the one used last at the end."""

    def __init__(self) -> None:
        self.open: dict[KernelSettings, DuckDbSession] = {}


_threads = _Sessions()


def thread_session(settings: KernelSettings) -> DuckDbSession:
    """This thread's session with these settings. It is replaced if it broke.

    Queries may read different files, so a thread that serves some of them in turn keeps a session for each.
    """
    sessions = _threads.open
    session = sessions.pop(settings, None)
    if session is not None and session.is_broken:
        session.close()
        session = None
    if session is None:
        while len(sessions) >= _SESSIONS_MAX:
            sessions.pop(next(iter(sessions))).close()
        session = DuckDbSession(settings)
    sessions[settings] = session
    return session


def close_thread_session() -> None:
    """Free what this thread's sessions hold. Threads that run kernels call it when they end."""
    sessions = _threads.open
    while sessions:
        sessions.popitem()[1].close()


def _config(settings: KernelSettings) -> dict[str, str | bool | int | float | list[str]]:
    """Settings that must hold from the start. `enable_external_access` must come after the temporary directory."""
    spill = settings.temp_directory
    return {
        "threads": 1,
        "async_threads": 1,
        "preserve_insertion_order": True,
        "memory_limit": f"{settings.memory_bytes}B",
        "temp_directory": str(spill) if spill is not None else "",
        "max_temp_directory_size": f"{settings.temp_directory_bytes}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        "enable_external_file_cache": False,
        "arrow_large_buffer_size": False,
        "default_null_order": "NULLS_LAST",
    }


@contextlib.contextmanager
def _our_errors(settings: KernelSettings) -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, OSError) as error:
        # What DuckDB raises while a reader is asked for rows comes as Arrow's error, with DuckDB's text.
        if isinstance(error, OSError) and not _FROM_A_READER.match(str(error)):
            raise
        if _NO_ROOM.search(_first_line(error)):  # the worker's trouble, not the query's
            raise OSError(errno.ENOSPC, _first_line(error)) from error
        raise _our_error(error, settings) from error


#: Errors that break an instance: one query's error must not affect all later queries.
_FATAL: Final = re.compile(r"FATAL Error|INTERNAL Error")
#: What DuckDB says if a file of its own cannot grow.
_NO_ROOM: Final = re.compile(
    rf"Could not write file .*({'|'.join(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))})"
)
_FROM_A_READER: Final = re.compile(r"[A-Za-z ]+ Error: ")


def _our_error(error: duckdb.Error | OSError, settings: KernelSettings) -> QueryError:
    while _FATAL.match(_first_line(error)) and isinstance(error.__context__, duckdb.Error):
        error = error.__context__  # the first such error: after it, even dropping a table fails
    message = _first_line(error)
    if isinstance(error, duckdb.InterruptException) or message.startswith("INTERRUPT Error"):
        return QueryCancelledError("The running step was interrupted.")
    if isinstance(error, duckdb.OutOfMemoryException) or message.startswith("Out of Memory Error"):
        return NoRoomError(
            f"A step needs more than its {settings.memory_bytes // MIB} MiB and cannot spill the rest.",
            detail=message,
            fix="Raise spark.wallaby.memory, or use fewer threads per worker.",
            memory_bytes=settings.memory_bytes,
        )
    return _translated(message)


#: DuckDB 2.0's messages for conditions that Spark names. The tests provoke every one of them.
_CONDITIONS: Final[tuple[tuple[re.Pattern[str], type[QueryError]], ...]] = (
    (re.compile(r"Division by zero"), DivideByZeroError),
    (re.compile(r"\[NUMERIC_VALUE_OUT_OF_RANGE\]"), NumericOutOfRangeError),
    (re.compile(r"\[DATETIME_FIELD_OUT_OF_BOUNDS\]"), DateTimeFieldError),
    (re.compile(r"Overflow in (SUM of DECIMAL|HUGEINT (addition|multiplication))"), ArithmeticOverflowError),
    (re.compile(r"Overflow in \w+ of (DEC|INT128)|HUGEINT"), NumericOutOfRangeError),
    (re.compile(r"Overflow in \w+ of INT(8|16) "), BinaryArithmeticOverflowError),
    (re.compile(r"to (type )?DECIMAL\(\d+,\d+\)"), NumericOutOfRangeError),
    (re.compile(r"Overflow in "), ArithmeticOverflowError),
    (
        re.compile(r"out of range for the destination type|Failed to cast decimal value \S+ to type INT"),
        CastOverflowError,
    ),
)

_FIXES: Final[dict[type[QueryError], str]] = {
    ArrayIndexError: "Use get to get NULL instead.",
    ElementAtError: "Use try_element_at to get NULL instead.",
    IndexOfZeroError: "Count positions from 1, or from the end with negative ones.",
    SliceStartError: "Count positions from 1, or from the end with negative ones.",
    SliceLengthError: "Give a length that is not negative.",
    SequenceError: "Give a step with the other sign, or exchange the ends.",
    MapLengthsError: "Give as many values as keys.",
    NullMapKeyError: "Leave entries without a key out.",
    DuplicatedMapKeyError: "Leave one of the entries out, or set spark.sql.mapKeyDedupPolicy=LAST_WIN.",
    TooManyRowsError: "Make the subquery give one row: aggregate it, or add LIMIT 1.",
    CastInvalidInputError: "Use try_cast to get NULL instead.",
    DivideByZeroError: "Use try_divide to get NULL instead.",
    ArithmeticOverflowError: "Cast to a wider type first, or use the try_ function to get NULL instead.",
    BinaryArithmeticOverflowError: "Cast to a wider type first, or use the try_ function to get NULL instead.",
    RemainderByZeroError: "Use try_mod to get NULL instead.",
    NumericOutOfRangeError: "Cast to a decimal with fewer digits after the point, or to double.",
    DateTimeFieldError: "Use the try_ function, or a condition, to get NULL instead.",
    DateTimeOverflowError: "Leave such values out, or use the try_ function to get NULL instead.",
    ParseTimestampError: "Use try_to_timestamp or try_to_date to get NULL instead.",
    FractionOfSecondError: "Use try_make_timestamp to get NULL instead.",
    CastOverflowError: "Use try_cast to get NULL instead.",
    MemoryLimitError: "Raise spark.wallaby.memory, or let a row produce less.",
}


#: Messages that replace DuckDB's, which name its own types and internal columns.
_WORDS: Final[dict[type[QueryError], str]] = {
    DivideByZeroError: "A number was divided by zero.",
    NumericOutOfRangeError: "A number has more digits than its decimal type.",
    DateTimeFieldError: "A date or a time has parts that are out of range.",
    ArithmeticOverflowError: "A number left the range of its type.",
    BinaryArithmeticOverflowError: "A number left the range of its type.",
    CastOverflowError: "A number does not fit the type that it is cast to.",
}

#: Errors that our own SQL and functions raise contain their condition.
_NAMED: Final = re.compile(r"\[([A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


def _translated(message: str) -> QueryError:
    if (named := _NAMED.search(message)) and named[1] in (known := query_errors()):
        return known[named[1]](message[named.end() :].strip(), fix=_FIXES.get(known[named[1]], ""))
    for pattern, condition in _CONDITIONS:
        if pattern.search(message):
            return condition(_WORDS[condition], fix=_FIXES[condition])
    return KernelError(STEP_FAILED, fix=REPORT_IT, detail=message)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
