"""Draw rates over time as SVG: commits per second, and outputs for which a consumer had no room (back-pressure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wallaby.observe.history import History
from wallaby.observe.units import duration, number

WIDTH: Final = 1180
HEIGHT: Final = 70
LEFT: Final = 190
RIGHT: Final = 14
BUCKETS: Final = 120


def rates(history: History) -> str:
    """The two rates, one below the other."""
    refused = ((at, outputs - held) for at, outputs, held in history.push_times)
    return _bars(history, "commits", history.commit_times, "rate") + _bars(
        history, "outputs without room", refused, "refused"
    )


def _bars(history: History, name: str, events: Iterable[tuple[float, int]], style: str) -> str:
    seconds = max(history.seconds, 0.001)
    counts = [0] * BUCKETS
    for at, count in events:
        counts[min(max(int((at - history.started) / seconds * BUCKETS), 0), BUCKETS - 1)] += count
    highest = max(counts)
    per_second = highest / (seconds / BUCKETS)
    step = (WIDTH - LEFT - RIGHT) / BUCKETS
    bars = "".join(
        f'<rect class="{style}" x="{LEFT + at * step:.1f}" y="{HEIGHT - 12 - count / highest * 50:.1f}" '
        f'width="{step - 0.6:.1f}" height="{count / highest * 50:.1f}"/>'
        for at, count in enumerate(counts)
        if count
    )
    most = f"at most {per_second:,.0f} a second" if highest else "none"
    return (
        f'<svg class="rates" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{name} over time"><text class="small" x="6" y="24">{name}</text>'
        f'<text class="small" x="6" y="40">{number(sum(counts))} in all</text>'
        f'<text class="small" x="6" y="56">{most}</text>'
        f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - 12}" y2="{HEIGHT - 12}"/>{bars}'
        f'<text class="small" text-anchor="end" x="{WIDTH - RIGHT}" y="{HEIGHT - 1}">{duration(seconds)}</text></svg>'
    )
