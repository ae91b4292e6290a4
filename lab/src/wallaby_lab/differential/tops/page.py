"""The part of the page about queries with tops: what ran below Spark, and why nothing did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from wallaby_lab.differential.tops.blocks import tpch_blocks
from wallaby_lab.differential.tops.sinks import SINKS
from wallaby_lab.differential.tops.transforms import TRANSFORMS

_REASONS_MAX: Final = 20
_CONDITION: Final = re.compile(r"(\[[A-Z_.]+\]).*", re.DOTALL)
_HEAD: Final = """
## Spark above

`wallaby differential --tops` puts what pipelines do on the queries: writes that are read back, tables made and
filled by SQL, caches, checkpoints, Python functions, joins and unions with rows of Python, windows, RDDs. Each case
runs once with the engine and once on Spark alone, with adaptive execution or without, and the answers are compared;
their order too, where Spark keeps it. `spark.wallaby.below=always` keeps the engine from leaving these few rows to
Spark for their cost. In a case with a *part*, the engine logged that it ran one below Spark; if the query ran as a
*whole*, its rows went straight to the driver. After each block of cases the engine must have no kept rows, no
query in the control store, and no file in scratch.
"""


def tops_section(random: Sequence[Mapping[str, Any]], tpch: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """The section; nothing if nothing was run."""
    if not random and not tpch:
        return
    yield _HEAD
    if tpch:
        parts = list(tpch.values())
        scales = ", ".join(sorted({f"{part['scale']:g}" for part in parts}))
        different = sorted({str(number) for part in parts for number in part["different"]}, key=int)
        queries = {name.split(".")[0] for name in tpch}
        whole = "every top" if len(tpch) == len(tpch_blocks()) else "a part of the tops each"
        yield (
            f"**TPC-H**, {len(queries)} queries at scale {scales} with {whole}{_commits(parts)}: "
            f"{_summary(parts, different)}\n"
        )
    if random:
        different = [str(seed) for part in random for seed in part["different"]]
        large = sum(part["how"].get("large", 0) for part in random)
        yield (
            f"**Random queries**, the top of each drawn from its seed{_commits(random)}: "
            f"{_summary(random, different)} {large:,} more were not run, because their joins could have more than "
            "a hundred thousand rows.\n"
        )
    yield from _table([*tpch.values(), *random])
    yield from _what([*tpch.values(), *random])


def _summary(parts: Iterable[Mapping[str, Any]], different: Sequence[str]) -> str:
    parts = list(parts)
    how = _sum(parts, "how")
    total = sum(part["queries"] for part in parts)
    raised = sum(sum(part["raised"].values()) for part in parts)
    clean = sum(part["clean"] for part in parts)
    return (
        f"{total:,} cases; in {how['part']:,} a part ran below Spark, {how['whole']:,} ran as a whole, in "
        f"{how['doubt']:,} a value was in doubt, {how['none']:,} stayed on Spark, {how['local']:,} were answered by "
        f"Catalyst. In {raised:,} both raised an error. {clean:,} blocks left nothing behind. "
        f"Different: {', '.join(different) or 'none'}."
    )


def _table(parts: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    tops: dict[str, Counter[str]] = {}
    for part in parts:
        for name, counts in part["tops"].items():
            tops.setdefault(name, Counter()).update(counts)
    yield "| on top | cases | part | whole | in doubt | on Spark | Catalyst |"
    yield "|---|---|---|---|---|---|---|"
    for name in (*SINKS, *TRANSFORMS):
        if name in tops:
            counts = tops[name]
            figures = (counts[how] for how in ("part", "whole", "doubt", "none", "local"))
            yield f"| {name} | {counts.total()} | {' | '.join(map(str, figures))} |"
    yield ""


def _what(parts: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield "| times | what the parts below Spark did |"
    yield "|---|---|"
    for what, count in _sum(parts, "parts").most_common(_REASONS_MAX):
        yield f"| {count} | {what} |"
    yield ""
    yield "| cases | why nothing ran here |"
    yield "|---|---|"
    reasons: Counter[str] = Counter()
    for reason, count in _sum(parts, "reasons").items():
        reasons[_CONDITION.sub(r"\1", reason)] += count
    for reason, count in reasons.most_common(_REASONS_MAX):
        if "local rows need no engine" not in reason:
            yield f"| {count} | {reason.replace('|', '/')} |"


def _sum(parts: Iterable[Mapping[str, Any]], name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part[name])
    return found


def _commits(parts: Sequence[Mapping[str, Any]]) -> str:
    found = list(dict.fromkeys(part["commit"] or "an unknown commit" for part in parts))
    return f" (with {', '.join(found)})"
