"""Draw timelines as SVG: a row per channel or worker, a bar per task, and a line where a worker was lost.

Bars that are closer than a pixel are drawn as one, and the number of rows is limited, so the page stays readable and
small for a query of any length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Final, TypeVar

from wallaby.lineage.graph import StageKind
from wallaby.observe.history import History, TaskRun
from wallaby.observe.units import duration, number, size

WIDTH: Final = 1180
LEFT: Final = 190
RIGHT: Final = 14
TOP: Final = 34
ROW: Final = 16
ROWS_MAX: Final = 240
TICKS: Final = 8
#: Bars closer to each other than this are merged, and only bars narrower than this; twice as much as long as there are
#: more bars than a browser shows without effort.
MERGE_PIXELS: Final = 0.5
SMALL_PIXELS: Final = 2.0
BARS_MAX: Final = 10_000
BAR_PIXELS_MIN: Final = 1.0

Key = TypeVar("Key")


@dataclass(slots=True)
class _Bar:
    """One task, or several that are too close to distinguish."""

    first: TaskRun
    start: float
    end: float
    style: str
    count: int = 1
    rows: int = 0
    bytes: int = 0


def channel_timeline(history: History) -> str:
    """A row for every channel, stage by stage."""
    names = {
        (stage, channel): f"s{stage}.c{channel}"
        for stage, info in enumerate(history.stages)
        if info.kind is not StageKind.COLLECT
        for channel in range(info.channels)
    }
    for run in history.tasks:
        names.setdefault((run.stage, run.channel), f"s{run.stage}.c{run.channel}")
    rows = {key: names[key] for key in sorted(names)}
    return _draw(history, rows, lambda run: (run.stage, run.channel), "timeline of channels")


def worker_timeline(history: History) -> str:
    """A row for every worker; bars of tasks that ran at the same time overlap."""
    rows = {
        worker: f"{worker}{f' on {host}' if host else ''}"
        for worker, (host, _) in sorted(history.workers.items())
    }
    return _draw(history, rows, lambda run: run.worker, "timeline of workers")


def _draw(history: History, rows: dict[Key, str], key_of: Callable[[TaskRun], Key], label: str) -> str:
    drawn = dict(list(rows.items())[:ROWS_MAX])
    height = TOP + len(drawn) * ROW + 24
    scale = _Scale(history.started, max(history.seconds, 0.001))
    box = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [f'<svg class="timeline" {box} role="img" aria-label="{label}">', *_ticks(scale, height)]
    by_row: dict[Key, list[TaskRun]] = {key: [] for key in drawn}
    for run in history.tasks:
        if (key := key_of(run)) in by_row:
            by_row[key].append(run)
    merged = _few(by_row, scale)
    for at, (key, name) in enumerate(drawn.items()):
        y = TOP + at * ROW
        if at % 2 == 0:
            parts.append(f'<rect class="stripe" x="0" y="{y}" width="{WIDTH}" height="{ROW}"/>')
        parts.append(f'<text class="small" x="6" y="{y + 11.5}">{escape(name)}</text>')
        parts += [_bar(bar, y, scale) for bar in merged[key]]
    parts += _marks(history, scale, height)
    if len(rows) > len(drawn):
        text = f"{len(rows) - len(drawn)} more rows are not drawn"
        parts.append(f'<text class="small" x="6" y="{height - 8}">{text}</text>')
    return "".join((*parts, "</svg>"))


@dataclass(frozen=True, slots=True)
class _Scale:
    start: float
    seconds: float

    def x(self, at: float) -> float:
        share = min(max((at - self.start) / self.seconds, 0.0), 1.0)
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def _ticks(scale: _Scale, height: int) -> list[str]:
    parts = []
    for at in range(TICKS + 1):
        x = scale.x(scale.start + scale.seconds * at / TICKS)
        text = duration(scale.seconds * at / TICKS) if at else "0"
        anchor = "end" if at == TICKS else "middle"
        parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - 20}"/>')
        parts.append(f'<text class="small" text-anchor="{anchor}" x="{x:.1f}" y="{TOP - 8}">{text}</text>')
    return parts


def _style(run: TaskRun) -> str:
    return "failed" if run.error else run.how.value


def _few(by_row: dict[Key, list[TaskRun]], scale: _Scale) -> dict[Key, list[_Bar]]:
    """The bars of each row, merged until there are few enough."""
    times = 1.0
    while True:
        merged = {key: _merged(runs, scale, times) for key, runs in by_row.items()}
        if sum(map(len, merged.values())) <= BARS_MAX or times > WIDTH:
            return merged
        times *= 2


def _merged(runs: list[TaskRun], scale: _Scale, times: float) -> list[_Bar]:
    bars: list[_Bar] = []
    for run in runs:
        style, end = _style(run), run.at + run.seconds
        last = bars[-1] if bars else None
        near = last is not None and scale.x(run.at) - scale.x(last.end) < MERGE_PIXELS * times
        small = scale.x(end) - scale.x(run.at) < SMALL_PIXELS * times
        if last is not None and near and small and last.style == style and last.first.worker == run.worker:
            last.end = max(last.end, end)
            last.count += 1
            last.rows += run.rows
            last.bytes += run.bytes
        else:
            bars.append(_Bar(run, run.at, end, style, 1, run.rows, run.bytes))
    return bars


def _bar(bar: _Bar, y: float, scale: _Scale) -> str:
    x = scale.x(bar.start)
    width = max(scale.x(bar.end) - x, BAR_PIXELS_MIN)
    name = bar.first.name + (f" and {number(bar.count - 1)} more" if bar.count > 1 else "")
    title = (
        f"{name}: {bar.style} on {bar.first.worker}, {duration(bar.end - bar.start)}, "
        f"{number(bar.rows)} rows, {size(bar.bytes)}"
    )
    return (
        f'<rect class="bar {bar.style}" x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 4}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _marks(history: History, scale: _Scale, height: int) -> list[str]:
    """Where workers were lost, and for how long the query was frozen."""
    parts = []
    for recovery in history.recoveries:
        x = scale.x(recovery.at)
        end = scale.x(recovery.resumed_at if recovery.resumed_at is not None else history.ended)
        who = ", ".join(f"{worker} on {host}" if host else worker for worker, host in recovery.lost)
        text = f"lost {who}" if who else "draining " + ", ".join(recovery.draining)
        after = (
            ""
            if recovery.resumed_at is None
            else f", back after {duration(recovery.resumed_at - recovery.at)}"
        )
        parts.append(
            f'<rect class="frozen" x="{x:.1f}" y="{TOP - 4}" width="{max(end - x, 1.5):.1f}" '
            f'height="{height - TOP - 16}"><title>{escape(text + after)}</title></rect>'
        )
        anchor = "end" if x > WIDTH * 0.7 else "start"
        parts.append(
            f'<text class="loss" text-anchor="{anchor}" x="{x:.1f}" y="{TOP - 20}">{escape(text + after)}</text>'
        )
    return parts
