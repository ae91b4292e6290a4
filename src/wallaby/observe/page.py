"""The report: one self-contained HTML page, without scripts and without external fonts or images."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from typing import Final

from wallaby.lineage.graph import StageKind
from wallaby.observe.finding import Finding, found_in_log
from wallaby.observe.graph_svg import draw_graph
from wallaby.observe.history import History
from wallaby.observe.rates_svg import rates
from wallaby.observe.style import KEY, STYLE
from wallaby.observe.timeline_svg import channel_timeline, worker_timeline
from wallaby.observe.units import counted, duration, number, size

_OUTCOMES: Final = {
    "done": "finished",
    "failed": "failed",
    "cancelled": "was cancelled",
    "running": "is running",
    "unfinished": "has no end in this log: it is still running, or its driver died",
}


def make_page(history: History) -> str:
    """The whole page."""
    title = f"Query {history.query}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        + query_body(history, found_in_log(history))
        + "\n</body></html>\n"
    )


def query_body(history: History, findings: Sequence[Finding]) -> str:
    """Everything about one query, for its own page."""
    sections = (
        _summary(history),
        _text(history),
        findings_list(findings),
        _recoveries(history),
        f'<h2>Stages</h2><div class="scroll">{draw_graph(history)}</div>',
        f'<div class="scroll">{_stage_table(history)}</div>',
        f'<h2>Channels over time</h2><p>{KEY}</p><div class="scroll">{channel_timeline(history)}</div>',
        f'<h2>Workers over time</h2><div class="scroll">{worker_timeline(history)}</div>',
        f'<h2>Rates</h2><div class="scroll">{rates(history)}</div>',
        _memory(history),
        _footer(history),
    )
    return "\n".join(section for section in sections if section)


def findings_list(findings: Sequence[Finding]) -> str:
    """The findings of a query as a list: what cost most."""
    if not findings:
        return ""
    items = "".join(
        f"<li><b>{finding.share:.0%}</b> of the time: {escape(finding.what)} <i>{escape(finding.advice)}</i></li>"
        for finding in findings
    )
    return f'<h2>What cost most</h2><ol class="findings">{items}</ol>'


def _text(history: History) -> str:
    about = history.about
    where = f"<p>{escape(about.action)} at {escape(about.line)}</p>" if about.line else ""
    return (f"<pre>{escape(about.sql)}</pre>" if about.sql else "") + where


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
        '<h2>Losses and recoveries</h2><div class="scroll"><table><tr><th class="l">after</th><th class="l">lost</th>'
        "<th>channels rewound</th><th>readers moved</th><th>outputs delivered again</th>"
        f"<th>outputs read again</th><th>frozen for</th></tr>{''.join(rows)}</table></div>"
    )


def _memory(history: History) -> str:
    """What workers spilled, and when they were short of memory."""
    names = sorted({*history.spilled_by, *(worker for _, worker, *_ in history.memory_steps)})
    if not names:
        return ""
    rows = []
    for name in names:
        steps = [
            (step, used, limit) for _, worker, step, used, limit in history.memory_steps if worker == name
        ]
        highest = max(((used, limit) for _, used, limit in steps), default=None)
        rows.append(
            f'<tr><td class="l">{escape(name)}</td><td>{size(history.spilled_by.get(name, 0))}</td>'
            f"<td>{len(steps)}</td>"
            f"<td>{'' if highest is None else f'{size(highest[0])} of {size(highest[1])}'}</td></tr>"
        )
    return (
        '<h2>Memory</h2><div class="scroll"><table><tr><th class="l">worker</th><th>spilled</th>'
        f"<th>steps against a shortage</th><th>highest use</th></tr>{''.join(rows)}</table></div>"
    )


def _stage_table(history: History) -> str:
    rows = []
    for at, (stage, totals) in enumerate(zip(history.stages, history.totals(), strict=True)):
        if stage.kind is StageKind.COLLECT:
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
