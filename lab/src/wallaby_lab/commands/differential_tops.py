"""Compare actions and Python functions on top of native queries with Spark alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from wallaby.commands.terminal import note, say

if TYPE_CHECKING:
    from wallaby_lab.differential.tops.campaign import TopTally

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class TopsRun:
    """What to run: random queries of some seeds, or TPC-H if there are none."""

    seeds: range
    scale: float
    save: Path | None
    minutes: float
    commit: str
    processes: int
    keep: Path
    #: Of TPC-H, only what has no figures yet.
    rest: bool


def run(wanted: TopsRun) -> None:
    """Run queries with tops; the program ends with 1 if something is different or was left behind."""
    with tempfile.TemporaryDirectory(prefix="wallaby-differential-") as directory:
        tally = _random(wanted, Path(directory)) if wanted.seeds else _tpch(wanted, Path(directory))
    _tell(tally)
    if tally.differences:
        raise typer.Exit(1)


def in_time(parts: Iterable[Part], minutes: float) -> Iterator[Part]:
    """Yield parts until a time limit in minutes; 0: no limit."""
    began = time.monotonic()
    for part in parts:
        yield part
        if minutes and time.monotonic() - began >= minutes * 60:
            return


def _random(wanted: TopsRun, directory: Path) -> TopTally:
    from wallaby_lab.commands.differential_work import RandomTopWork
    from wallaby_lab.differential import campaign, report
    from wallaby_lab.differential.crew import shared_out
    from wallaby_lab.differential.tops.campaign import TopTally

    #: Results that arrived before those of earlier seeds, by their first seeds.
    early: dict[int, tuple[range, TopTally]] = {}
    total, end = TopTally(), wanted.seeds.start
    parts = in_time(campaign.parts(wanted.seeds), wanted.minutes)
    work = RandomTopWork(directory, wanted.keep)
    for part, found in shared_out(work, parts, note, wanted.processes):
        early[part.start] = (part, found)
        while end in early:
            some, those = early.pop(end)
            total.add(those)
            end = some.stop
        note(f"seeds up to {part.stop - 1}: {dict(found.how)}")
        if wanted.save is not None and end > wanted.seeds.start:
            figures = {"seeds": [wanted.seeds.start, end], **report.top_figures(total, wanted.commit)}
            report.write(wanted.save, report.with_queries(report.read(wanted.save), report.TOPS, figures))
    return total


def _tpch(wanted: TopsRun, directory: Path) -> TopTally:
    from wallaby_lab.commands.differential_work import TpchTopWork
    from wallaby_lab.differential import report
    from wallaby_lab.differential.crew import shared_out
    from wallaby_lab.differential.tops.blocks import tpch_blocks
    from wallaby_lab.differential.tops.campaign import TopTally

    total = TopTally()
    blocks = tpch_blocks()
    if wanted.rest and wanted.save is not None:
        blocks = report.without_tops_yet(report.read(wanted.save), blocks)
    parts = in_time(blocks, wanted.minutes)
    work = TpchTopWork(directory, wanted.scale)
    for block, found in shared_out(work, parts, note, wanted.processes):
        total.add(found)
        note(f"TPC-H {block}: {dict(found.how)}")
        if wanted.save is not None:
            known = report.read(wanted.save)
            report.write(wanted.save, report.with_tpch_tops(known, block, wanted.scale, found, wanted.commit))
    return total


def _tell(found: TopTally) -> None:
    for _, what, text in found.differences:
        say(f"{what}\n{text}")
    for reason, count in found.reasons.most_common(20):
        say(f"{count} on Spark: {reason}")
    for what, count in found.raised.most_common(20):
        say(f"{count} raised {what}")
    for name, counts in sorted(found.tops.items()):
        say(f"{name}: {', '.join(f'{count} {how}' for how, count in counts.most_common())}")
    for part, count in found.parts.most_common(20):
        say(f"{count} times: {part}")
    how = ", ".join(f"{count} {name}" for name, count in found.how.most_common())
    say(
        f"{found.cases} queries with tops ({how}), {sum(found.raised.values())} of them with Spark's error, "
        f"{found.clean} blocks left nothing, {len(found.differences)} differences."
    )
