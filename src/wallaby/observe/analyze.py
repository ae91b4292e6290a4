"""Describe what a query did, stage by stage, as text: the second half of `explain` in the mode analyze."""

from __future__ import annotations

from wallaby.observe.observation import QueryStats
from wallaby.observe.units import counted, duration, number, size

_HEADS = (
    "stage",
    "tasks",
    "rows in",
    "rows out",
    "bytes out",
    "kernel time",
    "queued",
    "repeated",
    "spilled",
)


def analyzed(stats: QueryStats) -> str:
    """A line for the whole query and a table of its stages."""
    sent = f"{size(stats.exchanged_bytes)} exchanged, {size(stats.pushed_bytes)} sent between workers"
    lines = [f"ran in {duration(stats.seconds)}: {counted(stats.commits, 'commit')}, {sent}"]
    if stats.recoveries:
        lines.append(
            f"lost {', '.join(stats.lost_workers) or 'nobody'}: {counted(stats.channels_rewound, 'channel')} rewound, "
            f"{counted(stats.outputs_delivered_again, 'output')} delivered again, "
            f"{stats.outputs_read_again:,} read again, frozen for {duration(stats.frozen_seconds)}"
        )
    rows = [_HEADS]
    for at, totals in enumerate(stats.stages[:-1]):
        again = totals.retraced + totals.reread
        rows.append(
            (
                f"s{at}",
                number(totals.tasks),
                number(totals.input_rows),
                number(totals.rows),
                size(totals.bytes),
                duration(totals.seconds),
                duration(totals.queued_seconds),
                number(again),
                size(totals.spilled_bytes),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines += [
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(lines) + "\n"
