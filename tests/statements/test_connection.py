"""The locked-down DuckDB: what it cannot do, how it spills, and how it ends."""

from __future__ import annotations

import errno
import resource
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wallaby.errors import (
    InvalidArgumentError,
    KernelError,
    MemoryLimitError,
    NumericOutOfRangeError,
    QueryCancelledError,
)
from wallaby.functions import registry
from wallaby.statements.connection import (
    DuckDbSession,
    KernelSettings,
    TableView,
    close_thread_session,
    thread_session,
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/wallaby-should-not-exist'",
        "ATTACH '/tmp/wallaby-should-not-exist.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 4",
        "SET memory_limit = '100GB'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SELECT * FROM hidden_table",
    ],
)
def test_statements_reach_nothing_outside(sql: str, session: DuckDbSession) -> None:
    hidden_table = pa.table({"secret": [1]})
    with pytest.raises(KernelError):
        session.query(sql, {})
    assert hidden_table.num_rows
    assert not Path("/tmp/wallaby-should-not-exist").exists()


def test_a_long_statement_prints_nothing(session: DuckDbSession) -> None:
    """DuckDB 2.0 shows a progress bar by default, and a TaskManager's output is the executor's log."""
    asked = "SELECT current_setting('enable_progress_bar') AS shown FROM t"
    rows = pa.table({"a": [1]})
    schema = pa.schema([("shown", pa.bool_())])
    first, second = (session.stream(asked, {"t": rows}, schema) for _ in range(2))
    found = [next(first), next(second)]  # of two connections, because both are under way
    assert [batch.to_pylist() for batch in found] == [[{"shown": False}]] * 2


def test_settings_that_decide_the_bytes_are_set(session: DuckDbSession) -> None:
    names = "'threads', 'async_threads', 'preserve_insertion_order', 'TimeZone', 'lock_configuration'"
    found = session.query(f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})", {})
    assert dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)) == {
        "threads": "1",
        "async_threads": "1",
        "preserve_insertion_order": "true",
        "TimeZone": "UTC",
        "lock_configuration": "true",
    }


def test_tables_are_gone_after_a_statement(session: DuckDbSession) -> None:
    assert session.query("SELECT a FROM t", {"t": pa.table({"a": [1]})}).num_rows == 1
    with pytest.raises(KernelError):
        session.query("SELECT a FROM t", {})


def test_a_thread_gets_another_session_after_an_error_that_breaks_one() -> None:
    """DuckDB answers nothing any more then: neither this query, nor any later one."""
    settings = KernelSettings(memory_bytes=64 << 20)
    bytes_ = pa.array([b"text", b"\xff\xfe"])
    no_text = pa.table({"s": pa.Array.from_buffers(pa.string(), 2, bytes_.buffers())})
    with pytest.raises(KernelError) as broken:
        thread_session(settings).query("SELECT upper(s) FROM t", {"t": no_text})
    detail = str(broken.value.fields["detail"])
    assert "invalidated" not in detail, "the first error, not what follows from it"
    assert detail not in str(broken.value)
    assert thread_session(settings).query("SELECT 1 FROM t", {"t": no_text}).num_rows == 2
    close_thread_session()


def test_a_thread_has_one_session() -> None:
    settings = KernelSettings(memory_bytes=64 << 20)
    mine = thread_session(settings)
    assert thread_session(settings) is mine
    others: list[DuckDbSession] = []

    def other() -> None:
        others.append(thread_session(settings))
        close_thread_session()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(30)
    assert others
    assert others[0] is not mine
    close_thread_session()


def test_a_thread_keeps_the_sessions_of_the_last_settings_that_it_used() -> None:
    """Queries over different files alternate on a thread, and opening a session takes longer than a small task."""
    first, *others = (KernelSettings(memory_bytes=size << 20) for size in (64, 65, 66, 67, 68))
    mine = thread_session(first)
    sessions = [thread_session(settings) for settings in others[:3]]
    assert thread_session(first) is mine
    assert len({id(session) for session in (mine, *sessions)}) == 4
    thread_session(others[3])
    assert thread_session(first) is mine, "it was not the one that has been unused for longest"
    assert thread_session(others[0]) is not sessions[0], "there is only room for a few"
    with pytest.raises(KernelError):
        sessions[0].query("SELECT 1", {})
    close_thread_session()
    assert thread_session(first) is not mine
    close_thread_session()


def test_too_little_memory_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgumentError):
        KernelSettings(memory_bytes=1 << 20)


ROWS = 1_500_000
SORT = "SELECT a, b, c FROM t ORDER BY c, b, a"


@pytest.fixture(scope="module")
def big() -> pa.Table:
    numbers = np.random.default_rng(1).integers(0, 1 << 60, (3, ROWS))
    return pa.table({name: pa.array(column) for name, column in zip("abc", numbers, strict=True)})


def test_what_does_not_fit_is_spilled_and_cleaned_up(big: pa.Table, tmp_path: Path) -> None:
    small = DuckDbSession(KernelSettings(memory_bytes=40 << 20, temp_directory=tmp_path))
    found = small.query(f"{SORT} LIMIT 2000000", {"t": big})
    assert found.num_rows == ROWS
    ordered = found.column("c").to_numpy()
    assert (ordered[1:] >= ordered[:-1]).all()
    small.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_no_error_of_the_query(big: pa.Table, tmp_path: Path) -> None:
    small = DuckDbSession(KernelSettings(memory_bytes=40 << 20, temp_directory=tmp_path))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limit[1]))
    try:
        with pytest.raises(OSError, match="Could not write file") as caught:
            small.query(f"{SORT} LIMIT 2000000", {"t": big})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert caught.value.errno == errno.ENOSPC
    small.close()


def test_what_cannot_spill_names_the_setting(big: pa.Table) -> None:
    small = DuckDbSession(KernelSettings(memory_bytes=32 << 20))
    with pytest.raises(MemoryLimitError, match=r"spark\.wallaby\.memory") as caught:
        small.query(SORT, {"t": big})
    assert caught.value.fields["memory_bytes"] == 32 << 20
    assert small.query("SELECT 1 AS x", {}).num_rows == 1, "and the next step finds it in order"
    small.close()


def test_a_running_statement_can_be_interrupted(session: DuckDbSession) -> None:
    timer = threading.Timer(0.2, session.interrupt)
    timer.start()
    with pytest.raises(QueryCancelledError):
        session.query("SELECT sum(a.range * b.range) AS s FROM range(1000000) a, range(1000000) b", {})
    timer.join(30)
    assert session.query("SELECT 1 AS x", {}).num_rows == 1


def test_a_session_learns_the_functions_that_statements_name() -> None:
    session = DuckDbSession(KernelSettings())
    assert session.query("SELECT wallaby_luhn_check('18') AS x", {}).column(0).to_pylist() == [True]
    view = TableView("SELECT wallaby_soundex('Robert') AS y")
    assert session.query("SELECT y FROM v", {"v": view}).column(0).to_pylist() == ["R163"]
    session.close()


def test_functions_of_our_own_are_known_by_their_first_word() -> None:
    assert all(name.startswith("wallaby_") for name in registry.ARROW_FUNCTIONS)


def test_an_error_that_comes_while_rows_are_streamed_has_its_condition(session: DuckDbSession) -> None:
    """Arrow's reader passes DuckDB's errors on as errors of its own."""
    rows = pa.table({"x": pa.array(range(10_000), pa.int64())})
    factor = "CAST('100000000000000000000000000000000000000' AS HUGEINT)"
    sql = f"SELECT CAST(CASE WHEN x < 9000 THEN 1 ELSE x * {factor} END AS DOUBLE) AS y FROM t"
    with pytest.raises(NumericOutOfRangeError):
        list(session.stream(sql, {"t": rows}, pa.schema([("y", pa.float64())])))
