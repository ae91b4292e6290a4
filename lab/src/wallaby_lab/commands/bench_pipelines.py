"""`wallaby bench pipelines`: parts of Spark's plans in the TaskManagers, beside Spark alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from wallaby.commands.terminal import note, say
from wallaby.errors import InvalidArgumentError
from wallaby_lab.commands.bench import Cores, Directory, Memory, Page, Save, chosen_cores, require_tables
from wallaby_lab.commands.files import require_writable, write_whole

EXAMPLES = """
Examples:

  wallaby bench pipelines data/sf1

  wallaby bench pipelines data/sf1 --part planning --part leaves --rounds 5

  wallaby bench pipelines data/sf10 --part writes --rounds 1 --warm-ups 0 --minutes 25 --save reports/writes.json

  wallaby bench pipelines data/sf10 --save reports/bench-pipelines-sf10.json --page docs/results/bench-pipelines-sf10.md

With an existing --save file of the same tables, parts that it already contains are not run again, unless --part names
them. Each case is saved when it has been measured; the next run goes on with the rest.

Exit codes: 0 all answers are equal; 1 some are not.
"""


def pipelines(
    directory: Directory,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="handover, pipelines, writes, planning, leaves or rates. Default: all. Repeatable."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often everything is timed.", min=1, max=100)] = 3,
    warm_ups: Annotated[
        int, typer.Option(help="How often each case runs untimed first.", min=0, max=100)
    ] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="Start no case after this many minutes. Default: no limit.", min=0)
    ] = None,
    cores: Cores = 0,
    memory: Memory = "8g",
    save: Save = None,
    page: Page = None,
) -> None:
    """Measure writes, caches and Python functions above joins and aggregations: with the engine and on Spark alone."""
    from wallaby_lab.bench.pipelines.page import pipelines_page
    from wallaby_lab.bench.pipelines.run import PARTS, Pace, run_pipelines

    for name in part or ():
        if name not in PARTS:
            raise InvalidArgumentError(f"There is no part {name}.", fix=f"Choose from {', '.join(PARTS)}.")
    require_tables(directory)
    for path in (save, page):
        if path is not None:
            require_writable(path)
    found = _kept(save, directory.name)
    known = {name: figures for name, figures in found.items() if figures.get("unfinished")}
    wanted = part or [name for name in PARTS if name not in found or name in known]

    def done(name: str, figures: dict[str, Any]) -> None:
        found[name] = figures
        if save is not None:
            write_whole(save, json.dumps({"data": directory.name, "parts": found}, indent=1) + "\n")
        if page is not None:
            write_whole(page, pipelines_page(found))

    if wanted:
        pace = Pace(rounds, warm_ups, minutes)
        run_pipelines(wanted, directory.absolute(), chosen_cores(cores), memory, pace, note, done, known)
    text = pipelines_page(found)
    say(text)
    if page is not None:
        write_whole(page, text)  # also if nothing was left to be measured
    measured = [case for kind in ("pipelines", "writes") for case in found.get(kind, {}).get("cases", ())]
    wrong = [case["name"] for case in measured if not case["equal"]]
    if wrong:
        say(f"WRONG answers: {'; '.join(wrong)}.")
        raise typer.Exit(1)


def _kept(save: Path | None, data: str) -> dict[str, Any]:
    """The parts that a file has; a file about other tables is refused."""
    if save is None or not save.exists():
        return {}
    kept = json.loads(save.read_text(encoding="utf-8"))
    if kept.get("data") != data or "parts" not in kept:
        raise InvalidArgumentError(
            f"{save} has no parts over {data}, but {kept.get('data', 'something else')}.",
            fix="Name another file.",
        )
    parts: dict[str, Any] = kept["parts"]
    return parts
