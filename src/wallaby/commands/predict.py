"""`wallaby predict`: what queries would take on clusters that are not there, from the event logs of real runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import note, open_for_writing, out, say
from wallaby.errors import InvalidArgumentError

EXAMPLES = """
Examples:

  wallaby predict logs/q-1.jsonl --workers 4 --workers 16 --workers 32

  wallaby predict one-worker.jsonl --check four-workers.jsonl --cores 2    is it right about a run that was made?
"""
WORKERS_MAX = 128


def predict(
    logs: Annotated[list[Path], typer.Argument(help="Event logs, each of a query that came to its end.")],
    workers: Annotated[
        list[int] | None, typer.Option(help="TaskManagers. Default: 4, 16 and 32. Repeatable.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Kernel threads of each.", min=1, max=64)] = 2,
    cores: Annotated[int, typer.Option(help="Cores that all of them share; 0: each has its own.", min=0)] = 0,
    network: Annotated[float, typer.Option(help="Gigabits a second of each network card.", min=0.001)] = 10.0,
    store: Annotated[float, typer.Option(help="Megabytes a second of the durable store.", min=0.001)] = 200.0,
    check: Annotated[
        list[Path] | None,
        typer.Option(help="A log of the same query with other workers, for each of the logs. Repeatable."),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
) -> None:
    """Predict times by simulation: the protocol's own code, with the task times and sizes of real runs."""
    from rich.table import Table

    from wallaby.observe.history import read_log
    from wallaby.simulation.predict.pace import Cluster
    from wallaby.simulation.predict.report import checked, line, to_json

    for count in workers or ():
        if not 1 <= count <= WORKERS_MAX:
            raise InvalidArgumentError(
                f"Nothing can be predicted for {count} workers.", fix=f"Choose from 1 to {WORKERS_MAX}."
            )
    if check and len(check) != len(logs):
        raise InvalidArgumentError(
            "There must be one --check for each log.", fix="Give them in the same order."
        )
    if save is not None:
        open_for_writing(save).close()
    histories = {path.stem: read_log(path) for path in logs}
    cluster = Cluster(1, threads, cores, network * 1e9 / 8, store * 1e6)
    runs = zip(histories.items(), map(read_log, check or ()), strict=False)
    checks = [
        checked(name, known, run, lambda count: replace(cluster, workers=count))
        for (name, known), run in runs
    ]
    for each in checks:
        verdict = "near enough" if each.holds else "NOT near enough"
        say(
            f"{each.query} on {each.workers} workers: {each.predicted:.2f} s predicted, {each.measured:.2f} s "
            f"measured, {each.off:.0%} off: {verdict}"
        )
    table = Table(
        "query", "workers", "pipelined s", "stagewise s", "spool s", "with a loss", "stagewise", "rewound"
    )
    lines = []
    for name, history in histories.items():
        for count in workers or (4, 16, 32):
            note(f"{name}, {count} workers")
            found = line(name, history, replace(cluster, workers=count))
            lines.append(found)
            times = (f"{found.pipelined:.2f}", f"{found.stagewise:.2f}", f"{found.spool:.2f}")
            losses = (f"{found.loss:.2f}", f"{found.stagewise_loss:.2f}", str(found.rewound))
            table.add_row(name, str(count), *times, *losses)
    out.print(table)
    if not checks or not all(each.holds for each in checks):
        say("Unvalidated: no run that was made shows that these are right to within 25 %.")
    if save is not None:
        with open_for_writing(save) as file:
            file.write(json.dumps(to_json(lines, checks, cluster), indent=1) + "\n")
