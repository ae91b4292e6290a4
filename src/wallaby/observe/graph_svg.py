"""Draw the stage graph as SVG: one box per stage, readers at the top, the client at the bottom."""

from __future__ import annotations

from html import escape
from typing import Final

from wallaby.lineage.graph import LinkKind, StageKind
from wallaby.observe.event_batch import StageTotals
from wallaby.observe.history import History, LinkInfo, StageInfo
from wallaby.observe.units import counted, duration, number, size

BOX_WIDTH: Final = 290
BOX_HEIGHT: Final = 72
GAP_X: Final = 26
GAP_Y: Final = 44
MARGIN: Final = 12
LABEL_CHARACTERS: Final = 40
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" class="tip"/></marker></defs>'
)


def draw_graph(history: History) -> str:
    """The graph with each stage's figures."""
    stages, totals = history.stages, history.totals()
    if not stages:
        return ""
    rows = _rows(len(stages), history.links)
    widest = max(len(row) for row in rows)
    width = MARGIN * 2 + widest * BOX_WIDTH + (widest - 1) * GAP_X
    height = MARGIN * 2 + len(rows) * BOX_HEIGHT + (len(rows) - 1) * GAP_Y
    places: dict[int, tuple[float, float]] = {}
    for at, row in enumerate(rows):
        inset = (width - len(row) * BOX_WIDTH - (len(row) - 1) * GAP_X) / 2
        for column, stage in enumerate(row):
            places[stage] = (inset + column * (BOX_WIDTH + GAP_X), MARGIN + at * (BOX_HEIGHT + GAP_Y))
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [f'<svg class="graph" {box} role="img" aria-label="stage graph">', _TIP]
    parts += [_edge(link, places) for link in history.links]
    whole = sum(each.seconds for each in totals)
    hottest = max(range(len(stages)), key=lambda at: totals[at].seconds) if whole else None
    parts += [
        _box(at, stage, totals[at], places[at], totals[at].seconds / whole if at == hottest else 0.0)
        for at, stage in enumerate(stages)
    ]
    return "".join((*parts, "</svg>"))


def _rows(count: int, links: tuple[LinkInfo, ...]) -> list[list[int]]:
    """Stages by their distance from the client, farthest first."""
    depth = [0] * count
    for stage in reversed(range(count)):
        for link in links:
            if link.producer == stage:
                depth[stage] = max(depth[stage], depth[link.consumer] + 1)
    rows = [[stage for stage in range(count) if depth[stage] == at] for at in range(max(depth) + 1)]
    return rows[::-1]


def _edge(link: LinkInfo, places: dict[int, tuple[float, float]]) -> str:
    x1, y1 = places[link.producer][0] + BOX_WIDTH / 2, places[link.producer][1] + BOX_HEIGHT
    x2, y2 = places[link.consumer][0] + BOX_WIDTH / 2, places[link.consumer][1] - 2
    middle = (y1 + y2) / 2
    style = "edge side" if link.kind is LinkKind.SIDE else "edge"
    text = f"{link.routing}, whole" if link.kind is LinkKind.SIDE else link.routing
    return (
        f'<path class="{style}" d="M{x1:.1f} {y1:.1f} C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} '
        f'{x2:.1f} {y2:.1f}" marker-end="url(#tip)"/>'
        f'<text class="small" x="{(x1 + x2) / 2 + 6:.1f}" y="{middle:.1f}">{escape(text)}</text>'
    )


def _box(at: int, stage: StageInfo, totals: StageTotals, place: tuple[float, float], hot: float) -> str:
    """A stage; `hot` is its share of the time if it takes most of all."""
    x, y = place
    title = f"s{at} {stage.label}"
    shown = title if len(title) <= LABEL_CHARACTERS else title[: LABEL_CHARACTERS - 1] + "…"
    channels = counted(stage.channels, "channel")
    if stage.splits:
        channels += f" · {counted(stage.splits, 'split')}"
    work = f"{counted(totals.tasks, 'task')} · {duration(totals.seconds)}"
    if hot:
        work += f" · {hot:.0%} of the time"
    style = f"{stage.kind.value} hot" if hot else stage.kind.value
    rows = f"{number(totals.rows)} rows · {size(totals.bytes)}"
    lines = (channels, work, rows) if stage.kind is not StageKind.COLLECT else ("the client",)
    body = "".join(
        f'<text class="small" x="{x + 10:.1f}" y="{y + 34 + 14 * n:.1f}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    return (
        f'<g><title>{escape(title)}</title><rect class="box {escape(style)}" x="{x:.1f}" y="{y:.1f}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{x + 10:.1f}" y="{y + 18:.1f}">{escape(shown)}</text>{body}</g>'
    )
