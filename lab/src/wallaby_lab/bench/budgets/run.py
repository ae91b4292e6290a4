"""Run queries under one budget, and record the outcome of each: answer, peak, and whether a worker was lost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from wallaby.engine import Engine, attach
from wallaby.errors import WallabyError
from wallaby.results.worker_info import WorkerInfo
from wallaby_lab.bench.budgets.answers import SparkAnswers
from wallaby_lab.bench.memory import Peak

MIB: Final = 1 << 20
#: What a TaskManager may take besides its budget: libraries, and memory that their allocators keep.
ALLOWANCE_MIB: Final = 300
#: The time between two samples.
SAMPLE_SECONDS: Final = 0.05
#: A sample takes about a millisecond for each 100 MiB, during which the process is paused.
PAUSE_FACTOR: Final = 4
#: A lost TaskManager is replaced within this time, even on a busy machine.
REPLACED_WITHIN_SECONDS: Final = 120.0
#: The condition of the only error that a small budget may cause.
MEMORY_CONDITION: Final = "WALLABY_MEMORY_LIMIT"


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """The outcome of a query under a budget. `verdict` is equal, memory, DIFFERENT or FAILED."""

    query: str
    memory: str
    verdict: str
    #: What differs, or the error.
    detail: str
    #: Why Spark ran it, or parts of it.
    reasons: tuple[str, ...]
    rows: int
    seconds: float
    spark_seconds: float
    peak_mib: int
    #: TaskManagers that were replaced while it ran.
    lost: int

    def over_mib(self, budget_mib: int) -> int:
        """How far the peak is beyond the budget and its allowance; 0 if it is within."""
        return max(self.peak_mib - budget_mib - ALLOWANCE_MIB, 0)


def run_budget(
    spark: SparkSession,
    memory: str,
    queries: Mapping[str, str],
    answers: SparkAnswers,
    timeout_seconds: float,
    **settings: Any,
) -> Iterator[BudgetOutcome]:
    """Run each query in one TaskManager with this budget."""
    own = {"workers": 1, "memory": memory, "timeout": timeout_seconds, "spark_errors": False}
    with attach(spark, **own, **settings) as engine:
        for name, text in queries.items():
            expected = answers.of(name, text)
            df = spark.sql(text)
            reasons = tuple(engine.fallback_reasons(df))
            pids = _wait_for_pids(engine)
            verdict, detail, actual = "equal", "", None
            began = time.monotonic()
            with Peak(pids[0], sample_seconds=SAMPLE_SECONDS, pause_factor=PAUSE_FACTOR) as peak:
                try:
                    actual = engine.to_arrow(df)
                except WallabyError as error:
                    memory_ran_out = error.condition == MEMORY_CONDITION
                    verdict, detail = "memory" if memory_ran_out else "FAILED", str(error)
            seconds = round(time.monotonic() - began, 3)
            if actual is not None and (detail := answers.difference(actual, expected, text)):
                verdict = "DIFFERENT"
            rows = 0 if actual is None else actual.num_rows
            lost = len(set(pids) - set(_pids(engine.workers())))
            yield BudgetOutcome(
                *(name, memory, verdict, detail, reasons, rows, seconds, expected.seconds),
                *(peak.bytes // MIB, lost),
            )


def _wait_for_pids(engine: Engine) -> list[int]:
    """The live TaskManagers, once there is one: the query before may have cost the only one."""
    deadline = time.monotonic() + REPLACED_WITHIN_SECONDS
    while not (found := _pids(engine.workers())):
        if time.monotonic() > deadline:
            raise TimeoutError(f"No TaskManager came within {REPLACED_WITHIN_SECONDS:.0f} s.")
        time.sleep(SAMPLE_SECONDS)
    return found


def _pids(workers: list[WorkerInfo]) -> list[int]:
    return [worker.pid for worker in workers if worker.is_live]
