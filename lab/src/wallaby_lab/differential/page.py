"""The page of a report: what was compared with Spark, how much of it ran natively, and what stayed on Spark and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from wallaby_lab.differential.generated.examples import EXAMPLES, WITHOUT_EXAMPLE
from wallaby_lab.differential.tops.page import tops_section

_OPERANDS = re.compile(r"(\w+)\(.*(?:\)|…): (.*)", re.DOTALL)
_CONDITION = re.compile(r"(\[[A-Z_.]+\]).*", re.DOTALL)
_HEAD = """# Compared with Spark

<!-- Generated from reports/differential.json by `wallaby differential --page`. -->

`make differential` runs the same expressions and queries on Spark and on Wallaby over generated rows: NULLs, NaN,
infinities, both zeros, the extremes of every type, decimals of all shapes, text beyond the basic plane, dates before
1582 and after 2100, moments around changes of clocks, no rows, one row, many batches. One
[comparison](../lab/src/wallaby_lab/compare.py) checks all answers; an error must have Spark's condition. A difference
is reduced to a small case and printed as a script. `make test` runs a few of these with fixed seeds.

Three things are not compared, or less strictly:

- **Nondeterministic errors.** Spark may raise an error in one way of running a query and none, or another, in a second
  way: with or without generated code, with one task or several, with the rows in another order or one of them alone,
  without skipping parts of files. Any of these outcomes is accepted. Where Spark lets Java's own overflow error
  through, which has no condition, ARITHMETIC_OVERFLOW is accepted.
- **Floating-point bounds without NaN.** Files whose statistics ignore NaN, as pyarrow writes them, are not used,
  because Spark, unlike Wallaby, would skip row groups that contain a matching NaN.
- **Cancellation.** In covariances, correlations and regressions, a remainder below 1e-12 counts as zero where large
  parts cancel each other.
"""


def page(report: dict[str, Any]) -> str:
    """The whole page."""
    return (
        "\n".join(
            [
                _HEAD,
                *_entries(report.get("entries", {})),
                *_queries(report.get("queries", [])),
                *_losses(report.get("losses", [])),
                *tops_section(report.get("tops", []), report.get("tpch_tops", {})),
            ]
        )
        + "\n"
    )


def _entries(entries: dict[str, dict[str, Any]]) -> Iterable[str]:
    compared = sum(one["compared"] for one in entries.values())
    raised = sum(one["raised"] for one in entries.values())
    different = sorted(name for name, one in entries.items() if one["different"])
    mended = sorted(name for name, one in entries.items() if one.get("mended"))
    yield "## Expressions\n"
    yield (
        f"{len(entries)} of the {len(EXAMPLES)} entries of the expression registry that have examples, {compared:,} "
        f"comparisons of an expression over a table, in {raised:,} of which both raised an error. "
        f"Different: {', '.join(different) or 'none'}{_once(mended)}.\n"
    )
    yield (
        "An expression is *on Spark* if the types of its operands, or its constants, are not supported. A comparison "
        "is *in doubt*, and does not count, if the engine met a value that it does not compute and left the query to "
        "Spark ([decision 16](decisions/0016-one-value-in-doubt-leaves-the-query-to-spark.md)).\n"
    )
    yield "| entry | expressions native | on Spark | comparisons | both raised | in doubt |"
    yield "|---|---|---|---|---|---|"
    for name, one in sorted(entries.items()):
        figures = (one["native"], one["on_spark"], one["compared"], one["raised"], one.get("in_doubt", 0))
        yield f"| `{name}` | {' | '.join(map(str, figures))} |"
    yield ""
    yield "| native, but not in this table | because |"
    yield "|---|---|"
    for name, why in sorted(WITHOUT_EXAMPLE.items()):
        yield f"| `{name}` | {why} |"
    for name in sorted(EXAMPLES.keys() - entries.keys()):
        yield f"| `{name}` | not compared as a whole yet |"
    yield ""


def _queries(parts: Sequence[dict[str, Any]]) -> Iterable[str]:
    how: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for part in parts:
        how.update(part["how"])
        for reason, count in part["reasons"].items():
            reasons[_kind(reason)] += count
    total = sum(part["queries"] for part in parts)
    asked = total - how["local"]
    different = sorted(seed for part in parts for seed in part["different"])
    yield "## Random queries\n"
    yield (
        f"{total:,} queries{_commits(parts)}; {how['local']:,} of them were answered by Catalyst without "
        f"reading a table. Of the other {asked:,}, {_share(how['native'], asked)} ran natively, "
        f"{_share(how['leaf'], asked)} with a Spark leaf, and {_share(how['spark'], asked)} on Spark. "
        f"{sum(part['raised'] for part in parts):,} ended in a Spark error. "
        f"Different: {', '.join(map(str, different)) or 'none'}{_mended(parts)}. "
        f"{how['large']:,} more were not compared, because their joins could have more than a million rows.\n"
    )
    yield "| queries | why they, or parts of them, stayed on Spark |"
    yield "|---|---|"
    for reason, count in reasons.most_common(25):
        if "local rows need no engine" not in reason:
            yield f"| {count} | {reason.replace('|', '/')} |"


def _kind(reason: str) -> str:
    """A reason without the operands of what it is about, and without the text of an error of Spark's."""
    found = _OPERANDS.fullmatch(reason)
    short = f"{found[1]}: {found[2]}" if found else reason
    return _CONDITION.sub(r"\1", short)


def _losses(parts: Sequence[dict[str, Any]]) -> Iterable[str]:
    if not parts:
        return
    total, struck = (sum(part[name] for part in parts) for name in ("queries", "struck"))
    different = sorted(seed for part in parts for seed in part["different"])
    yield "\n## Random queries that lose a worker\n"
    yield (
        f"{total:,} queries{_commits(parts)}; in {struck:,} of them a TaskManager killed itself in the middle, "
        "before or after a step of the protocol; the others ended before that, or were answered by Catalyst or "
        f"Spark. Different: {', '.join(map(str, different)) or 'none'}{_mended(parts)}."
    )


def _mended(parts: Sequence[dict[str, Any]]) -> str:
    return _once(sorted(seed for part in parts for seed in part.get("mended", ())))


def _once(mended: Sequence[object]) -> str:
    return f"; different before, and fixed: {', '.join(map(str, mended))}" if mended else ""


def _commits(parts: Sequence[dict[str, Any]]) -> str:
    found = list(dict.fromkeys(part.get("commit") or "an unknown commit" for part in parts))
    return f" (with {', '.join(found)})" if found else ""


def _share(count: int, of: int) -> str:
    return f"{100 * count / of:.1f} %" if of else "none"
