"""The records of queries: what they say, what is logged, and that they are bounded."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from wallaby.errors import QueryCancelledError, QueryError
from wallaby.head.collected import Collected
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import QueryId
from wallaby.observe.about import LINE_CHARACTERS, About
from wallaby.observe.finding import FindingKind
from wallaby.relations.reason import LOCAL_ROWS, Reason
from wallaby.results import following
from wallaby.results.following import FollowedQueries, FollowedQuery
from wallaby.results.record import QueryHistory, Where, explained
from wallaby.spark.about import calling

GRAPH = StageGraph((Stage(StageKind.READ, 1, splits=1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
SQL = About(sql="select 1\n  from t", action="collect", line="job.py:3")
SIN = Reason("Sin(x#3)", "the last bit differs")


def collected(name: str = "q-1") -> Collected:
    return Collected(QueryId(name), GRAPH, lambda _because: None)


def test_a_native_query_is_one_line_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wallaby")
    records = FollowedQueries()
    record, run = records.begin(SQL), collected()
    record.runs(run)
    assert records.history()[0].state == "running"
    run.figures.rows = 5
    run.end(None)
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("native: 5 rows in ")
    assert line.endswith(": select 1 from t")
    (found,) = records.history()
    assert (found.where, found.state, found.rows, found.queries) == (Where.NATIVE, "done", 5, ("q-1",))
    assert (found.sql, found.action, found.line) == (SQL.sql, "collect", "job.py:3")


def test_a_query_on_spark_says_why_and_how_long(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wallaby")
    records = FollowedQueries()
    record = records.begin(SQL)
    record.on_spark((SIN,))
    assert record.answered_by_spark(lambda: [1, 2, 3]) == [1, 2, 3]
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("Spark: 3 rows in ")
    assert "because Sin(x#3): the last bit differs" in line
    (finding,) = records.history()[0].findings
    assert (finding.kind, finding.share, finding.line) == (FindingKind.ON_SPARK, 1.0, "job.py:3")


def test_a_reason_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    records = FollowedQueries()
    records.warn((SIN, Reason("Spark leaf", "follows from it")))
    records.warn((Reason("Sin(y#77)", SIN.why),))
    records.warn((Reason("Cos(y#77)", SIN.why),))
    records.warn(())
    records.warn((Reason("plan", LOCAL_ROWS),))
    said = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [line.partition(":")[2].partition(":")[0] for line in said] == [" Sin(x#3)", " Cos(y#77)"]


def test_so_many_reasons_are_warned_about_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    records = FollowedQueries()
    for number in range(2 * following.WARNED_MAX):
        records.warn((Reason(f"F{number}", "unknown"),))
    assert len(caplog.records) == following.WARNED_MAX


def test_errors_end_a_record_with_their_text() -> None:
    records = FollowedQueries()
    failed, cancelled = records.begin(SQL), records.begin(SQL)
    failed.failed(QueryError("It broke.\nwith a stack"))
    failed.finish("done")
    run = collected()
    cancelled.runs(run)
    run.end(QueryCancelledError("The query was cancelled."))
    assert [each.state for each in records.history()] == ["failed", "cancelled"]
    assert "stack" not in records.history()[0].error
    with pytest.raises(KeyError):
        records.begin(SQL).answered_by_spark(lambda: dict[str, int]()["nothing"])
    assert records.history()[-1].state == "failed"


def test_an_error_after_which_spark_answers_is_no_failure() -> None:
    records = FollowedQueries()
    record, run = records.begin(SQL), collected()
    record.runs(run)
    run.end(QueryError("in doubt"))
    assert not record.is_over
    record.on_spark(("left to Spark while running: in doubt",))
    record.answered_by_spark(list)
    (found,) = records.history()
    assert (found.where, found.state, found.rows) == (Where.SPARK, "done", 0)


def test_a_part_belongs_to_the_query_that_spark_runs() -> None:
    records = FollowedQueries()
    record = records.begin(SQL)
    record.on_spark((SIN,))

    def action() -> list[int]:
        def on_a_thread_of_sparks() -> None:
            with records.part(About, Where.PART) as part:
                part.part_ran(collected("q-2"), 7)

        thread = threading.Thread(target=on_a_thread_of_sparks)
        thread.start()
        thread.join()
        return [1]

    record.answered_by_spark(action)
    (found,) = records.history()
    assert (found.where, found.rows, found.queries) == (Where.PART, 1, ("q-2",))


def test_a_part_below_a_write_is_a_query_of_its_own() -> None:
    records = FollowedQueries()
    with records.part(lambda: SQL, Where.PART) as part:
        part.part_ran(collected("q-2"), 7)
    with pytest.raises(QueryError), records.part(lambda: SQL, Where.NATIVE):
        raise QueryError("It broke.")
    assert [(each.where, each.state, each.rows) for each in records.history()] == [
        (Where.PART, "done", 7),
        (Where.NATIVE, "failed", None),
    ]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "OBSERVED_MAX", 3)
    records = FollowedQueries()
    made: list[FollowedQuery] = []
    for number in range(following.RECORDS_MAX + 10):
        made.append(records.begin(SQL))
        made[-1].on_spark((f"reason {number}",))
        made[-1].finish("done")
    history = records.history()
    assert len(history) == following.RECORDS_MAX
    assert history[-1].number == following.RECORDS_MAX + 10
    assert made[-1]._findings is None
    assert made[-4]._findings is not None
    assert history[-10].findings[0].what.startswith("Spark ran the query")


def test_history_prints_lines_and_a_table() -> None:
    records = FollowedQueries()
    assert repr(records.history()) == "no queries yet"
    record = records.begin(About(sql="select '<b>' from t"))
    record.on_spark((SIN,))
    record.finish("done", 2)
    history = records.history()
    assert repr(history).startswith("1. Spark: 2 rows in ")
    assert "&lt;b&gt;" in history._repr_html_()
    assert "<b>" not in history._repr_html_()
    assert isinstance(history[:1], QueryHistory)
    text = explained(history[0])
    assert "because Sin(x#3): the last bit differs" in text
    assert "on Spark" in text


def test_a_query_is_called_by_its_sql_or_by_its_line() -> None:
    assert SQL.text == "select 1 from t"
    assert About(sql="x", description="nightly").text == "nightly"
    assert About(action="collect", line="job.py:3").text == "collect at job.py:3"
    assert About().text == "a query"
    assert len(About(sql="x" * 500).text) == LINE_CHARACTERS
    assert calling().line.startswith(Path(__file__).name)
