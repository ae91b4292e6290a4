"""`wallaby predict`: predict the times of queries on other clusters, from the event logs of real runs."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from wallaby.commands.terminal import note, out, say
from wallaby.errors import InvalidArgumentError
from wallaby_lab.commands.files import require_writable, write_whole

if TYPE_CHECKING:
    from wallaby_lab.simulation.predict.checks import Check, Measured
    from wallaby_lab.simulation.predict.known import Known
    from wallaby_lab.simulation.predict.pace import PredictedCluster
    from wallaby_lab.simulation.predict.report import Line

EXAMPLES = """
Examples:

  wallaby predict logs/q-1.jsonl --workers 4 --workers 16 --workers 32

  wallaby predict one-worker.jsonl --check four-workers.jsonl --cores 2    compare a prediction with a real run

  wallaby predict --data data/sf1 --query 3 --query 9     make the runs that it takes, on a quiet machine
"""
WORKERS = (4, 16, 32, 128, 1000)
WORKERS_MAX = 1000
QUERIES = (1, 3, 5, 9)


def predict(
    logs: Annotated[list[Path] | None, typer.Argument(help="Event logs of queries that finished.")] = None,
    workers: Annotated[
        list[int] | None, typer.Option(help="TaskManagers. Default: 4, 16, 32, 128 and 1000. Repeatable.")
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(help="A figure of the paper, b to g. Default: b, d, e and g. Repeatable."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Kernel threads of each TaskManager.", min=1, max=64)] = 2,
    cores: Annotated[
        int, typer.Option(help="Cores that all TaskManagers share; 0: each has its own.", min=0)
    ] = 0,
    network: Annotated[
        float, typer.Option(help="Speed of each network card, in gigabits a second.", min=0.001)
    ] = 10.0,
    store: Annotated[
        float, typer.Option(help="Speed of the durable store, in megabytes a second.", min=0.001)
    ] = 200.0,
    gcs: Annotated[
        float, typer.Option(help="Calls a second that the control store answers.", min=1)
    ] = 20_000,
    detection: Annotated[
        float, typer.Option(help="Seconds until a lost worker is detected.", min=0.1)
    ] = 1.25,
    checkpoint: Annotated[
        float, typer.Option(help="With checkpoints: seconds between two checkpoints of a state.", min=0)
    ] = 2.0,
    times: Annotated[
        int, typer.Option(help="Predict for data this many times as large as in the logs.", min=1, max=1000)
    ] = 1,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            help="For each log, a log of the same query with another number of workers. Repeatable."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Instead of logs: TPC-H tables. Learns from runs with 1 and 2 workers, checks with 4 and 8."
        ),
    ] = None,
    query: Annotated[
        list[int] | None, typer.Option(help="With --data: a TPC-H query. Default: 1, 3, 5 and 9. Repeatable.")
    ] = None,
    broadcast: Annotated[
        int | None,
        typer.Option(
            help="With --data: broadcast the side of a join up to this many bytes; default: the engine's.",
            min=0,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="With --data: keep the runs' logs here, and reuse those that exist."),
    ] = None,
    policies: Annotated[
        Path | None,
        typer.Option(
            help="With --data: check ratios against this measured table of policies, paper-policies.json."
        ),
    ] = None,
    checked_query: Annotated[
        list[int] | None,
        typer.Option(help="With --policies: a query to check only. Default: those of --query. Repeatable."),
    ] = None,
    processes: Annotated[int, typer.Option(help="Number of processes that predict.", min=1, max=64)] = 1,
    save: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Put the figures of --save (a predict.json) into this page: docs/evaluation.md."),
    ] = None,
) -> None:
    """Predict query times by simulating the protocol's own code with the task times and sizes of real runs."""
    from wallaby_lab.simulation.predict.pace import PredictedCluster
    from wallaby_lab.simulation.predict.report import USUAL, to_json

    _require_predictable(workers or [], figure or [])
    if bool(logs) == (data is not None):
        raise InvalidArgumentError(
            "There is nothing to learn from, or too much.", fix="Give either event logs or --data."
        )
    _require_together(
        data,
        {
            "--runs": runs,
            "--broadcast": broadcast,
            "--policies": policies,
            "--query": query,
            "--checked-query": checked_query,
        },
    )
    if data is not None and check:
        raise InvalidArgumentError(
            "--check is only for event logs that you give.", fix="Leave it out: --data makes its own checks."
        )
    measured = _read_policies(policies, data) if policies is not None and data is not None else None
    _require_savable(save, page)
    learned_from = data.name if data is not None else "event logs"
    cluster = PredictedCluster(
        1,
        threads,
        cores,
        network * 1e9 / 8,
        store * 1e6,
        gcs_calls_per_second=gcs,
        detection_seconds=detection,
        checkpoint_seconds=checkpoint,
    )
    if data is not None:
        known, checks = _from_data(
            data, query or list(QUERIES), cluster, runs, broadcast, measured, checked_query
        )
    else:
        known, checks = _from_logs(logs or [], check or [], cluster)
    _tell(checks)
    lines = _lines(
        [
            (name, replace(each, times=times), replace(cluster, workers=count), figure or USUAL)
            for name, each in known.items()
            for count in workers or WORKERS
        ],
        processes,
    )
    _show(lines)
    if not checks or not all(each.holds for each in checks):
        say(
            "Unvalidated, as a whole: no runs that were made show that all of these are right to within 25 %."
        )
    if save is not None:
        text = json.dumps(to_json(learned_from, known, times, lines, checks, cluster), indent=1) + "\n"
        write_whole(save, text)
        if page is not None:
            from wallaby_lab.bench.paper.written import rewrite

            rewrite(page, save.parent)


def _lines(asked: Sequence[tuple[str, Known, PredictedCluster, Sequence[str]]], processes: int) -> list[Line]:
    """All lines of the table, in their order; the largest clusters are begun first."""
    from wallaby_lab.simulation.predict.report import line

    by_size = sorted(range(len(asked)), key=lambda at: -asked[at][2].workers)
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(line, *asked[at]): at for at in by_size}
        found: dict[int, Line] = {}
        for done in as_completed(running):
            at = running[done]
            found[at] = done.result()
            note(f"{asked[at][0]}, {asked[at][2].workers} workers: done, {len(found)} of {len(asked)}")
    return [found[at] for at in range(len(asked))]


def _require_predictable(workers: list[int], figures: list[str]) -> None:
    from wallaby_lab.simulation.predict.report import FIGURES

    for count in workers:
        if not 1 <= count <= WORKERS_MAX:
            raise InvalidArgumentError(
                f"Nothing can be predicted for {count} workers.", fix=f"Choose from 1 to {WORKERS_MAX}."
            )
    for letter in figures:
        if letter not in FIGURES:
            raise InvalidArgumentError(
                f"Figure {letter} cannot be predicted.", fix=f"Choose from {', '.join(FIGURES)}."
            )


def _require_savable(save: Path | None, page: Path | None) -> None:
    """Check that results can be saved, before hours are spent on them."""
    from wallaby_lab.bench.paper.written import PREDICTED, above

    if save is not None:
        require_writable(save)
    if page is None:
        return
    if save is None or save.name != PREDICTED:
        raise InvalidArgumentError(
            "--page is written from the file of --save.", fix=f"Give --save with a file named {PREDICTED}."
        )
    above(page, save.parent)


def _from_logs(
    logs: list[Path], check: list[Path], cluster: PredictedCluster
) -> tuple[dict[str, Known], list[Check]]:
    from wallaby.observe.log_reading import read_log
    from wallaby_lab.simulation.predict.checks import checked
    from wallaby_lab.simulation.predict.known import Known

    if check and len(check) != len(logs):
        raise InvalidArgumentError("Each log needs one --check.", fix="Give them in the same order.")
    names = [path.stem for path in logs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidArgumentError(
            f"Two logs are named {twice[0]}.", fix="Rename one: tables use these names."
        )
    known = {path.stem: Known(read_log(path)) for path in logs}
    runs = map(read_log, check) if check else ()
    return known, [
        checked(name, each, run, replace(cluster, workers=len(run.workers)))
        for (name, each), run in zip(known.items() if check else (), runs, strict=True)
    ]


def _from_data(
    data: Path,
    queries: list[int],
    cluster: PredictedCluster,
    kept: Path | None,
    broadcast: int | None,
    measured: _Policies | None,
    only_checked: list[int] | None,
) -> tuple[dict[str, Known], list[Check]]:
    """What to predict from, and all checks, including those of the plans with which policies were measured."""
    known, checks = _from_runs(data, queries, cluster, kept, broadcast)
    if measured is not None:
        usual = known
        if broadcast is not None or only_checked:
            usual, more = _from_runs(data, only_checked or queries, cluster, kept, None)
            checks += [each for each in more if each not in checks]
        checks += _beside_policies(usual, measured, cluster)
    return known, checks


def _from_runs(
    data: Path, queries: list[int], cluster: PredictedCluster, kept: Path | None, broadcast: int | None
) -> tuple[dict[str, Known], list[Check]]:
    """Learn from runs with two workers, because one has no exchange; and from both what only shows between runs."""
    from wallaby_lab.bench.calibration import CHECKED, LEARNED, run_queries
    from wallaby_lab.commands.bench import require_tables
    from wallaby_lab.simulation.predict.checks import checked
    from wallaby_lab.simulation.predict.known import taught

    require_tables(data)
    here = _on_this_machine(cluster)
    with tempfile.TemporaryDirectory(prefix="wallaby-logs-") as directory:
        logs = kept or Path(directory)
        settings = {} if broadcast is None else {"broadcast": broadcast}
        runs = run_queries(data.absolute(), queries, (*LEARNED, *CHECKED), logs, note, settings)

    def on(count: int) -> PredictedCluster:
        return replace(here, workers=count)

    few, more = LEARNED
    known, checks = {}, []
    for number in queries:
        name, ran = f"q{number}", runs[number]
        known[name] = taught(ran[more], on(more), ran[few])
        shown = name if broadcast is None else f"{name}, broadcast {broadcast}"
        checks += [checked(shown, known[name], ran[count], on(count)) for count in CHECKED]
    return known, checks


def _on_this_machine(cluster: PredictedCluster) -> PredictedCluster:
    return replace(cluster, threads=1, shared_cores=len(os.sched_getaffinity(0)))


class _Policies(NamedTuple):
    """The measured table of policies: workers, cores, and seconds by query and policy."""

    workers: int
    cores: int
    seconds: dict[str, dict[str, Measured]]


def _read_policies(path: Path, data: Path) -> _Policies:
    """Read the table from a file; it must be of the same data, which is checked before hours are spent."""
    from wallaby_lab.bench.losses import lost_seconds, usual_seconds
    from wallaby_lab.simulation.predict.checks import Measured

    seconds: dict[str, dict[str, Measured]] = {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        for policy, by_query in found["runs"].items():
            for number, runs in by_query.items():
                ran = Measured(usual_seconds(runs["undisturbed"]), lost_seconds(runs))
                seconds.setdefault(f"q{number}", {})[policy] = ran
        table, measured_on = _Policies(int(found["workers"]), int(found["cores"]), seconds), found["data"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{path} is not a table of policies: {error}",
            fix="Make one: wallaby bench paper --figure policies.",
        ) from error
    if measured_on != data.name:
        raise InvalidArgumentError(
            f"{path} was measured on {measured_on}.", fix=f"Give one that was measured on {data.name}."
        )
    return table


def _beside_policies(known: dict[str, Known], measured: _Policies, cluster: PredictedCluster) -> list[Check]:
    from wallaby_lab.simulation.predict.checks import checked_policies

    of = replace(_on_this_machine(cluster), workers=measured.workers, shared_cores=measured.cores)
    return checked_policies(known, measured.seconds, of)


def _require_together(data: Path | None, options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if data is None and given:
        raise InvalidArgumentError(
            f"{given[0]} applies only to runs over --data.", fix="Give --data too, or event logs alone."
        )


def _tell(checks: list[Check]) -> None:
    for each in checks:
        verdict = "near enough" if each.holds else "NOT near enough"
        say(
            f"{each.what}, {each.query} on {each.workers} workers: {each.predicted:.2f} predicted, "
            f"{each.measured:.2f} measured, {each.off:.0%} off: {verdict}"
        )


def _show(lines: list[Line]) -> None:
    from rich.table import Table

    columns = list(dict.fromkeys(what for line in lines for what in line.seconds))
    table = Table("query", "workers", *(f"{what}, s" for what in columns), "rewound")
    for line in lines:
        times = [f"{line.seconds[what]:.2f}" if what in line.seconds else "" for what in columns]
        rewound = "" if line.rewound is None else str(line.rewound)
        table.add_row(line.query, str(line.workers), *times, rewound)
    out.print(table)
