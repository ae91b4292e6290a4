"""Pipelines with the engine below and on Spark alone: times, equal answers, and what ran in the TaskManagers."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from wallaby_lab.bench.pipelines.cases import PipelineCase, cases, writes
from wallaby_lab.bench.pipelines.pairs import SWITCH, PipelineSetup, measure_pair, switched


def measure_pipelines(setup: PipelineSetup) -> dict[str, Any]:
    """Measure every pipeline."""
    return _measured(setup, "pipeline", cases(setup.folder))


def measure_writes(setup: PipelineSetup) -> dict[str, Any]:
    """Measure every write of a whole table."""
    return _measured(setup, "write", writes(setup.folder))


def _measured(setup: PipelineSetup, kind: str, chosen: tuple[PipelineCase, ...]) -> dict[str, Any]:
    for number, case in enumerate(chosen):
        setup.progress.run(case.name, partial(_measured_case, setup, kind, case, f"{kind}{number}"))
    return {"cases": setup.progress.cases}


def _measured_case(setup: PipelineSetup, kind: str, case: PipelineCase, name: str) -> dict[str, Any]:
    pair = measure_pair(setup, partial(_act, setup, case, name))
    equal = _is_equal(setup, case, name)
    setup.say(
        f"{kind}, {case.name}: {pair.times_as_fast:.2f} times as fast, {len(pair.parts)} parts here, "
        f"{'equal' if equal else 'DIFFERENT'}"
    )
    return {"equal": equal, "times_as_fast": pair.times_as_fast, **asdict(pair)}


def _act(setup: PipelineSetup, case: PipelineCase, name: str) -> None:
    """Both ways leave their answers beside each other."""
    case.act(setup.spark, f"{name}_{setup.spark.conf.get(SWITCH)}")


def _is_equal(setup: PipelineSetup, case: PipelineCase, name: str) -> bool:
    """Did both ways leave the same rows?"""
    with switched(setup.spark, on=False):
        ours, sparks = (digest(case.answer(setup.spark, f"{name}_{on}")) for on in ("true", "false"))
    return ours == sparks


def digest(df: DataFrame) -> tuple[Any, ...]:
    """The number of rows and the sum of their hashes, by Spark: equal for the same rows in any order."""
    hashes = df.selectExpr("cast(xxhash64(*) as decimal(38, 0)) h")
    return tuple(hashes.selectExpr("count(*)", "sum(h)").collect()[0])
