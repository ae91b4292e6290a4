"""`wallaby differential`: run the same queries over odd rows on Wallaby and on Spark, and reduce every difference."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wallaby.commands.terminal import note, out, say
from wallaby.errors import InvalidArgumentError
from wallaby_lab.commands.differential_tops import TopsRun, in_time
from wallaby_lab.commands.differential_tops import run as _tops

if TYPE_CHECKING:
    from wallaby_lab.commands.differential_work import EntryWork, RandomQueryWork
    from wallaby_lab.differential.campaign import CampaignResult
    from wallaby_lab.differential.entries import EntryTally

EXAMPLES = """
Examples:

  wallaby differential --entry Upper --entry Lower     two entries of the expression registry

  wallaby differential --family Text                   a family of them

  wallaby differential                                 all entries

  wallaby differential --rest --minutes 4 --save reports/differential.json    repeat until all entries are done

  wallaby differential --queries 500                   random queries, from the seeds 0 to 499

  wallaby differential --queries 1 --first 1234        the query of one seed again

  wallaby differential --queries 20000 --processes 2 --minutes 9 --save reports/differential.json    the next seeds

  wallaby differential --queries 50 --losses           a TaskManager is killed in the middle of each

  wallaby differential --tops                          TPC-H, with every action of Spark's on top

  wallaby differential --queries 100 --tops            random queries, with random actions on top

  wallaby differential --page reports/differential.json docs/differential.md

Exit codes: 0 nothing is different; 1 something is, or an example shows nothing.
"""


def differential(
    entry: Annotated[
        list[str] | None, typer.Option(help="An entry of the registry, by Catalyst's class. Repeatable.")
    ] = None,
    family: Annotated[list[str] | None, typer.Option(help="A family of entries. Repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Seed for the rows and constants of entries.", min=0)] = 0,
    queries: Annotated[int, typer.Option(help="Instead: run this many random queries.", min=0)] = 0,
    first: Annotated[
        int | None,
        typer.Option(help="The first seed; default: the one after those in --save.", min=0),
    ] = None,
    rest: Annotated[
        bool,
        typer.Option(
            "--rest", help="Only entries, or blocks of --tops, that are not in --save yet, or differed."
        ),
    ] = False,
    minutes: Annotated[
        float, typer.Option(help="Start nothing after this many minutes; 0: no limit.", min=0)
    ] = 0,
    processes: Annotated[
        int, typer.Option(help="Number of processes, each with its own session.", min=1)
    ] = 1,
    losses: Annotated[
        bool, typer.Option("--losses", help="With --queries: kill a TaskManager during each query.")
    ] = False,
    tops: Annotated[
        bool,
        typer.Option(
            "--tops", help="Put writes, caches, Python functions and the like on random queries, or on TPC-H."
        ),
    ] = False,
    scale: Annotated[float, typer.Option(help="With --tops: the scale of TPC-H.", min=0.001)] = 0.01,
    save: Annotated[Path | None, typer.Option(help="Add the figures to this JSON file.")] = None,
    commit: Annotated[str, typer.Option(help="The commit to record in the figures.")] = "",
    keep: Annotated[
        Path, typer.Option(help="Where to keep what was learned about functions between runs.")
    ] = Path(".differential"),
    page: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Only write a page from saved figures: the JSON file and the page."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print what is not native, and why.")
    ] = False,
) -> None:
    """Compare every native expression, or random queries, with Spark, over generated rows."""
    if page is not None:
        from wallaby_lab.differential.page import page as made

        figures, target = page
        target.write_text(made(json.loads(figures.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    from wallaby_lab.differential import report

    known = report.read(save) if save is not None else {}
    if tops:
        begin = report.next_seed(known, report.TOPS) if first is None else first
        _tops(TopsRun(range(begin, begin + queries), scale, save, minutes, commit, processes, keep, rest))
        return
    entries = _chosen(entry or [], family or [])
    if rest:
        entries = report.not_equal_yet(known, entries)
    from wallaby_lab.commands.differential_work import EntryWork, RandomQueryWork

    with tempfile.TemporaryDirectory(prefix="wallaby-differential-") as directory:
        if queries:
            begin = report.next_seed(known, report.LOSSES if losses else report.QUERIES)
            begin = begin if first is None else first
            seeds = range(begin, begin + queries)
            work = RandomQueryWork(Path(directory), keep, losses)
            good = _queries(work, seeds, save, minutes, commit, processes)
        else:
            good = _entries(
                EntryWork(seed, Path(directory)), entries, save, minutes, commit, processes, verbose=verbose
            )
    if not good:
        raise typer.Exit(1)


def _entries(
    work: EntryWork,
    entries: Sequence[str],
    save: Path | None,
    minutes: float,
    commit: str,
    processes: int,
    *,
    verbose: bool,
) -> bool:
    from wallaby_lab.differential import report
    from wallaby_lab.differential.crew import shared_out
    from wallaby_lab.differential.entries import groups

    began = time.monotonic()
    tallies: dict[str, EntryTally] = {}
    parts = in_time(groups(entries, work.seed), minutes)
    for group, found in shared_out(work, parts, note, processes):
        tallies |= found
        note(
            f"{len(tallies)} of {len(entries)} entries in {time.monotonic() - began:.0f} s, {group[-1]} the last"
        )
        if save is not None:
            report.write(save, report.with_entries(report.read(save), found, commit))
    _show(tallies, verbose=verbose)
    return not any(tally.differences or not tally.compared or not tally.shown for tally in tallies.values())


def _queries(
    work: RandomQueryWork, seeds: range, save: Path | None, minutes: float, commit: str, processes: int
) -> bool:
    from wallaby_lab.differential import campaign, report
    from wallaby_lab.differential.crew import shared_out

    name = report.LOSSES if work.losses else report.QUERIES
    #: Results that arrived before those of earlier seeds, by their first seeds.
    early: dict[int, tuple[range, CampaignResult]] = {}
    total, end = campaign.CampaignResult(), seeds.start
    parts = in_time(campaign.parts(seeds), minutes)
    for part, found in shared_out(work, parts, note, processes):
        early[part.start] = (part, found)
        while end in early:
            some, those = early.pop(end)
            total.add(those)
            end = some.stop
        if save is not None and end > seeds.start:
            figures = report.figures(total, seeds.start, end, commit)
            report.write(save, report.with_queries(report.read(save), name, figures))
    _tell(total)
    return not total.differences


def _chosen(entries: Sequence[str], families: Sequence[str]) -> list[str]:
    """The requested entries; by default all that have an example."""
    from wallaby.functions.registry import FAMILIES
    from wallaby_lab.differential.generated.examples import EXAMPLES as KNOWN

    unknown = [name for name in entries if name not in KNOWN]
    if unknown:
        raise InvalidArgumentError(
            f"There is no example of {unknown[0]}.", fix="Give its entry in src/wallaby/functions an example."
        )
    odd = [name for name in families if name not in FAMILIES]
    if odd:
        raise InvalidArgumentError(
            f"There is no family {odd[0]!r}.", fix=f"Choose one of: {', '.join(FAMILIES)}."
        )
    wanted = [*entries, *(e.catalyst for name in families for e in FAMILIES[name] if e.catalyst in KNOWN)]
    return list(dict.fromkeys(wanted)) if entries or families else list(KNOWN)


def _show(tallies: Mapping[str, EntryTally], *, verbose: bool) -> None:
    from rich.table import Table

    table = Table("entry", "native", "on Spark", "compared", "errors alike", "in doubt", "different")
    for name, tally in tallies.items():
        figures = (tally.native, tally.on_spark, tally.compared, tally.raised, tally.in_doubt)
        table.add_row(name, *map(str, (*figures, len(tally.differences))))
    out.print(table)
    for name, tally in tallies.items():
        if not tally.native:
            say(f"{name}: none of its examples is native: {next(iter(tally.reasons), 'there is none')}")
        elif not tally.shown:
            say(f"{name}: no plan of its examples holds it")
        elif not tally.compared:
            say(f"{name}: wherever it was compared, a value was in doubt")
        for line in tally.invalid if verbose else ():
            say(f"{name}: invalid: {line}")
        for reason, count in tally.reasons.items() if verbose else ():
            say(f"{name}: {count} on Spark: {reason}")
    differences = [one for tally in tallies.values() for one in tally.differences]
    for one in differences:
        say(f"{one.expression.entry}: {one.query}\n    {one.settings}\n    {one.what}")
    compared = sum(tally.compared for tally in tallies.values())
    say(f"{len(tallies)} entries, {compared} comparisons, {len(differences)} differences.")


def _tell(found: CampaignResult) -> None:
    for _, what, text in found.differences:
        say(f"{what}\n{text}")
    for reason, count in found.reasons.most_common(20):
        say(f"{count} on Spark: {reason}")
    for what, count in found.invalid.most_common(3):
        say(f"{count} not valid: {what}")
    how = ", ".join(f"{count} {name}" for name, count in found.how.most_common())
    say(
        f"{found.queries} queries ({how}), {found.raised} of them with Spark's error, {found.struck} with a loss, "
        f"{len(found.differences)} differences."
    )
