"""Rounds with real processes: what is timed and compared, and what is said of a contender that does not start."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from wallaby_lab import tpch
from wallaby_lab.bench.lane import ContenderError, Lane
from wallaby_lab.bench.rounds import Timed, compare_answers, run_rounds

pytestmark = pytest.mark.timeout(120)
CORES = sorted(os.sched_getaffinity(0))[:1]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("data"), 0.01)


def test_queries_are_timed_in_rounds_and_who_does_not_start_is_named(data: Path) -> None:
    said: list[str] = []
    measured = run_rounds(["duckdb", "polars", "no such engine"], (6, 12), data, CORES, "1g", 2, said.append)
    results: dict[str, dict[int, Timed]] = measured["results"]
    assert list(measured["absent"]) == ["no such engine"]
    for name in ("duckdb", "polars"):
        seen = {n: (len(one.seconds), one.rows, one.error) for n, one in results[name].items()}
        assert seen == {6: (2, 1, ""), 12: (2, 2, "")}
        assert all(one.peak_bytes > 0 and not one.compared for one in results[name].values())
    assert len(said) == 7, "three that start or do not, and each query of each round"
    assert 0 < measured["timed_seconds"] <= measured["took_seconds"] + 0.1


def test_a_contender_that_does_not_start_says_why(tmp_path: Path) -> None:
    lane = Lane("no such engine", tmp_path, CORES, "1g")
    with pytest.raises(ContenderError, match="no such engine"):
        lane.await_start()


def save(folder: Path, name: str, table: pa.Table) -> None:
    with pa.OSFile(str(folder / f"{name}-6.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as to:
        to.write_table(table)


def test_another_answer_is_noticed_wherever_spark_stands(tmp_path: Path) -> None:
    right = pa.table({"revenue": pa.array([1], pa.int64())})
    save(tmp_path, "first", pa.table({"sum": pa.array([1.0])}))
    save(tmp_path, "spark", right)
    save(tmp_path, "other", pa.table({"revenue": [2]}))
    save(tmp_path, "more", pa.table({"revenue": [1], "and": [1]}))
    timed = {name: Timed([1.0]) for name in ("first", "spark", "other", "more")}
    compare_answers(tmp_path, 6, timed)
    assert {name: bool(one.difference) for name, one in timed.items()} == {
        "first": False,
        "spark": False,
        "other": True,
        "more": True,
    }
    assert {name for name, one in timed.items() if one.compared} == {"first", "other", "more"}


def test_without_spark_nothing_is_compared(tmp_path: Path) -> None:
    timed = {name: Timed([1.0]) for name in ("duckdb", "wallaby")}
    compare_answers(tmp_path, 6, timed)
    assert not any(one.compared or one.difference for one in timed.values())
