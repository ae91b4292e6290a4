"""The workloads that can be run under budgets: where their tables are, and the text of their queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from wallaby_lab import tpcds, tpch
from wallaby_lab.bench.budgets import exploding


@dataclass(frozen=True, slots=True)
class BudgetWorkload:
    """Tables and numbered queries."""

    title: str
    numbers: Sequence[int]
    register: Callable[[SparkSession, Path], None]
    text: Callable[[Path, int], str]


def _exploding(spark: SparkSession, directory: Path) -> None:
    exploding.register(spark, exploding.generate(directory))


WORKLOADS: Final = {
    "tpch": BudgetWorkload("TPC-H", tpch.QUERIES, tpch.register, lambda _, number: tpch.query(number)),
    "tpcds": BudgetWorkload("TPC-DS", tpcds.QUERIES, tpcds.register, tpcds.query),
    "exploding": BudgetWorkload(
        "Exploding joins", range(2_000), _exploding, lambda _, number: exploding.query(number)
    ),
}
