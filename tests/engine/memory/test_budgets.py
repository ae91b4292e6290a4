"""Spark's answers are kept with their order, and ties at a LIMIT may be any of those that tie."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark_sessions import Engines

from wallaby_lab.bench.budgets.answers import SparkAnswers
from wallaby_lab.bench.budgets.exploding import generate, query, register
from wallaby_lab.bench.budgets.run import run_budget

ROWS = "(select * from values (1, 'a'), (2, 'b'), (2, 'c'), (3, 'd') t(k, s))"


def test_an_answer_is_kept_with_its_order_until_the_query_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    answers = SparkAnswers(spark, tmp_path)
    first = answers.of("q1", f"select s, k from {ROWS} order by k, s limit 2")
    assert first.order == ("k", "s")
    assert first.table.to_pydict() == {"s": ["a", "b"], "k": [1, 2]}
    again = SparkAnswers(spark, tmp_path).of("q1", f"select s, k from {ROWS} order by k, s limit 2")
    assert again.table.equals(first.table)
    assert again.seconds == first.seconds
    named = answers.of("q2", f"with t as (select k from {ROWS}) select k from t order by k limit 3")
    assert named.order == ("k",)
    other = answers.of("q1", f"select k from {ROWS} order by k + 1, k")
    assert (other.order, other.table.num_rows) == ((), 4)


def test_rows_that_tie_at_a_limit_may_be_others_that_tie_but_no_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    answers = SparkAnswers(spark, tmp_path)
    text = f"select k, s from {ROWS} order by k limit 2"
    expected = answers.of("q1", text)
    other = "c" if expected.table["s"][1].as_py() == "b" else "b"
    tied = pa.table({"k": [1, 2], "s": ["a", other]}, schema=expected.table.schema)
    wrong = pa.table({"k": [1, 2], "s": ["a", "d"]}, schema=expected.table.schema)
    assert answers.difference(tied, expected, text) == ""
    assert "not one of the rows that tie" in answers.difference(wrong, expected, text)


def test_exploding_queries_run_under_a_budget_and_equal_sparks(
    spark: SparkSession, engines: Engines, tmp_path: Path
) -> None:
    engines.close()  # a session has one engine at a time
    register(spark, generate(tmp_path / "tables"))
    texts = {f"q{seed}": query(seed) for seed in (1, 2)}
    found = list(run_budget(spark, "300m", texts, SparkAnswers(spark, tmp_path / "answers"), 120))
    assert [(one.query, one.verdict, one.lost) for one in found] == [("q1", "equal", 0), ("q2", "equal", 0)]
    assert all(one.peak_mib > 50 for one in found), "nothing was sampled"
