"""The rates by which parts of plans are chosen (`wallaby.plan.choice`), measured.

What Spark needs for a row beyond what the engine needs: each query below does one thing more than the one before, so
its time tells what that thing costs. What the hand-over costs: reading kept rows of two widths gives the cost of a row
and that of a byte. A Python function that does nothing stands for rows that Spark has to make first. What a part costs
however small it is: one over a table of 25 rows. All but the last are CPU time of all processes of the session, so
other work on the machine hardly changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from statistics import median
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from wallaby.plan.choice import RATES, PlanWork, Rates, work_of
from wallaby_lab.bench.pipelines.handover import hand_over
from wallaby_lab.bench.pipelines.pairs import PipelineSetup, measure_pair, write_nowhere
from wallaby_lab.differential.layouts import configured

#: By rate, a query that needs it, after those whose rates are known by then.
QUERIES: Final = {
    "read": "select sum(l_quantity) a, max(l_suppkey) b, max(l_shipdate) c from lineitem",
    "probe": "select sum(l_quantity) a, max(s_nationkey) b from lineitem join supplier on l_suppkey = s_suppkey",
    "reduce": (
        "select count(*) a, max(q) b from (select l_partkey, l_suppkey, sum(l_quantity) q from lineitem group by 1, 2)"
    ),
    "join": "select sum(l_quantity) a, max(o_orderdate) b from lineitem join orders on l_orderkey = o_orderkey",
}
#: Rows that are written as they are read: few narrow columns, and all of them.
WRITTEN: Final = ("select l_orderkey, l_linenumber from lineitem", "select * from lineitem")
#: Both engines exchange both sides.
_EXCHANGED: Final = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.wallaby.broadcast": "0"}
_NOTHING: Final = Rates(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def measure_rates(setup: PipelineSetup) -> dict[str, Any]:
    """All rates, beside those in the code."""
    found, queries = _NOTHING, {}
    for name, text in QUERIES.items():
        with configured(setup.spark, _EXCHANGED if name == "join" else {}):
            work = _work(setup, setup.spark.sql(text))
            pair = measure_pair(setup, partial(_collect, setup, text))
        if pair.queries_on != 1 or pair.queries_off:
            raise RuntimeError(
                f"The query for the rate {name} did not run in the TaskManagers, or on Spark too."
            )
        saved = median(pair.off_cpu) - median(pair.on_cpu)
        found = _with(found, name, saved, work)
        queries[name] = {"work": asdict(work), **asdict(pair)}
        setup.say(f"rates, {name}: {getattr(found, name) * 1e6:.3f} µs")
    handed = [hand_over(setup, kind) for kind in ("narrow", "wide")]
    row, byte = row_and_byte(*((one.rows, one.size_bytes, median(one.wallaby_cpu)) for one in handed))
    leaf_row, fixed = _leaf_row(setup), _fixed(setup)
    write_row, write_byte = row_and_byte(*(_saved_by_writing(setup, found, text) for text in WRITTEN))
    found = replace(
        found,
        row=row,
        byte=byte,
        leaf_row=leaf_row,
        fixed=fixed,
        write_row=write_row,
        write_byte=write_byte,
    )
    setup.say(
        f"rates, row: {row * 1e6:.3f} µs, byte: {byte * 1e9:.2f} ns, leaf row: {leaf_row * 1e6:.3f} µs, "
        f"fixed: {fixed:.3f} s, written row: {write_row * 1e6:.3f} µs, byte: {write_byte * 1e9:.2f} ns"
    )
    return {
        "measured": asdict(found),
        "in_code": asdict(RATES),
        "queries": queries,
        "handed": [asdict(one) for one in handed],
    }


def _collect(setup: PipelineSetup, text: str) -> None:
    setup.spark.sql(text).collect()


def _work(setup: PipelineSetup, df: DataFrame) -> PlanWork:
    physical = setup.engine.inspection.plan(df)
    if physical is None:
        raise RuntimeError("; ".join(setup.engine.fallback_reasons(df)))
    return work_of(physical)


def _with(known: Rates, name: str, saved: float, work: PlanWork) -> Rates:
    """The rates with one more: what a query saves beyond what the known ones explain. Never below zero."""
    amounts = {"read": work.read, "probe": work.probed, "reduce": work.reduced, "join": work.joined}
    explained = sum(getattr(known, other) * amount for other, amount in amounts.items() if other != name)
    return replace(known, **{name: max((saved - explained) / max(amounts[name], 1.0), 0.0)})


def row_and_byte(*measured: tuple[int, int, float]) -> tuple[float, float]:
    """What a row and a byte cost, from rows, bytes and seconds of two hand-overs. Neither is below zero."""
    (rows, size, seconds), (other_rows, other_size, other_seconds) = measured
    apart = rows * other_size - other_rows * size
    if apart == 0:
        return seconds / rows, 0.0
    row = (seconds * other_size - other_seconds * size) / apart
    byte = (rows * other_seconds - other_rows * seconds) / apart
    if byte < 0:
        return seconds / rows, 0.0
    if row < 0:
        return 0.0, seconds / size
    return row, byte


def _leaf_row(setup: PipelineSetup) -> float:
    """What a row costs that Spark has to make, beyond what it costs Spark alone to take it further.

    A function that gives its rows back stands for whatever only Spark can run.
    """

    def act() -> None:
        rows = setup.spark.table("orders").select("o_orderkey", "o_custkey")
        made = rows.mapInArrow(_same, "o_orderkey long, o_custkey long")
        made.selectExpr("sum(o_orderkey)", "max(o_custkey)").collect()

    with configured(setup.spark, {"spark.wallaby.leaf.minimum": "0"}):
        pair = measure_pair(setup, act)
    if pair.queries_on != 1:
        raise RuntimeError("The rows of a Python function were not handed over to the TaskManagers.")
    orders = max(setup.spark.table("orders").count(), 1)
    return max((median(pair.on_cpu) - median(pair.off_cpu)) / orders, 0.0)


def _saved_by_writing(setup: PipelineSetup, known: Rates, text: str) -> tuple[int, int, float]:
    """Rows, their bytes, and what writing them here saves beyond what reading them here does."""
    work = _work(setup, setup.spark.sql(text))
    path = str(setup.folder / "rates")
    with configured(setup.spark, {"spark.wallaby.below": "always"}):
        pair = measure_pair(setup, lambda: setup.spark.sql(text).write.mode("overwrite").parquet(path))
    if len(pair.parts) != 1:
        raise RuntimeError("The TaskManagers did not write the rows.")
    saved = median(pair.off_cpu) - median(pair.on_cpu) - known.read * work.read
    return int(work.rows), int(work.size_bytes), max(saved, 0.0)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _fixed(setup: PipelineSetup) -> float:
    """What a part costs over a table of 25 rows, where it saves nothing."""
    text = "select n_regionkey, count(*) n from nation group by n_regionkey"
    with configured(setup.spark, {"spark.wallaby.below": "always"}):
        pair = measure_pair(
            setup, lambda: write_nowhere(setup.spark.sql(text)), rounds_factor=5, warm_ups_factor=5
        )
    if len(pair.parts) != 1:
        raise RuntimeError("The part over a small table did not run in the TaskManagers.")
    return max(pair.added_seconds, 0.0)
