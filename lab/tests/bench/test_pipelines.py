"""Pipelines on tiny data: every part measures, proves what ran where, and tells it on the page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from wallaby.cli import app
from wallaby_lab import tpch
from wallaby_lab.bench.pipelines import handover, leaves, pipelines, planning
from wallaby_lab.bench.pipelines.cases import cases, writes
from wallaby_lab.bench.pipelines.leaves import is_slower
from wallaby_lab.bench.pipelines.page import pipelines_page
from wallaby_lab.bench.pipelines.pairs import Pair
from wallaby_lab.bench.pipelines.progress import Case, PartProgress, TimeIsUpError
from wallaby_lab.bench.pipelines.rates import row_and_byte
from wallaby_lab.bench.pipelines.run import PARTS, Pace, run_parts
from wallaby_lab.commands import bench_pipelines


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    made = (
        SparkSession.builder.master("local[3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.wallaby.below", "always")  # at this scale nothing is worth it
        .getOrCreate()
    )
    yield made
    made.stop()


@pytest.fixture(scope="module")
def parts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All parts, with one round and few queries."""
    found: dict[str, Any] = {}
    data = tpch.generate(tmp_path_factory.mktemp("data"), 0.01)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "KINDS", {**handover.KINDS, "narrow": ("l_orderkey, l_linenumber", 20_000)})
        for module, name in (
            (planning, "_large"),
            (leaves, "_plain"),
            (leaves, "_small"),
        ):
            patch.setattr(module, name, dict)
        patch.setattr(leaves, "_from_spark", lambda _: {})
        one_run = dict(list(planning._runs().items())[:1])
        patch.setattr(planning, "_runs", lambda: one_run)
        one_plan = dict(list(planning._small().items())[:1])
        patch.setattr(planning, "_small", lambda: one_plan)
        patch.setattr(pipelines, "cases", lambda folder: cases(folder)[2:5:2])
        patch.setattr(pipelines, "writes", lambda folder: writes(folder)[2:])
        for module in (planning, leaves):
            patch.setattr(module, "ROUNDS_FACTOR", 1)
        run_parts(
            spark,
            tuple(PARTS),
            data,
            tmp_path_factory.mktemp("written"),
            2,
            512,
            Pace(rounds=1, warm_ups=0),
            lambda _: None,
            found.__setitem__,
        )
    return found


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_every_part_measures_and_proves_what_ran_where(parts: dict[str, Any]) -> None:
    assert list(parts) == list(PARTS)
    narrow, wide, strings = parts["handover"]["cases"]
    assert 10_000 < narrow["rows"] < 20_000 < wide["rows"] == strings["rows"]
    assert (narrow["columns"], wide["columns"]) == (2, 40)
    assert narrow["size_bytes"] < wide["size_bytes"]
    assert all(
        len(kind[source]) == 1 for kind in (narrow, wide) for source in ("wallaby", "shuffle", "cache")
    )
    assert all(case["parts"][0].endswith("; write") for case in parts["writes"]["cases"])
    for case in (*parts["pipelines"]["cases"], *parts["writes"]["cases"]):
        assert case["equal"], case["name"]
        assert len(case["parts"]) == 1, case["name"]
        assert case["queries_off"] == 0, case["name"]
    plan, run, *_ = parts["planning"]["cases"]
    assert plan["python_ms"] > 0, "below=always has every plan looked at"
    assert "python_ms" not in run
    cached = next(case for case in parts["leaves"]["cases"] if case["name"] == "count of a cached table")
    assert cached["queries_on"] == 0
    assert parts["rates"]["measured"]["byte"] + parts["rates"]["measured"]["row"] > 0


@pytest.mark.spark
def test_the_page_tells_what_was_measured(parts: dict[str, Any]) -> None:
    page = pipelines_page(parts)
    for title in (
        "Rows into Spark's tasks",
        "Pipelines beside SparkSQL",
        "Tables written",
        "What planning costs",
        "Rates",
    ):
        assert f"## {title}\n" in page
    first = parts["pipelines"]["cases"][0]
    assert f"| {first['name']} | " in page
    assert f" | {first['times_as_fast']:.2f} | " in page
    assert "Not as it should be" not in page
    assert "nothing ran here" in pipelines_page(
        {"pipelines": {**parts["pipelines"], "cases": [{**first, "parts": []}]}}
    )


def test_what_an_earlier_run_measured_is_not_measured_again() -> None:
    kept: list[list[str]] = []

    def keep(cases: list[Case]) -> None:
        kept.append([case["name"] for case in cases])

    measured: list[str] = []

    def measure(name: str) -> dict[str, Any]:
        measured.append(name)
        return {"seconds": 2}

    progress = PartProgress([{"name": "b", "seconds": 1}], keep)
    for name in ("a", "b", "c"):
        progress.run(name, partial(measure, name))
    assert measured == ["a", "c"]
    assert kept == [["a", "b"], ["a", "b"], ["a", "b", "c"]], "nothing that was known is lost on the way"
    assert [case["seconds"] for case in progress.cases] == [2, 1, 2]


def test_no_case_begins_when_the_time_is_up() -> None:
    progress = PartProgress([{"name": "a"}], until=0.0)
    progress.run("a", dict)
    with pytest.raises(TimeIsUpError):
        progress.run("b", dict)
    assert [case["name"] for case in progress.cases] == ["a"]


@pytest.mark.spark
def test_the_page_tells_that_a_part_is_not_finished(parts: dict[str, Any]) -> None:
    some = {**parts["pipelines"], "cases": parts["pipelines"]["cases"][:1], "unfinished": True}
    assert "More cases have not been measured yet" in pipelines_page({"pipelines": some})
    assert "More cases" not in pipelines_page(parts)


def test_slower_is_what_medians_and_neighbours_agree_on() -> None:
    assert is_slower(Pair(on=[1.2, 1.3, 1.2], off=[1.0, 1.0, 1.0]))
    assert not is_slower(Pair(on=[1.1, 1.1, 1.1], off=[1.0, 1.0, 1.0]))
    assert not is_slower(Pair(on=[0.014, 0.014, 0.014], off=[0.005, 0.005, 0.005])), (
        "a few milliseconds are noise"
    )


def test_two_hand_overs_tell_what_a_row_and_a_byte_cost() -> None:
    row, byte = row_and_byte(
        (1000, 16_000, 1000 * 2e-6 + 16_000 * 3e-9), (100, 32_000, 100 * 2e-6 + 32_000 * 3e-9)
    )
    assert row == pytest.approx(2e-6)
    assert byte == pytest.approx(3e-9)
    assert row_and_byte((1000, 16_000, 1.0), (100, 32_000, 0.0)) == (1e-3, 0.0), "no rate is below zero"


def test_the_command_refuses_what_it_cannot_do_before_it_starts_spark(tmp_path: Path) -> None:
    run = CliRunner().invoke
    said = run(app, ["bench", "pipelines", str(tmp_path)])
    assert said.exit_code != 0
    assert "no TPC-H tables" in str(said.output) + str(said.exception)
    said = run(app, ["bench", "pipelines", str(tmp_path), "--part", "nothing"])
    assert "There is no part nothing" in str(said.output) + str(said.exception)
    other = tmp_path / "other.json"
    other.write_text('{"data": "sf7", "parts": {}}')
    with pytest.raises(Exception, match="has no parts over sf1, but sf7"):
        bench_pipelines._kept(other, "sf1")
    other.write_text('{"data": "sf1", "parts": {"rates": {}}}')
    assert bench_pipelines._kept(other, "sf1") == {"rates": {}}
