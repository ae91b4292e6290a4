"""Rounds of a benchmark: contenders against each other, in interleaved rounds, each in its own process.

One query runs before the clock starts. In every round each query runs on each contender in turn, so that other load on
the machine affects all alike. Memory is sampled in the first round only, and everything that is not timed comes after
the last: the breakdown of times, and the times of attaching and closing. Answers of the first round are compared with
SparkSQL's, if it takes part.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from wallaby_lab import tpch
from wallaby_lab.bench.lane import ContenderError, Lane
from wallaby_lab.bench.memory import Peak
from wallaby_lab.compare import DifferentError, require_same

#: The query that each contender runs once, untimed.
WARM_UP: Final = 6
#: The contender whose answers are right by definition.
MEASURE: Final = "spark"
#: How often an engine is closed and attached again, to measure it.
LIVES: Final = 5


@dataclass(slots=True)
class Timed:
    """One query on one contender."""

    seconds: list[float] = field(default_factory=list)
    rows: int = 0
    #: Was the answer compared with SparkSQL's?
    compared: bool = False
    #: How it differs; empty if it does not.
    difference: str = ""
    error: str = ""
    #: The most that all its processes, and that its workers alone, held at once.
    peak_bytes: int = 0
    worker_peak_bytes: int = 0
    breakdown: dict[str, Any] = field(default_factory=dict)


def run_rounds(
    names: Sequence[str],
    queries: Sequence[int],
    data: Path,
    cores: Sequence[int],
    memory: str,
    rounds: int,
    say: Callable[[str], None],
    packages: Path | None = None,
) -> dict[str, Any]:
    """All contenders on all queries: plain figures, for `report.py` and for JSON."""
    began = time.monotonic()
    with ExitStack() as stack:
        lanes, absent = _start(stack, [Lane(name, data, cores, memory, packages) for name in names], say)
        results = {lane.name: {number: Timed() for number in queries} for lane in lanes}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaby-bench-")))
        for round_ in range(rounds):
            for number in queries:
                for lane in lanes:
                    save = folder / f"{lane.name}-{number}.arrow" if round_ == 0 else None
                    _time(lane, number, results[lane.name][number], save)
                if round_ == 0:
                    compare_answers(folder, number, {lane.name: results[lane.name][number] for lane in lanes})
                say(_line(round_, number, {lane.name: results[lane.name][number] for lane in lanes}))
        contenders: dict[str, dict[str, Any]] = {}
        for lane in lanes:
            contenders[lane.name] = {"what": lane.what, "start_seconds": round(lane.start_seconds, 2)}
            for number in queries:
                told = lane.tell("breakdown", sql=tpch.query(number))
                results[lane.name][number].breakdown = told.get("answer", {})
            contenders[lane.name] |= lane.tell("lifecycle", count=LIVES).get("answer", {})
        timed = sum(sum(one.seconds) for by_query in results.values() for one in by_query.values())
        return {
            "contenders": contenders,
            "absent": absent,
            "results": results,
            "took_seconds": round(time.monotonic() - began, 1),
            "timed_seconds": round(timed, 3),
        }


def _start(
    stack: ExitStack, started: Sequence[Lane], say: Callable[[str], None]
) -> tuple[list[Lane], dict[str, str]]:
    """Start and warm up the contenders; those that do not start are returned with the reason."""
    lanes: list[Lane] = []
    absent: dict[str, str] = {}
    for lane in started:
        try:
            lane.await_start()
        except ContenderError as error:
            absent[lane.name] = error.what
            say(f"{lane.name} does not take part: {error.what}")
            continue
        stack.callback(lane.end)
        lanes.append(lane)
        say(f"{lane.name}: {lane.what}, started in {lane.start_seconds:.1f} s")
    for lane in lanes:
        lane.tell("run", sql=tpch.query(WARM_UP), save=None)
    if not lanes:
        raise ContenderError("No contender has started.", fix="See the lines above.")
    return lanes, absent


def _time(lane: Lane, number: int, timed: Timed, save: Path | None) -> None:
    if timed.error:
        return
    with Peak(lane.pid, lane.workers) if save else nullcontext() as peak:
        told = lane.tell("run", sql=tpch.query(number), save=str(save) if save else None)
    if peak is not None:
        timed.peak_bytes, timed.worker_peak_bytes = peak.bytes, peak.worker_bytes
    if "error" in told:
        timed.error = told["error"]
        return
    timed.seconds.append(round(told["answer"]["seconds"], 4))
    timed.rows = told["answer"]["rows"]


def compare_answers(folder: Path, number: int, timed: dict[str, Timed]) -> None:
    """Compare the saved answers to a query with SparkSQL's, if there is one."""
    if MEASURE not in timed or timed[MEASURE].error:
        return
    right = _read(folder / f"{MEASURE}-{number}.arrow")
    for name, result in timed.items():
        if name == MEASURE or result.error:
            continue
        result.compared = True
        answer = _read(folder / f"{name}-{number}.arrow")
        try:
            require_same(_as(answer, right), right, order=tpch.ORDERS[number])
        except (DifferentError, pa.ArrowException, ValueError) as error:
            result.difference = str(error).partition("\n")[0]


def _as(answer: pa.Table, right: pa.Table) -> pa.Table:
    """Another engine's answer in Spark's names and types, because engines differ in the types of sums and averages."""
    return (
        answer
        if answer.schema == right.schema
        else answer.rename_columns(right.schema.names).cast(right.schema)
    )


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _line(round_: int, number: int, timed: dict[str, Timed]) -> str:
    parts = [
        f"{name} {one.seconds[-1]:.2f}{' DIFFERS' if one.difference else ''}"
        if one.seconds
        else f"{name} failed"
        for name, one in timed.items()
    ]
    return f"round {round_ + 1}, query {number:2d}: {', '.join(parts)}"
