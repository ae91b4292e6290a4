"""Building blocks, each beside a bare reference from the same run, which shows what is possible.

Each has a file. It measures the production code, called directly; the reference is the library below it, or another
fast one, doing the same with as little overhead as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wallaby_lab.bench.blocks.block import Block
from wallaby_lab.bench.blocks.committing import measure_commits
from wallaby_lab.bench.blocks.partitioning import measure_partitioning
from wallaby_lab.bench.blocks.probing import measure_probe
from wallaby_lab.bench.blocks.pushing import measure_push
from wallaby_lab.bench.blocks.reading import measure_reading
from wallaby_lab.bench.figures import machine, table, where

BLOCKS: tuple[Callable[[Path, int], Sequence[Block]], ...] = (
    measure_partitioning,
    measure_push,
    measure_commits,
    measure_probe,
    measure_reading,
)


def run_blocks(data: Path, rounds: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all building blocks."""
    found: list[Block] = []
    for measure in BLOCKS:
        for block in measure(data, rounds):
            say(
                f"{block.name}: {block.shown(block.seconds)}, {block.reference}: {block.shown(block.bare_seconds)}"
            )
            found.append(block)
    return {"machine": machine(), "blocks": [asdict(block) for block in found]}


def blocks_page(report: Mapping[str, Any], title: str, **about: object) -> str:
    """The report as a page of Markdown."""
    rows = []
    for each in report["blocks"]:
        block = Block(**each)
        rows.append(
            [
                block.name,
                block.shown(block.seconds),
                block.reference,
                block.shown(block.bare_seconds),
                f"{block.ratio:.2f}",
            ]
        )
    told = "The best of the rounds. The ratio is our time over that of the bare reference; 1 is the best possible."
    heads = ["block", "Wallaby", "bare reference", "reference", "ratio"]
    return "\n".join([f"# {title}", "", where(**about), "", told, "", *table(heads, rows)]) + "\n"
