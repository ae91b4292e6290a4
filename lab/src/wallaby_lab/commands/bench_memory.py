"""`wallaby bench memory`: a workload under small budgets, with every answer compared and every peak sampled."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wallaby.commands.terminal import note, say
from wallaby.errors import InvalidArgumentError
from wallaby_lab.commands.files import require_writable, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wallaby_lab.bench.budgets.run import BudgetOutcome

EXAMPLES = """
Examples:

  wallaby bench memory tpcds data/ds1 --memory 1g --memory 2g --save reports/memory-ds1.json

  wallaby bench memory exploding data/exploding --memory 256m --last 200

With an existing --save file, queries that it already contains are not run again.

Exit codes: 0 all answers are equal, or end in a memory error, within the promise; 1 some are not.
"""


def memory(
    workload: Annotated[str, typer.Argument(help="tpch, tpcds or exploding.")],
    directory: Annotated[Path, typer.Argument(help="Where the tables are; exploding makes its own there.")],
    budget: Annotated[
        list[str] | None, typer.Option("--memory", help="A TaskManager's budget. Default: 1g. Repeatable.")
    ] = None,
    query: Annotated[list[int] | None, typer.Option(help="A query. Default: all. Repeatable.")] = None,
    first: Annotated[int | None, typer.Option(help="The first query of a range.")] = None,
    last: Annotated[int | None, typer.Option(help="The last query of a range.")] = None,
    timeout: Annotated[float, typer.Option(help="Time limit of a query, in seconds.", min=1)] = 900.0,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", help="A setting, spark.key=value. Repeatable.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the report to this Markdown file.")] = None,
) -> None:
    """Run a workload under small budgets; compare every answer with Spark's, and sample every peak."""
    from wallaby.commands.session import default_master, read_configuration, spark_session
    from wallaby.config.settings import read_settings
    from wallaby_lab.bench.budgets.answers import SparkAnswers
    from wallaby_lab.bench.budgets.page import budget_page
    from wallaby_lab.bench.budgets.run import MIB, run_budget
    from wallaby_lab.bench.budgets.workloads import WORKLOADS
    from wallaby_lab.provenance import commit

    if workload not in WORKLOADS:
        raise InvalidArgumentError(
            f"There is no workload {workload}.", fix=f"Choose one of: {', '.join(WORKLOADS)}."
        )
    chosen = WORKLOADS[workload]
    numbers = [
        number
        for number in query or chosen.numbers
        if (first is None or number >= first) and (last is None or number <= last)
    ]
    budgets = {name: (read_settings({}, {"memory": name}).memory or 0) // MIB for name in budget or ["1g"]}
    texts = {f"q{number:02d}": chosen.text(directory, number) for number in numbers}
    for path in (save, page):
        if path is not None:
            require_writable(path)
    outcomes = _kept(save, workload, directory.name)
    configuration = {"spark.sql.session.timeZone": "UTC", **read_configuration(conf or [])}
    with spark_session(default_master(1), configuration, "wallaby bench memory") as spark:
        chosen.register(spark, directory)
        answers = SparkAnswers(spark, directory / "answers" / workload)
        for name in budgets:
            done = {one.query for one in outcomes if one.memory == name}
            left = {query: text for query, text in texts.items() if query not in done}
            for one in run_budget(spark, name, left, answers, timeout) if left else ():
                outcomes.append(one)
                note(
                    f"{one.query}, {name}: {one.verdict}, {one.peak_mib} MiB, {one.seconds:.1f} s {one.detail}"
                )
                _save(save, outcomes, workload=workload, data=directory.name, commit=commit())
    shown = [one for one in outcomes if one.memory in budgets]
    text = budget_page(
        f"{chosen.title} under small budgets", shown, budgets, data=directory.name, commit=commit()
    )
    say(text)
    if page is not None:
        write_whole(page, text)
    bad = [
        one for one in shown if one.verdict not in ("equal", "memory") or one.over_mib(budgets[one.memory])
    ]
    if bad:
        say(f"{len(bad)} of {len(shown)} are not as they should be.")
        raise typer.Exit(1)


def _kept(save: Path | None, workload: str, data: str) -> list[BudgetOutcome]:
    """The runs that a file has of a workload and its data; a file of others is refused."""
    from wallaby_lab.bench.budgets.run import BudgetOutcome

    if save is None or not save.exists():
        return []
    kept = json.loads(save.read_text(encoding="utf-8"))
    if (kept["workload"], kept["data"]) != (workload, data):
        raise InvalidArgumentError(
            f"{save} has runs of {kept['workload']} over {kept['data']}.", fix="Name another file."
        )
    return [BudgetOutcome(**{**run, "reasons": tuple(run["reasons"])}) for run in kept["runs"]]


def _save(save: Path | None, outcomes: Sequence[BudgetOutcome], **about: str) -> None:
    if save is not None:
        runs = [asdict(outcome) for outcome in outcomes]
        write_whole(save, json.dumps({**about, "runs": runs}, indent=1) + "\n")
