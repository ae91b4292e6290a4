"""The pages: a list of queries with the engine around it, one page for each query, and figures for Prometheus.

A page is a shell with a script of a few lines, which asks for the page's body again and again and puts it in place. The
server says when to ask again, so that looking costs little. Everything that comes from a query is escaped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Final
from urllib.parse import quote, unquote

from wallaby.observe.about import shortened
from wallaby.observe.page import findings_list, query_body
from wallaby.observe.style import STYLE
from wallaby.observe.units import counted, duration, number, size
from wallaby.ui.metrics import CONTENT_TYPE, as_text
from wallaby.ui.server import PageAnswer
from wallaby.ui.source import Overview, QueryPage, QueryRow, Source, WorkerRow

#: So many queries are listed.
ROWS_MAX: Final = 200
METER: Final = 160
_SCRIPT: Final = """
const body = document.getElementById("body");
const folder = document.body.dataset.folder;
if (location.search) history.replaceState(null, "", location.pathname);
let shown = body.innerHTML;
async function again() {
  let pause = 5000;
  try {
    const answer = await fetch(folder + "body/" + location.pathname.slice(folder.length), {credentials: "same-origin"});
    pause = Number(answer.headers.get("X-Wallaby-Again")) || pause;
    if (answer.ok) {
      const text = await answer.text();
      const selecting = String(getSelection());
      if (text !== shown && !selecting) { body.innerHTML = text; shown = text; }
      document.body.classList.remove("gone");
    } else if (answer.status === 403) { return; }
  } catch (gone) { document.body.classList.add("gone"); }
  setTimeout(again, document.hidden ? 10 * pause : pause);
}
setTimeout(again, 1000);
"""
#: A white W on blue, so that the tab is found among others. It is in the page, because nothing comes from outside.
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='3' fill='%231f5f8b'/%3E"
    "%3Cpath d='M2 4l3 8 3-6 3 6 3-8' fill='none' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E"
)
_GONE: Final = "#gone { display: none } .gone #gone { display: block }"


class Pages:
    """All pages of one source."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def answer(self, path: str, nonce: str, folder: str = "/") -> PageAnswer | None:
        """The page or the body of a page under a path in the folder of all pages."""
        if path == "/metrics":
            return PageAnswer(as_text(self._source.figures()), CONTENT_TYPE)
        is_body = path == "/body" or path.startswith("/body/")
        body = self._body(path.removeprefix("/body") if is_body else path, folder)
        if body is None or is_body:
            return None if body is None else PageAnswer(body)
        return PageAnswer(_shell(self._source.overview().title, body, nonce, folder))

    def _body(self, path: str, folder: str) -> str | None:
        if path in ("", "/"):
            return _front(self._source.overview(), self._source.queries(), folder)
        if path.startswith("/query/"):
            found = self._source.query(unquote(path.removeprefix("/query/")))
            return None if found is None else _query(found, folder)
        return None


def _shell(title: str, body: str, nonce: str, folder: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="{_ICON}"><title>{escape(title)}</title>'
        f'<style nonce="{nonce}">{STYLE}{_GONE}</style></head><body data-folder="{escape(folder)}">'
        '<p id="gone" class="bad">The driver does not answer any more. This is what it said last.</p>'
        f'<div id="body">{body}</div><script nonce="{nonce}">{_SCRIPT}</script></body></html>\n'
    )


def _front(overview: Overview, queries: Sequence[QueryRow], folder: str) -> str:
    facts = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for value, name in overview.facts
    )
    kept = "".join(f"<li>{escape(query)}: {escape(text)}</li>" for query, text in overview.kept)
    return "\n".join(
        part
        for part in (
            f'<h1>{escape(overview.title)}</h1><div class="facts">{facts}</div>',
            _workers(overview.workers, overview.budget_bytes),
            f"<h2>Results that stay</h2><ul>{kept}</ul>" if kept else "",
            _queries(queries, folder),
        )
        if part
    )


def _workers(workers: Sequence[WorkerRow], budget_bytes: int) -> str:
    if not workers:
        return ""
    rows = "".join(
        f'<tr><td class="l">{escape(worker.id)}</td><td class="l">{escape(worker.host)}</td><td>{worker.pid}</td>'
        f'<td class="l">{escape(worker.state)}</td><td class="l">{_meter(worker.used_bytes, budget_bytes)}</td></tr>'
        for worker in workers
    )
    return (
        '<h2>TaskManagers</h2><div class="scroll"><table><tr><th class="l">id</th><th class="l">host</th>'
        f'<th>process</th><th class="l">state</th><th class="l">memory, of its budget</th></tr>{rows}</table></div>'
    )


def _meter(used: int, budget: int) -> str:
    if not used or not budget:  # of a process on another host
        return f"not known here, of {size(budget)}" if budget else ""
    share = min(used / budget, 1.0)
    style = "used high" if share > 0.9 else "used"
    return (
        f'<svg viewBox="0 0 {METER} 12" width="{METER}" height="12" role="img" aria-label="{share:.0%}">'
        f'<rect class="meter" x="0.5" y="0.5" width="{METER - 1}" height="11" rx="2"/>'
        f'<rect class="{style}" x="1" y="1" width="{share * (METER - 2):.0f}" height="10" rx="2"/></svg> '
        f"{size(used)} of {size(budget)}"
    )


def _queries(queries: Sequence[QueryRow], folder: str) -> str:
    if not queries:
        return "<h2>Queries</h2><p>None yet.</p>"
    ordered = sorted(queries, key=lambda row: row.state != "running")
    rows = "".join(_query_row(row, folder) for row in ordered[:ROWS_MAX])
    more = (
        f"<p>{number(len(queries) - ROWS_MAX)} older ones are not listed.</p>"
        if len(queries) > ROWS_MAX
        else ""
    )
    return (
        f"<h2>{counted(len(queries), 'quer')}</h2>".replace("quers", "queries").replace("quer<", "query<")
        + '<div class="scroll"><table><tr><th class="l">began</th><th class="l">query</th><th class="l">ran</th>'
        f'<th>time</th><th>rows</th><th class="l">why</th></tr>{rows}</table></div>{more}'
    )


def _query_row(row: QueryRow, folder: str) -> str:
    link = escape(f"{folder}query/{quote(row.key)}")
    began = _moment(row.started)
    bad = ' class="bad"' if row.state in ("failed", "unfinished") else ' class="state"'
    state = "" if row.state == "done" else f" <span{bad}>{escape(row.state)}</span>"
    lost = f' <span class="bad">lost {escape(", ".join(row.lost))}</span>' if row.lost else ""
    rows = "" if row.rows is None else number(row.rows)
    return (
        f'<tr><td class="l">{began}</td><td class="l q"><a href="{link}">{escape(row.text)}</a></td>'
        f'<td class="l"><span class="{escape(row.where)}">{escape(row.where)}</span>{state}{lost}</td>'
        f'<td>{duration(row.seconds)}</td><td>{rows}</td><td class="l why">{escape(shortened(row.why, 160))}</td></tr>'
    )


def _moment(seconds: float) -> str:
    """A time of day, or if it was not today the day, too."""
    then = time.localtime(seconds)
    is_today = then[:3] == time.localtime()[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", then)


def _query(page: QueryPage, folder: str) -> str:
    back = f'<nav><a href="{escape(folder)}">all queries</a></nav>'
    if page.histories:
        is_running = page.row.state == "running"
        first, *others = (
            replace(each, outcome="running") if is_running and each.outcome == "unfinished" else each
            for each in page.histories
        )
        bodies = [query_body(first, page.findings), *(query_body(each, ()) for each in others)]
        return back + "<hr>".join(bodies)
    row = page.row
    rows = "" if row.rows is None else f", {counted(row.rows, 'row')}"
    return (
        f"{back}<h1>{escape(row.where)}: {escape(row.state)} after {duration(row.seconds)}{rows}</h1>"
        + (f"<pre>{escape(page.sql)}</pre>" if page.sql else f"<p>{escape(row.text)}</p>")
        + (f'<p class="error">{escape(row.why)}</p>' if row.why else "")
        + findings_list(page.findings)
    )
