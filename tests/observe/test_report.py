"""Reports from recorded logs: of a query that lost a worker, of one that failed, and of files that are no logs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from wallaby.observe.event import TaskAction
from wallaby.observe.history import History
from wallaby.observe.log_reading import EventLogError, read_log
from wallaby.observe.page import make_page
from wallaby.observe.timeline_svg import ROWS_MAX

LOGS = Path(__file__).parent / "logs"
HEAD_LINE = '{"event":"log","at":100.0,"version":1,"query":"q-1"}\n'


def line(kind: str, at: float, **fields: object) -> str:
    return json.dumps({"event": kind, "at": at, **fields}) + "\n"


def task(at: float, name: str, how: str = "execute", worker: str = "w1", **fields: object) -> str:
    usual: dict[str, object] = {"rows": 3, "bytes": 24, "queued": 0.5, "seconds": 0.25}
    return line("task", at, worker=worker, task=name, how=how, **{**usual, **fields})


def plan(stages: int, channels: int = 1) -> str:
    told = [
        {"label": f"step <{n}>", "kind": "execute", "channels": channels, "splits": 0} for n in range(stages)
    ]
    links = [
        {"producer": n, "consumer": n + 1, "kind": "main", "routing": "hash", "phase": 0}
        for n in range(stages - 1)
    ]
    return line("plan", 100.0, stages=told, links=links)


def read_lines(directory: Path, *lines: str) -> History:
    """The history in the lines of a log."""
    (directory / "log.jsonl").write_text("".join(lines), encoding="utf-8")
    return read_log(directory / "log.jsonl")


def check_page(history: History) -> str:
    """A page that is well formed where it must be and asks for nothing from elsewhere."""
    page = make_page(history)
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert drawings
    for drawing in map(ET.fromstring, drawings):
        width, height = float(drawing.attrib["width"]), float(drawing.attrib["height"])
        for box in drawing.iter("rect"):
            x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
            assert x >= 0
            assert y >= 0
            assert x + w <= width + 2
            assert y + h <= height
    assert not re.search(r"(?:src|href)\s*=|url\((?!#)|@import|<script|https?:", page)
    return page


def test_a_recorded_recovery_is_reported() -> None:
    history = read_log(LOGS / "recovery.jsonl")
    assert history.outcome == "done"
    assert len(history.recoveries) == 1
    ((lost, host),) = history.lost
    assert host
    page = check_page(history)
    assert f"lost {lost} on {host}" in page
    assert "Losses and recoveries" in page
    assert "scan lineitem" in page
    totals = history.totals()
    assert sum(each.tasks for each in totals) >= history.commits
    assert sum(each.retraced for each in totals) == 3
    assert sum(each.reread for each in totals) == 3
    assert (len(history.recoveries[0].rewound), history.recoveries[0].delivered_again) == (10, 18)


def test_a_recorded_failure_is_reported() -> None:
    history = read_log(LOGS / "failure.jsonl")
    assert (history.outcome, history.condition) == ("failed", "DIVIDE_BY_ZERO")
    page = check_page(history)
    assert "failed" in page
    assert "Division by zero" in page
    assert 'class="bar failed"' in page


def test_retraces_and_re_reads_are_counted_and_coloured(tmp_path: Path) -> None:
    history = read_lines(
        tmp_path,
        HEAD_LINE,
        plan(2),
        task(101.0, "s0.c0.t0", "read"),
        line("froze", 102.0, lost=[{"id": "w1", "host": "node1"}], draining=[]),
        line("froze", 102.2, lost=[{"id": "w2", "host": ""}], draining=[]),
        line("resumed", 102.5, rewound=["s1.c0"], moved=[], delivered_again=4, read_again=1),
        task(103.0, "s1.c0.t0", "retrace"),
        task(103.5, "s0.c0.t0", "re-read"),
    )
    assert history.lost == [("w1", "node1"), ("w2", "")]
    assert history.recoveries[0].resumed_at == 102.5
    assert [run.how for run in history.tasks] == [TaskAction.READ, TaskAction.RETRACE, TaskAction.REREAD]
    first, second = history.totals()
    assert (first.tasks, first.reread, second.tasks, second.retraced) == (1, 1, 0, 1)
    page = check_page(history)
    assert 'class="bar retrace"' in page
    assert 'class="bar re-read"' in page


def test_a_log_that_ends_in_the_middle_says_so_and_its_half_line_is_left_out(tmp_path: Path) -> None:
    lines = [HEAD_LINE, plan(2), line("froze", 102.0, lost=[], draining=["w1"]), '{"event":"ta']
    history = read_lines(tmp_path, *lines)
    assert history.outcome == "unfinished"
    assert history.recoveries[0].resumed_at is None
    assert "has no end in this log" in check_page(history)


def test_lines_of_workers_come_in_any_order_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    lines = [
        HEAD_LINE,
        line("end", 103.0, outcome="done", commits=2),
        line("weather", 101.0),
        task(102.0, "s0.c0.t1"),
        task(101.0, "s0.c0.t0", colour="blue"),
        plan(2),
    ]
    history = read_lines(tmp_path, *lines)
    assert [run.seq for run in history.tasks] == [0, 1]
    assert (history.outcome, history.commits, history.seconds) == ("done", 2, 3.0)


def test_what_stands_in_a_log_is_escaped(tmp_path: Path) -> None:
    lines = [HEAD_LINE, plan(2), task(101.0, "s0.c0.t0", worker="<b>w</b>")]
    lines.append(line("end", 102.0, outcome="failed", condition="X", error="<script>alert(1)</script>"))
    page = check_page(read_lines(tmp_path, *lines))
    assert "&lt;script&gt;" in page
    assert "<b>w" not in page
    assert "step &lt;0&gt;" in page


def test_a_page_stays_small_for_a_query_of_many_tasks_and_channels(tmp_path: Path) -> None:
    lines = [HEAD_LINE, plan(2, channels=2000)]
    lines += [task(100 + n / 1000, f"s0.c{n % 50}.t{n // 50}", seconds=0.0001) for n in range(8_000)]
    history = read_lines(tmp_path, *lines)
    page = check_page(history)
    assert f"{2 * 2000 - ROWS_MAX} more rows are not drawn" in page
    assert len(page) < 12_000_000


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "it is empty"),
        (["hello\n"], "first line is no JSON"),
        (['{"a":1}\n'], "does not begin as one"),
        (['{"event":"log","at":1,"version":2,"query":"q"}\n'], "version 2"),
        ([HEAD_LINE, "broken\n", task(101.0, "s0.c0.t0")], "Line 2 .* damaged"),
        ([HEAD_LINE, line("task", 101.0, worker="w1")], "Line 2 .* damaged"),
        ([HEAD_LINE, task(101.0, "s0.c0")], "Line 2 .* damaged"),
        (
            [
                HEAD_LINE,
                line(
                    "plan", 1.0, stages=[], links=[{"producer": 0, "consumer": 9, "kind": "", "routing": ""}]
                ),
            ],
            "Line 2",
        ),
    ],
    ids=["empty", "text", "other", "version", "broken", "fields", "name", "links"],
)
def test_what_is_no_log_is_refused_and_said_why(lines: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(EventLogError, match=says):
        read_lines(tmp_path, *lines)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x80" * 10)
    for path, says in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "directory"),
        (tmp_path / "binary", "not text"),
    ):
        with pytest.raises(EventLogError, match=says):
            read_log(path)
