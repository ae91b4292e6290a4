"""The course: contenders against each other, in interleaved rounds, each in a process that was started for it.

One query goes before the clock runs. In every round each query is asked of each contender in turn, so that what
else happens on the machine hits all alike. Answers of the first round are compared with the first contender's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from wallaby import tpch
from wallaby.bench.memory import Peak
from wallaby.compare import DifferentError, require_same
from wallaby.errors import WallabyError

#: The query that is run untimed, once by each.
WARM_UP = 6
END_SECONDS = 30


class ContenderError(WallabyError):
    """A contender does not start, or has ended."""

    condition = "WALLABY_BENCH_CONTENDER"


@dataclass(slots=True)
class Timed:
    """One query by one contender."""

    seconds: list[float] = field(default_factory=list)
    rows: int = 0
    #: Empty if the answer is that of the first contender.
    difference: str = ""
    error: str = ""
    peak_bytes: int = 0
    breakdown: dict[str, Any] = field(default_factory=dict)


class Lane:
    """A contender's process."""

    def __init__(self, name: str, data: Path, cores: Sequence[int], memory: str) -> None:
        self.name = name
        told = {"name": name, "data": str(data), "cores": list(cores), "memory": memory}
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            [sys.executable, "-m", "wallaby.bench.child", json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            start_new_session=True,
        )
        try:
            started = self._read()
        except ContenderError:
            self.end()
            raise
        self.what: str = started["what"]
        self.start_seconds: float = started["start_seconds"]
        self.pid = self._process.pid

    def tell(self, name: str, **arguments: object) -> dict[str, Any]:
        """Have something done; its answer, or `error`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def end(self) -> None:
        """Let it end; kill what does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _last_words(self) -> str:
        self._process.wait(END_SECONDS)
        self._said.seek(0)
        lines = [line.strip() for line in self._said if line.strip()]
        return lines[-1] if lines else f"it exited with {self._process.returncode}, without a word."

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ContenderError(
                f"{self.name} has ended: {self._last_words()}", fix="Is it installed? Has it enough memory?"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


def run_course(
    names: Sequence[str],
    queries: Sequence[int],
    data: Path,
    cores: Sequence[int],
    memory: str,
    rounds: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """All contenders on all queries: plain figures, for `report.py` and for JSON."""
    with ExitStack() as stack:
        lanes = []
        for name in names:
            lane = Lane(name, data, cores, memory)
            stack.callback(lane.end)
            lanes.append(lane)
            say(f"{name}: {lane.what}, started in {lane.start_seconds:.1f} s")
            lane.tell("run", sql=tpch.query(WARM_UP), save=None)
        results = {lane.name: {number: Timed() for number in queries} for lane in lanes}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaby-bench-")))
        for round_ in range(rounds):
            for number in queries:
                for lane in lanes:
                    save = folder / f"{lane.name}-{number}.arrow" if round_ == 0 else None
                    _time(lane, number, results[lane.name][number], save)
                if round_ == 0:
                    _compare(folder, number, [(lane.name, results[lane.name][number]) for lane in lanes])
                say(_line(round_, number, {lane.name: results[lane.name][number] for lane in lanes}))
        for lane in lanes:
            for number in queries:
                told = lane.tell("breakdown", sql=tpch.query(number))
                results[lane.name][number].breakdown = told.get("answer", {})
        return {
            "contenders": {
                lane.name: {"what": lane.what, "start_seconds": round(lane.start_seconds, 2)}
                for lane in lanes
            },
            "results": results,
        }


def _time(lane: Lane, number: int, timed: Timed, save: Path | None) -> None:
    if timed.error:
        return
    with Peak(lane.pid) as peak:
        told = lane.tell("run", sql=tpch.query(number), save=str(save) if save else None)
    timed.peak_bytes = max(timed.peak_bytes, peak.bytes)
    if "error" in told:
        timed.error = told["error"]
        return
    timed.seconds.append(round(told["answer"]["seconds"], 4))
    timed.rows = told["answer"]["rows"]


def _compare(folder: Path, number: int, timed: Sequence[tuple[str, Timed]]) -> None:
    (first, expected), *others = timed
    if expected.error:
        return
    right = _read(folder / f"{first}-{number}.arrow")
    for name, result in others:
        if result.error:
            continue
        answer = _read(folder / f"{name}-{number}.arrow")
        try:
            require_same(_as(answer, right), right, order=tpch.ORDERS[number])
        except (DifferentError, pa.ArrowException) as error:
            result.difference = str(error).partition("\n")[0]


def _as(answer: pa.Table, right: pa.Table) -> pa.Table:
    """Another engine's answer under Spark's names and types: sums and averages have others everywhere."""
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
