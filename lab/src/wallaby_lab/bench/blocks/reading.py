"""Reading Catalyst's plans: what it adds to Catalyst's own time, over all 22 queries."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from wallaby.catalyst.jvm import warm_up
from wallaby.reading.reader import read_plan
from wallaby_lab import tpch
from wallaby_lab.bench.blocks.block import Block
from wallaby_lab.bench.contenders.sparksql import session

#: The JVM's compiler needs some rounds of all queries.
WARM_UP_ROUNDS: Final = 2


def measure_reading(data: Path, rounds: int) -> list[Block]:
    """From SQL text to an optimized plan by Catalyst; from there to our tree by us. The best of each query."""
    spark = session("local[1]", "1g", data)
    try:
        warm_up(spark)
        catalyst: dict[int, list[float]] = {number: [] for number in tpch.QUERIES}
        ours: dict[int, list[float]] = {number: [] for number in tpch.QUERIES}
        for round_ in range(WARM_UP_ROUNDS + rounds):
            for number in tpch.QUERIES:
                began = time.perf_counter()
                df = spark.sql(tpch.query(number))
                query: Any = df._jdf
                query.queryExecution().optimizedPlan()
                optimized = time.perf_counter()
                read = read_plan(df)
                ended = time.perf_counter()
                assert read.relation is not None, f"query {number} cannot be read"
                if round_ >= WARM_UP_ROUNDS:
                    catalyst[number].append(optimized - began)
                    ours[number].append(ended - optimized)
    finally:
        spark.stop()
    seconds, bare_seconds = (sum(min(each) for each in times.values()) for times in (ours, catalyst))
    return [Block("plan reading, added to 22 queries", "Catalyst's own time for them", seconds, bare_seconds)]
