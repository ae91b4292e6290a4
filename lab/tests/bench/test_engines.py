"""What the benchmark asks of a real engine: all figures of a breakdown, a life, and pairs with and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wallaby_lab import tpch
from wallaby_lab.bench.breakdown import HEADINGS
from wallaby_lab.bench.contenders import is_installed, known
from wallaby_lab.bench.lane import ContenderError, Lane
from wallaby_lab.bench.overhead import run_overhead
from wallaby_lab.bench.scaling import measure_cell

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("data"), 0.01)


def test_pairs_with_and_without_fault_tolerance(data: Path) -> None:
    said: list[str] = []
    figures = run_overhead((3, 6), data, CORES, "2g", 2, 1, said.append)
    assert "fault tolerance off" in figures["contenders"][1]
    assert all(len(times) == 2 for key in ("on", "off") for times in figures["seconds"][key].values())
    assert 0 < sum(facts["commits"] for facts in figures["breakdown"].values()) <= figures["tasks"]
    assert 10 < figures["lineage_bytes_per_task"] < 64
    for facts in figures["breakdown"].values():
        assert facts.keys() > HEADINGS.keys()
        busy = facts["scan_seconds"] + facts["kernel_seconds"] + facts["partition_seconds"]
        busy += facts["checksum_seconds"] + facts["waiting_seconds"]
        assert busy == pytest.approx(facts["threads"] * facts["run_seconds"], abs=0.01)
        planned = facts["catalyst_seconds"] + facts["planning_seconds"] + facts["run_seconds"]
        assert planned == pytest.approx(facts["wall_seconds"], abs=0.01)


def test_two_task_managers_a_life_and_growth(data: Path) -> None:
    lane = Lane("wallaby-2", data, CORES, "2g")
    try:
        lane.await_start()
        assert len(set(lane.workers)) == 2
        lives = lane.ask("lifecycle", count=1)
        assert [len(lives[key]) for key in ("attach_seconds", "close_seconds")] == [2, 1]
        assert lane.ask("run", sql=tpch.query(6), save=None)["rows"] == 1
        cell = measure_cell(lane, 3, 1)
        assert len(cell["all_seconds"]) == 1
        assert cell["channels"] >= cell["stages"] > 1
        assert cell["threads"] == 2 * max(len(CORES) // 2, 1)
    finally:
        lane.end()


def test_names_of_engines() -> None:
    assert known("wallaby-4-off") == ("wallaby", "wallaby", {"workers": 4, "tolerant": False})
    assert known("wallaby-0") is None
    assert known("nobody") is None
    assert is_installed("duckdb")
    assert not is_installed("nobody")


def test_further_engines_may_live_in_a_directory_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "pysail").mkdir()
    (tmp_path / "pysail" / "__init__.py").write_text("raise ImportError('found beside')")
    (tmp_path / "pysail" / "spark.py").touch()
    assert is_installed("sail", tmp_path)
    lane = Lane("sail", tmp_path, CORES, "1g", tmp_path)
    with pytest.raises(ContenderError, match="found beside"):
        lane.await_start()
