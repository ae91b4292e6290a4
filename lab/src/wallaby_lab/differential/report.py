"""The figures of many runs in one report: entries by name, random queries by their seeds, each seed counted once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wallaby.errors import InvalidArgumentError
from wallaby_lab.differential.campaign import CampaignResult
from wallaby_lab.differential.entries import EntryTally
from wallaby_lab.differential.tops.blocks import TpchBlock
from wallaby_lab.differential.tops.campaign import TopTally

#: The keys of random queries, and of those with a lost worker.
QUERIES: Final = "queries"
LOSSES: Final = "losses"
#: The keys of random queries with tops, and of TPC-H with every top.
TOPS: Final = "tops"
TPCH_TOPS: Final = "tpch_tops"
Report = dict[str, Any]


def read(path: Path) -> Report:
    """Read a report; empty if there is no file."""
    found: Report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(path: Path, report: Report) -> None:
    """Write a report atomically."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def next_seed(report: Report, name: str) -> int:
    """The first seed that has not been run."""
    return max((int(part["seeds"][1]) for part in report.get(name, ())), default=0)


def with_queries(report: Report, name: str, part: Mapping[str, Any]) -> Report:
    """Add the figures of a range of seeds, replacing runs within it.

    A single seed that differed within a larger run, and no longer does, is corrected there.

    Raises:
        InvalidArgumentError: another run has some of these seeds, which would be counted twice.
    """
    begin, end = part["seeds"]
    others = []
    for one in report.get(name, ()):
        first, last = one["seeds"]
        if begin <= first and last <= end:
            continue
        if end - begin == 1 and begin in one["different"]:
            return _mended(report, name, one, begin, part)
        if first < end and begin < last:
            raise InvalidArgumentError(
                f"Of the seeds from {begin} to {end - 1}, some were run with those from {first} to {last - 1}.",
                fix=f"Begin with {next_seed(report, name)}, or run all of them.",
            )
        others.append(one)
    return {**report, name: sorted([*others, dict(part)], key=lambda one: int(one["seeds"][0]))}


def _mended(report: Report, name: str, run: Mapping[str, Any], seed: int, part: Mapping[str, Any]) -> Report:
    if part["different"]:
        return report
    mended = {
        **run,
        "different": [one for one in run["different"] if one != seed],
        "mended": [*run.get("mended", ()), seed],
    }
    return {**report, name: [mended if one is run else one for one in report[name]]}


def with_entries(report: Report, tallies: Mapping[str, EntryTally], commit: str) -> Report:
    """Add the figures of some entries, replacing earlier ones."""
    known = report.get("entries", {})
    figures = {
        name: {
            "commit": commit,
            "native": tally.native,
            "on_spark": tally.on_spark,
            "compared": tally.compared,
            "raised": tally.raised,
            "in_doubt": tally.in_doubt,
            "different": [one.query for one in tally.differences],
            "mended": not tally.differences and _was_different(known.get(name, {})),
        }
        for name, tally in tallies.items()
    }
    return {**report, "entries": {**known, **figures}}


def _was_different(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("different") or entry.get("mended"))


def not_equal_yet(report: Report, entries: Sequence[str]) -> list[str]:
    """The entries without figures, or with a difference."""
    known = report.get("entries", {})
    return [name for name in entries if name not in known or known[name]["different"]]


def figures(found: CampaignResult, begin: int, end: int, commit: str) -> dict[str, Any]:
    """What a campaign has seen of the seeds from one up to another."""
    return {
        "seeds": [begin, end],
        "commit": commit,
        "queries": found.queries,
        "how": dict(found.how),
        "raised": found.raised,
        "struck": found.struck,
        "invalid": sum(found.invalid.values()),
        "reasons": dict(found.reasons.most_common()),
        "different": [seed for seed, _, _ in found.differences],
    }


def top_figures(found: TopTally, commit: str) -> dict[str, Any]:
    """What was seen of queries with tops."""
    return {
        "commit": commit,
        "queries": found.cases,
        "how": dict(found.how),
        "tops": {name: dict(counts) for name, counts in sorted(found.tops.items())},
        "parts": dict(found.parts.most_common()),
        "raised": dict(found.raised.most_common()),
        "reasons": dict(found.reasons.most_common()),
        "clean": found.clean,
        "different": [number for number, _, _ in found.differences],
    }


def with_tpch_tops(report: Report, block: TpchBlock, scale: float, found: TopTally, commit: str) -> Report:
    """Add the figures of a block of TPC-H with tops, replacing earlier ones."""
    known = report.get(TPCH_TOPS, {})
    figures = {"scale": scale, **top_figures(found, commit)}
    return {**report, TPCH_TOPS: {**known, str(block): figures}}


def without_tops_yet(report: Report, blocks: Sequence[TpchBlock]) -> list[TpchBlock]:
    """The blocks of TPC-H without figures, or with a difference."""
    known = report.get(TPCH_TOPS, {})
    return [block for block in blocks if known.get(str(block), {"different": True})["different"]]
