"""The report: one self-contained HTML page, without scripts and without external fonts or images."""

from __future__ import annotations

import time
from html import escape
from typing import Final

from wallaby.observe.graph_svg import draw_graph
from wallaby.observe.history import History
from wallaby.observe.timeline_svg import channel_timeline, worker_timeline
from wallaby.observe.units import counted, duration, number, size

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2530; --dim: #5f6b7a; --paper: #fff; --stripe: #f4f6f8; --line: #d5dbe2;
  --read: #3b82c4; --execute: #3f9d5a; --retrace: #e08a1e; --reread: #8e5bc0; --bad: #cc3b3b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e9ee; --dim: #9aa6b4; --paper: #14181d; --stripe: #1b2129;
  --line: #333c47; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1220px; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
p.error { border-left: 4px solid var(--bad); padding: .5rem 1rem; background: var(--stripe); white-space: pre-wrap }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0 }
.facts b { display: block; font-size: 1.1rem }
.facts span { color: var(--dim) } .scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% } th, td { padding: .25rem .6rem; text-align: right;
  border-bottom: 1px solid var(--line) } th { color: var(--dim); font-weight: 500 }
td.l, th.l { text-align: left }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif } svg .small { fill: var(--dim); font-size: 11px }
svg .name { font-weight: 600 } svg .loss { fill: var(--bad); font-size: 11px }
.box { fill: var(--stripe); stroke: var(--line) } .box.read { stroke: var(--read) }
.box.execute { stroke: var(--execute) }
.edge { fill: none; stroke: var(--dim); stroke-width: 1.4 } .edge.side { stroke-dasharray: 4 3 }
.tip { fill: var(--dim) }
.tick { stroke: var(--line) } .stripe { fill: var(--stripe) } .frozen { fill: var(--bad); opacity: .35 }
.read.bar, .key.read { fill: var(--read); background: var(--read) }
.execute.bar, .key.execute { fill: var(--execute); background: var(--execute) }
.retrace.bar, .key.retrace { fill: var(--retrace); background: var(--retrace) }
.re-read.bar, .key.re-read { fill: var(--reread); background: var(--reread) }
.failed.bar, .key.failed { fill: var(--bad); background: var(--bad) }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .3em 0 1em }
footer { color: var(--dim); margin-top: 2rem }
"""
_OUTCOMES: Final = {
    "done": "finished",
    "failed": "failed",
    "cancelled": "was cancelled",
    "unfinished": "has no end in this log: it is still running, or its driver died",
}
_KEY: Final = "".join(
    f'<span class="key {style}"></span>{text}'
    for style, text in (
        ("read", "read"),
        ("execute", "execute"),
        ("retrace", "retrace, after a loss"),
        ("re-read", "re-read, after a loss"),
        ("failed", "failed"),
    )
)


def make_page(history: History) -> str:
    """The whole page."""
    title = f"Query {history.query}"
    sections = (
        _summary(history),
        _recoveries(history),
        f'<h2>Stages</h2><div class="scroll">{draw_graph(history)}</div>',
        f'<div class="scroll">{_stage_table(history)}</div>',
        f'<h2>Channels over time</h2><p>{_KEY}</p><div class="scroll">{channel_timeline(history)}</div>',
        f'<h2>Workers over time</h2><div class="scroll">{worker_timeline(history)}</div>',
        _footer(history),
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</body></html>\n"
    )


def _summary(history: History) -> str:
    totals = history.totals()
    again = sum(each.retraced + each.reread for each in totals)
    facts = [
        (duration(history.seconds), "from start to end"),
        (str(len(history.workers)), "workers"),
        (number(sum(each.tasks for each in totals)), "tasks executed"),
        (number(history.commits), "commits"),
        (size(history.pushed_bytes), f"sent in {counted(history.pushes, 'push').replace('pushs', 'pushes')}"),
        (duration(sum(each.seconds for each in totals)), "kernel time"),
        (duration(sum(each.queued_seconds for each in totals)), "waited for a kernel thread"),
        (str(len(history.lost)), "workers lost"),
        (number(again), "tasks repeated"),
    ]
    spilled = sum(each.spilled_bytes for each in totals)
    if spilled:
        facts.append((size(spilled), "spilled"))
    if short := sum(history.short_of_memory.get(step, 0) for step in ("shed", "spill", "end", "leave")):
        facts.append((str(short), "steps against a shortage of memory"))
    outcome = escape(_OUTCOMES.get(history.outcome, history.outcome))
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(history.started))
    body = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for value, name in facts)
    error = ""
    if history.error:
        condition = (
            f"{history.condition}: " if history.condition and history.condition not in history.error else ""
        )
        error = f'<p class="error">{escape(condition + history.error)}</p>'
    return (
        f"<h1>Query {escape(history.query)} {outcome}</h1><p>{when}</p>{error}"
        f'<div class="facts">{body}</div>{_warnings(history)}'
    )


def _warnings(history: History) -> str:
    found = []
    if history.dropped:
        found.append(
            f"{counted(history.dropped, 'event')} were dropped for lack of room and are missing here."
        )
    if history.cut:
        found.append("The log reached its limit; later events of workers are missing here.")
    if history.lost:
        found.append("What a lost worker did in its last moments may be missing here.")
    return "".join(f"<p>{escape(text)}</p>" for text in found)


def _recoveries(history: History) -> str:
    if not history.recoveries:
        return ""
    rows = []
    for recovery in history.recoveries:
        who = ", ".join(f"{w} on {h}" if h else w for w, h in recovery.lost) or ", ".join(recovery.draining)
        still = "—" if recovery.resumed_at is None else duration(recovery.resumed_at - recovery.at)
        rows.append(
            f'<tr><td class="l">{duration(max(recovery.at - history.started, 0.0))}</td>'
            f'<td class="l">{escape(who)}</td><td>{len(recovery.rewound)}</td><td>{len(recovery.moved)}</td>'
            f"<td>{number(recovery.delivered_again)}</td><td>{number(recovery.read_again)}</td><td>{still}</td></tr>"
        )
    return (
        '<h2>Losses and recoveries</h2><table><tr><th class="l">after</th><th class="l">lost</th>'
        "<th>channels rewound</th><th>readers moved</th><th>outputs delivered again</th>"
        f"<th>outputs read again</th><th>frozen for</th></tr>{''.join(rows)}</table>"
    )


def _stage_table(history: History) -> str:
    rows = []
    for at, (stage, totals) in enumerate(zip(history.stages, history.totals(), strict=True)):
        if stage.kind == "collect":
            continue
        cells = (
            number(stage.channels),
            number(stage.splits) if stage.splits else "",
            number(totals.tasks),
            number(totals.input_rows) if totals.input_rows else "",
            number(totals.rows),
            size(totals.bytes),
            duration(totals.seconds),
            duration(totals.queued_seconds),
            number(totals.retraced + totals.reread) if totals.retraced + totals.reread else "",
            size(totals.spilled_bytes) if totals.spilled_bytes else "",
        )
        body = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><td class="l">s{at} {escape(stage.label)}</td>{body}</tr>')
    heads = "".join(
        f"<th>{text}</th>"
        for text in (
            "channels",
            "splits",
            "tasks",
            "rows in",
            "rows out",
            "bytes out",
            "kernel time",
            "queued",
            "repeated",
            "spilled",
        )
    )
    return f'<table><tr><th class="l">stage</th>{heads}</tr>{"".join(rows)}</table>'


def _footer(history: History) -> str:
    refused = ", ".join(f"{count} {verdict}" for verdict, count in sorted(history.refused.items()))
    text = f"{counted(history.commit_calls, 'call')} committed tasks, in {duration(history.commit_seconds)} in all."
    if refused:
        text += f" Refused: {refused}."
    return f"<footer>{escape(text)} Times are those of each worker's own clock.</footer>"
