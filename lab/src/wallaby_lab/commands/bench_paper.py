"""`wallaby bench paper`: the paper's figures, measured here, beside its published numbers."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import note, open_for_writing, say
from wallaby.errors import InvalidArgumentError
from wallaby_lab.commands.bench import Cores, Directory, Memory, Queries, chosen_cores, require_tables
from wallaby_lab.provenance import commit

EXAMPLES = """
Examples:

  wallaby bench paper data/sf10                           all figures, into .bench/paper

  wallaby bench paper data/sf10 --figure d --workers 2    what lineage, spooling and checkpoints cost

  wallaby bench paper data/sf10 --figure d --broadcast 0 --checkpoint 0.5    the same where all joins exchange

  wallaby bench paper data/sf1 --figure policies          one table of all policies

  wallaby bench paper data/sf10 --figure c --static 8 --static 128
"""


def paper(
    directory: Directory,
    figure: Annotated[
        list[str] | None,
        typer.Option(help="a to g, or policies. Default: all of them. Repeatable."),
    ] = None,
    query: Queries = None,
    rounds: Annotated[int, typer.Option(help="How often to measure everything.", min=1, max=100)] = 3,
    workers: Annotated[
        int, typer.Option(help="TaskManagers, in figures a to d; e, f and policies have 4.", min=1)
    ] = 2,
    more_workers: Annotated[
        list[int] | None, typer.Option(help="TaskManagers of figure g. Default: 1, 2 and 4. Repeatable.")
    ] = None,
    static: Annotated[
        list[int] | None, typer.Option(help="K of figure c. Default: powers of 2 up to 128. Repeatable.")
    ] = None,
    store: Annotated[str, typer.Option(help="The durable store; default: a local directory.")] = "",
    checkpoint: Annotated[
        float, typer.Option(help="Seconds between checkpoints of a state, in figures d and policies.", min=0)
    ] = 2.0,
    broadcast: Annotated[
        int | None,
        typer.Option(
            help="Bytes up to which Wallaby broadcasts a join's side; default: the engine's. 0: both sides of every "
            "join are exchanged, as in large data.",
            min=0,
        ),
    ] = None,
    cores: Cores = 0,
    memory: Memory = "8g",
    results: Annotated[
        Path, typer.Option("--out", help="The directory for pages, drawings and figures.")
    ] = Path(".bench/paper"),
    page: Annotated[
        Path | None,
        typer.Option(help="Put all figures of --out into this page, e.g. docs/evaluation.md."),
    ] = None,
) -> None:
    """Measure what the paper measured, draw its figures, and put ours beside its published numbers."""
    from wallaby_lab.bench.figures import machine
    from wallaby_lab.bench.paper.setup import STATIC, Setup
    from wallaby_lab.bench.paper.written import FIGURES, above, rewrite, write_figure

    letters = figure or list(FIGURES)
    for letter in letters:
        if letter not in FIGURES:
            raise InvalidArgumentError(
                f"There is no figure {letter}.", fix=f"Choose from {', '.join(FIGURES)}."
            )
    require_tables(directory)
    if page is not None:
        above(page, results)  # before hours are spent on what could not be written
    results.mkdir(parents=True, exist_ok=True)
    probe = results / "began"
    open_for_writing(probe).close()
    probe.unlink()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="wallaby-store-") as local:
        setup = Setup(
            directory.absolute(),
            chosen_cores(cores),
            memory,
            workers,
            rounds,
            store or local,
            note,
            tuple(query or ()),
            tuple(more_workers or (1, 2, 4)),
            tuple(static or STATIC),
            checkpoint,
            broadcast,
        )
        for letter in letters:
            note(f"figure {letter}")
            found = FIGURES[letter](setup)
            about = {
                "machine": machine(),
                **setup.about(letter, found),
                "store": "a local directory" if not store else store.partition("://")[0],
                "commit": commit(),
                "date": datetime.now(UTC).date().isoformat(),
            }
            say(write_figure(results, letter, found, about))
            wrong += found.compared - found.equal
    if page is not None:
        rewrite(page, results, note)
    if wrong:
        say(f"{wrong} answers were WRONG.")
        raise typer.Exit(1)
