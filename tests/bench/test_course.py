"""A course with real processes: what is timed and compared, and what is said of a contender that does not start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wallaby import tpch
from wallaby.bench.course import ContenderError, Lane, Timed, _compare, run_course

pytestmark = pytest.mark.timeout(120)
CORES = sorted(os.sched_getaffinity(0))[:1]


def test_queries_are_timed_in_rounds(tmp_path: Path) -> None:
    data = tpch.generate(tmp_path / "data", 0.01)
    said: list[str] = []
    course = run_course(["duckdb"], (6, 12), data, CORES, "1g", 2, said.append)
    results: dict[int, Timed] = course["results"]["duckdb"]
    assert {number: (len(one.seconds), one.rows, one.error) for number, one in results.items()} == {
        6: (2, 1, ""),
        12: (2, 2, ""),
    }
    assert all(one.peak_bytes > 0 for one in results.values())
    assert len(said) == 5, "the start, and each query of each round"


def test_a_contender_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ContenderError, match="no such engine"):
        Lane("no such engine", tmp_path, CORES, "1g")


def test_another_answer_is_noticed(tmp_path: Path) -> None:
    import pyarrow as pa

    for name, rows in (("first", [1]), ("same", [1]), ("other", [2])):
        table = pa.table({"revenue": rows})
        with (
            pa.OSFile(str(tmp_path / f"{name}-6.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as to,
        ):
            to.write_table(table)
    timed = [(name, Timed([1.0])) for name in ("first", "same", "other")]
    _compare(tmp_path, 6, timed)
    assert [bool(one.difference) for _, one in timed] == [False, False, True]
