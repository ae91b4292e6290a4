"""The live page over HTTP: who may look, what they see, that it stays small and that nothing in it is executed."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.observe.test_observation import PLAN

from wallaby.errors import ConfigurationError
from wallaby.lineage.names import QueryId
from wallaby.observe.event import EventKind, encode, make
from wallaby.observe.finding import Finding, FindingKind
from wallaby.observe.lines import KeptLines
from wallaby.observe.log_reading import read_log
from wallaby.observe.observation import Observation
from wallaby.ui import server as server_module
from wallaby.ui.live_page import LivePage
from wallaby.ui.log_source import LogSource
from wallaby.ui.metrics import METRICS, as_text
from wallaby.ui.pages import ROWS_MAX, Pages
from wallaby.ui.server import PageServer
from wallaby.ui.source import Overview, QueryPage, QueryRow, WorkerRow

LOGS = Path(__file__).parent.parent / "observe" / "logs"
EVIL = "<script>alert(1)</script>"


class Fixed:
    """A source that never changes."""

    def __init__(self, rows: Sequence[QueryRow] = ()) -> None:
        self._rows = rows

    def overview(self) -> Overview:
        workers = (
            WorkerRow("w0-1", f"node{EVIL}", 7, "live", 900 << 20),
            WorkerRow("w1-2", "far", 8, "silent"),
        )
        return Overview("Wallaby on app-1", (("3", "queries"),), workers, 1 << 30, (("q-9", EVIL),))

    def queries(self) -> Sequence[QueryRow]:
        return self._rows

    def query(self, key: str) -> QueryPage | None:
        found = next((row for row in self._rows if row.key == key), None)
        if found is None:
            return None
        finding = Finding(FindingKind.ON_SPARK, 1.0, EVIL, "do this")
        histories = (read_log(LOGS / "recovery.jsonl"),) if found.where == "native" else ()
        return QueryPage(found, f"select '{EVIL}'", "job.py:3", histories, (finding,))

    def figures(self) -> Mapping[str, Sequence[tuple[Mapping[str, str], float]]]:
        return {"wallaby_task_managers": [({"state": 'li"ve'}, 2.0)], "wallaby_kept_results": [({}, 0.0)]}


ROWS = (
    QueryRow("1", f"select {EVIL}", "native", "running", 1.7e9, 2.0, 5),
    QueryRow("2", "select sin(x)", "Spark", "done", 1.7e9, 0.5, 1, f"Sin: {EVIL}", ("w3",)),
)


@pytest.fixture
def page() -> Iterator[PageServer]:
    made = PageServer(Pages(Fixed(ROWS)))
    yield made
    made.close()


def ask(
    page: PageServer,
    path: str,
    *,
    method: str = "GET",
    token: bool = True,
    folder: bool = True,
    **headers: str,
) -> tuple[int, str, dict[str, str]]:
    path = page.folder + path[1:] if folder else path
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent.setdefault("Cookie", f"other=1; {page.cookie}={page.token}")
    try:
        connection.request(method, path, headers=sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


# --- who may look ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/body/", "/query/1", "/body/query/1", "/metrics", "/nothing"])
def test_without_the_token_there_is_no_data(page: PageServer, path: str) -> None:
    for headers in (
        {},
        {"Cookie": f"{page.cookie}=guess"},
        {"Authorization": "Bearer guess"},
        {"Cookie": "\x01;;="},
    ):
        status, body, got = ask(page, path, token=False, folder=True, **headers)
        assert status == 403
        assert "token" in body
        assert "Set-Cookie" not in got
        assert "app-1" not in body
    assert ask(page, f"{path}?token=guess", token=False)[0] == 403


def test_the_link_gives_a_cookie_that_other_sites_cannot_use(page: PageServer) -> None:
    link = urlsplit(page.url)
    assert link.hostname == "127.0.0.1"
    status, body, headers = ask(
        page, f"/?{link.query}", token=False, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate"
    )
    assert status == 200
    assert "Wallaby on app-1" in body
    assert (
        headers["Set-Cookie"] == f"{page.cookie}={page.token}; Path={page.folder}; HttpOnly; SameSite=Strict"
    )
    assert ask(page, "/metrics", token=False, folder=False, Authorization=f"Bearer {page.token}")[0] == 200


def test_another_server_of_this_host_is_not_given_the_cookie(page: PageServer) -> None:
    status, body, _ = ask(page, "/", folder=False)
    assert status == 404, "the pages are in a folder whose name only the link says"
    assert "app-1" not in body
    other = PageServer(Pages(Fixed()))
    other.close()
    assert other.folder != page.folder
    assert len(page.folder) > 12
    assert page.folder in page.url


def test_it_can_be_seen_through_a_tunnel_with_another_port(page: PageServer) -> None:
    assert ask(page, "/", Host="127.0.0.1:8090")[0] == 200
    assert ask(page, "/", Host="localhost:8090")[0] == 200


def test_another_site_cannot_read_it(page: PageServer) -> None:
    assert ask(page, "/body/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert (
        ask(page, f"/body/?token={page.token}", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors")[0] == 403
    )
    assert ask(page, "/", Host="evil.example")[0] == 421
    assert ask(page, "/", Host=f"evil.example:{page.port}")[0] == 421
    status, _, headers = ask(page, "/", Origin="https://evil.example")
    assert status == 200
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"


def test_only_get_is_answered_and_only_on_loopback(page: PageServer) -> None:
    assert ask(page, "/", method="POST")[0] == 501
    assert ask(page, "/", method="OPTIONS")[0] == 501
    assert page._http.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigurationError, match=r"spark.wallaby.ui.port"):
            LivePage(Fixed(), taken.getsockname()[1])


def test_too_many_requests_at_once_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUESTS_MAX", 1)
    entered, leave = threading.Event(), threading.Event()

    class Slow(Fixed):
        def overview(self) -> Overview:
            entered.set()
            leave.wait(10)
            return super().overview()

    page = PageServer(Pages(Slow()))
    try:
        first = threading.Thread(target=ask, args=(page, "/body/"))
        first.start()
        assert entered.wait(10)
        assert ask(page, "/body/")[0] == 503
        leave.set()
        first.join()
        assert ask(page, "/body/")[0] == 200
    finally:
        leave.set()
        page.close()


def test_too_many_connections_are_closed_and_leave_room_when_they_end(page: PageServer) -> None:
    def is_answered() -> bool:
        try:
            return ask(page, "/")[0] == 200
        except (http.client.HTTPException, OSError):
            return False

    idle = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(server_module.CONNECTIONS_MAX)]
    while is_answered():  # until the server has taken all of them, in its own time
        pass
    for each in idle:
        each.close()
    while not is_answered():
        pass


def test_a_failure_is_a_page_of_its_own(page: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fixed, "queries", lambda _self: 1 / 0)
    status, body, _ = ask(page, "/")
    assert status == 500
    assert "division" not in body


# --- what they see ---------------------------------------------------------------------------------------


def test_the_front_page_lists_queries_running_first(page: PageServer) -> None:
    _, body, headers = ask(page, "/")
    assert body.index(f"{page.folder}query/1") < body.index(f"{page.folder}query/2")
    assert "lost w3" in body
    assert "900 MiB of 1.0 GiB" in body
    assert "not known here, of 1.0 GiB" in body
    assert int(headers["X-Wallaby-Again"]) >= 1000


def test_a_query_of_another_day_has_its_date() -> None:
    now = time.time()
    rows = [QueryRow(str(at), "x", "native", "done", at, 1.0) for at in (now, now - 86_400)]
    answer = Pages(Fixed(rows)).answer("/body/", "n")
    assert answer is not None
    found = re.findall(r'<tr><td class="l">([-0-9 :]+)</td><td class="l q">', answer.body)
    assert [len(began) for began in found] == [len("10:15:02"), len("2026-11-18 10:15:02")]


@pytest.mark.parametrize("path", ["/", "/query/1", "/query/2"])
def test_nothing_of_a_query_is_executed_and_nothing_comes_from_outside(page: PageServer, path: str) -> None:
    status, body, headers = ask(page, path)
    assert status == 200
    assert EVIL not in body
    assert "&lt;script&gt;" in body
    nonces = set(re.findall(r'nonce="([^"]+)"', body))
    (nonce,) = nonces
    policy = headers["Content-Security-Policy"]
    assert f"script-src 'nonce-{nonce}'" in policy
    assert "unsafe" not in policy
    assert not re.search(rf"(?:src|href)=\"(?!{page.folder}|data:image/svg)", body)
    assert " style=" not in body
    assert ask(page, path)[1].count(nonce) == 0, "a nonce is used once"


def test_a_query_has_its_graph_timelines_rates_and_findings(page: PageServer) -> None:
    _, body, _ = ask(page, "/body/query/1")
    for part in (
        "stage graph",
        "timeline of channels",
        "timeline of workers",
        "Losses and recoveries",
        "What cost most",
    ):
        assert part in body, part
    assert "commits over time" in body
    assert ask(page, "/body/query/17")[0] == 404
    assert ask(page, "/elsewhere")[0] == 404


def test_a_query_of_sparks_has_its_reasons(page: PageServer) -> None:
    _, body, _ = ask(page, "/body/query/2")
    assert "Spark: done after 500 ms" in body
    assert "Sin: " in body


def test_a_long_list_is_cut() -> None:
    rows = [QueryRow(str(n), "x", "native", "done", 1.7e9, 1.0) for n in range(5000)]
    answer = Pages(Fixed(rows)).answer("/body/", "n")
    assert answer is not None
    assert answer.body.count("<tr>") < ROWS_MAX + 10
    assert "older ones are not listed" in answer.body


def test_metrics_are_prometheus_text(page: PageServer) -> None:
    _, body, headers = ask(page, "/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE wallaby_task_managers gauge" in body
    assert 'wallaby_task_managers{state="li\\"ve"} 2' in body
    assert "wallaby_kept_results 0" in body
    assert as_text({}) == "\n"
    documented = (Path(__file__).parents[2] / "docs" / "guides" / "observability.md").read_text(
        encoding="utf-8"
    )
    assert all(f"`{name}`" in documented for name in METRICS)


# --- event logs ------------------------------------------------------------------------------------------


def test_event_logs_of_many_engines_are_one_page(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "q.jsonl").write_text((LOGS / "recovery.jsonl").read_text())
    (tmp_path / "bad.jsonl").write_text("no log\n")
    (tmp_path / "open.jsonl").write_text(
        encode(make(EventKind.LOG, 5.0, version=1, query="q-1"))
        + "\n"
        + encode(make(EventKind.PLAN, 6.0, stages=[], links=[], sql="select 7", action="run", line="a.py:1"))
        + "\nhalf a li"
    )
    later = (tmp_path / "open.jsonl").stat().st_mtime + 3600
    source = LogSource(tmp_path, lambda: later)
    rows = {row.key: row for row in source.queries()}
    assert set(rows) == {"one/q.jsonl", "two/q.jsonl", "bad.jsonl", "open.jsonl"}
    assert rows["one/q.jsonl"].state == "done"
    assert rows["one/q.jsonl"].lost
    assert rows["bad.jsonl"].state == "unreadable"
    assert (rows["open.jsonl"].state, rows["open.jsonl"].text) == ("unfinished", "select 7")
    now = {row.key: row.state for row in LogSource(tmp_path, lambda: later - 3590).queries()}
    assert now["open.jsonl"] == "running", "its log grew ten seconds ago"
    page = source.query("two/q.jsonl")
    assert page is not None
    assert page.histories[0].tasks
    bad = source.query("bad.jsonl")
    assert bad is not None
    assert "not an event log" in bad.row.why
    assert source.query("../../etc/passwd") is None
    (tmp_path / "two" / "q.jsonl").unlink()
    assert len(source.queries()) == 3
    (tmp_path / "my runs #2").mkdir()
    (tmp_path / "my runs #2" / "a?b%20.jsonl").write_text((LOGS / "recovery.jsonl").read_text())
    front = Pages(source).answer("/body/", "n", "/f/")
    assert front is not None
    (odd,) = [link for link in re.findall(r'href="/f(/query/[^"]+)"', front.body) if "%23" in link]
    found = Pages(source).answer(odd, "n", "/f/")
    assert found is not None
    assert "stage graph" in found.body
    answer = Pages(source).answer("/query/one/q.jsonl", "n")
    assert answer is not None
    assert "stage graph" in answer.body


def write_busy_logs(directory: Path) -> None:
    """Write the logs of 50 queries of 10,000 tasks each, on 64 TaskManagers."""
    workers = [f"w{n}" for n in range(64)]
    head = [
        make(EventKind.LOG, 100.0, version=1, query="q"),
        make(
            EventKind.PLAN,
            100.0,
            stages=[
                {"label": "scan t", "kind": "read", "channels": 64, "splits": 10_000},
                {"label": "", "kind": "collect", "channels": 1, "splits": 0},
            ],
            links=[{"producer": 0, "consumer": 1, "kind": "main", "routing": "hash"}],
            sql="select 1",
        ),
        make(EventKind.MEMBERS, 100.0, workers=[{"id": w, "host": "h", "pid": 1} for w in workers], hosts={}),
    ]
    tasks = [
        make(
            EventKind.TASK,
            100 + n / 100,
            worker=workers[n % 64],
            seconds=0.5,
            task=f"s0.c{n % 64}.t{n // 64}",
            how="read",
            queued=0.0,
            rows=10,
            bytes=80,
        )
        for n in range(10_000)
    ]
    text = "\n".join(map(encode, (*head, *tasks))) + "\n"
    for number in range(50):
        (directory / f"{number:02}.jsonl").write_text(text)


def test_ten_thousand_tasks_of_64_workers_in_50_queries_stay_usable(tmp_path: Path) -> None:
    write_busy_logs(tmp_path)
    source = LogSource(tmp_path)
    front = Pages(source).answer("/", "n")
    detail = Pages(source).answer("/query/07.jsonl", "n")
    assert front is not None
    assert detail is not None
    assert len(front.body) < 100_000
    assert len(detail.body) < 3_000_000
    for number in range(10):
        source.query(f"{number:02}.jsonl")
    assert len(source._histories) == 4


def test_kept_lines_are_bounded_and_packed() -> None:
    lines = KeptLines(bytes_max=1000)
    for number in range(100):
        lines.add(b'{"n":%d}\n' % number * 5)
    assert lines.left_out > 0
    early, mark = lines.since(0)
    lines.add(b'{"event":"end"}\n', always=True)
    text, end = lines.since(0)
    assert len(text) < 1100
    assert text == early + b'{"event":"end"}\n'
    lines.pack()
    assert lines.since(mark) == (b'{"event":"end"}\n', end), "whoever looked before sees what came after"
    assert lines.since(0) == (text, end)
    assert lines.since(end) == (b"", end)
    lines.add(b"late\n", always=True)
    assert lines.since(end)[0] == b"late\n"
    assert all(json.loads(line) for line in text.splitlines())


def test_a_page_that_was_looked_at_before_the_end_shows_the_end() -> None:
    seen = Observation(QueryId("q-1"), PLAN, detailed=True, lines=KeptLines())
    seen.began({}, {})
    during = seen.history()
    assert during is not None
    assert during.outcome == "unfinished"
    seen.ended(None)
    seen.close()
    after = seen.history()
    assert after is not None
    assert after.outcome == "done"
    assert len(after.stages) == len(PLAN.labels)
