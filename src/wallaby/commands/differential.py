"""`wallaby differential`: the same queries over odd rows by Wallaby and by Spark, and every difference made small."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wallaby.commands.terminal import note, out, say
from wallaby.errors import InvalidArgumentError

if TYPE_CHECKING:
    from wallaby.differential.entries import Tally

EXAMPLES = """
Examples:

  wallaby differential --entry Upper --entry Lower     two entries of the expression registry

  wallaby differential --family Text                   a family of them

  wallaby differential                                 all entries

Exit codes: 0 nothing is different; 1 something is, or an example shows nothing.
"""


def differential(
    entry: Annotated[
        list[str] | None, typer.Option(help="An entry of the registry, by Catalyst's class. Repeatable.")
    ] = None,
    family: Annotated[list[str] | None, typer.Option(help="A family of entries. Repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Other rows and other constants.", min=0)] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also say what is not native, and why.")] = False,
) -> None:
    """Compare every native expression with Spark's, over generated rows."""
    from wallaby.commands.session import spark_session
    from wallaby.differential.entries import EntrySuite
    from wallaby.differential.tables import register, write_tables
    from wallaby.engine import attach

    entries = _chosen(entry or [], family or [])
    configuration = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    with (
        tempfile.TemporaryDirectory(prefix="wallaby-differential-") as directory,
        spark_session("local[3]", configuration, "wallaby differential") as spark,
        attach(spark, workers=2, threads=1, progress_enabled=False) as engine,
    ):
        write_tables(Path(directory), seed)
        register(spark, Path(directory))
        tallies = EntrySuite(spark, engine, seed, note).run(entries)
    _show(tallies, verbose=verbose)
    if any(tally.differences or not tally.native or not tally.shown for tally in tallies.values()):
        raise typer.Exit(1)


def _chosen(entries: Sequence[str], families: Sequence[str]) -> list[str]:
    """The entries that are asked for, and all that have an example if none is."""
    from wallaby.catalyst.registry import FAMILIES
    from wallaby.differential.examples import EXAMPLES as KNOWN

    unknown = [name for name in entries if name not in KNOWN]
    if unknown:
        raise InvalidArgumentError(
            f"There is no example of {unknown[0]}.", fix="Add one in wallaby/differential/examples."
        )
    odd = [name for name in families if name not in FAMILIES]
    if odd:
        raise InvalidArgumentError(
            f"There is no family {odd[0]!r}.", fix=f"Choose one of: {', '.join(FAMILIES)}."
        )
    wanted = [*entries, *(e.catalyst for name in families for e in FAMILIES[name] if e.catalyst in KNOWN)]
    return list(dict.fromkeys(wanted)) if entries or families else list(KNOWN)


def _show(tallies: Mapping[str, Tally], *, verbose: bool) -> None:
    from rich.table import Table

    table = Table("entry", "native", "on Spark", "compared", "errors alike", "different")
    for name, tally in tallies.items():
        figures = (tally.native, tally.on_spark, tally.compared, tally.raised, len(tally.differences))
        table.add_row(name, *map(str, figures))
    out.print(table)
    for name, tally in tallies.items():
        if not tally.native:
            say(f"{name}: none of its examples is native: {next(iter(tally.reasons), 'there is none')}")
        elif not tally.shown:
            say(f"{name}: no plan of its examples holds it")
        for line in tally.invalid if verbose else ():
            say(f"{name}: invalid: {line}")
        for reason, count in tally.reasons.items() if verbose else ():
            say(f"{name}: {count} on Spark: {reason}")
    differences = [one for tally in tallies.values() for one in tally.differences]
    for one in differences:
        say(f"{one.expression.entry}: {one.query}\n    {one.settings}\n    {one.what}")
    compared = sum(tally.compared for tally in tallies.values())
    say(f"{len(tallies)} entries, {compared} comparisons, {len(differences)} differences.")
