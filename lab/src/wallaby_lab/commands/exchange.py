"""`wallaby tpch exchange`: how much each TPC-H query moves between stages, beside what Spark moves for it.

Spark's figures are those of its own status store: what its stages wrote for shuffles, and what it broadcast. Ours are
in memory and not compressed; Spark's shuffles are LZ4, so their size before that is given as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wallaby.commands.terminal import note, out
from wallaby.observe.units import size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from wallaby.engine import Engine

EXAMPLES = """
Examples:

  wallaby tpch exchange data/sf1 --workers 2

  wallaby tpch exchange data/sf10 --query 9 --query 18 --memory 10g

  wallaby tpch exchange data/sf10 --no-spark
"""
_SPARK_SLOTS: Final = 2
_HEADS: Final = (
    "query",
    "stages",
    "broadcast",
    "partitioned",
    "exchanged",
    "sent",
    "Spark wrote",
    "before LZ4",
    "Spark broadcast",
    "answer",
)


@dataclass(frozen=True, slots=True)
class SparkMoved:
    """Bytes that Spark moved for one query."""

    shuffled: int
    uncompressed: int
    broadcast: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The same for the engine, with the shape of its plan. `exchanged`: see `observe.exchanged`."""

    stages: int
    broadcast_joins: int
    partitioned_joins: int
    exchanged: int
    #: Between different workers.
    sent: int


def exchange(
    directory: Annotated[Path, typer.Argument(help="Where the eight tables are.")],
    query: Annotated[list[int] | None, typer.Option(help="A query, 1 to 22. Repeatable.")] = None,
    workers: Annotated[int, typer.Option(help="TaskManagers.", min=1, max=64)] = 2,
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver, for both.")] = "4g",
    by_spark: Annotated[
        bool,
        typer.Option("--spark/--no-spark", help="Also run each query on Spark, and compare the answers."),
    ] = True,
) -> None:
    """Print the bytes that each query exchanges, beside Spark's shuffle bytes."""
    from wallaby.commands.session import engine_session, spark_session
    from wallaby_lab import tpch
    from wallaby_lab.compare import same

    numbers = tuple(query or tpch.QUERIES)
    texts = {number: tpch.query(number) for number in numbers}
    conf = {"spark.driver.memory": memory, "spark.sql.session.timeZone": "UTC"}
    theirs: dict[int, SparkMoved] = {}
    answers: dict[int, Any] = {}
    if by_spark:
        with spark_session(f"local[{_SPARK_SLOTS}]", conf, "wallaby tpch exchange") as spark:
            tpch.register(spark, directory)
            for number in numbers:
                theirs[number], answers[number] = on_spark(spark, spark.sql(texts[number]))
                note(f"query {number} on Spark: {size(theirs[number].shuffled)} shuffled")
    rows: list[tuple[str, ...]] = []
    ours: dict[int, Moved] = {}
    with engine_session(f"local[{workers + 2}]", workers, conf) as (spark, engine):
        tpch.register(spark, directory)
        for number in numbers:
            df = spark.sql(texts[number])
            reasons = engine.fallback_reasons(df)
            if reasons:
                rows.append(_row(number, None, theirs.get(number), "; ".join(reasons)))
                continue
            ours[number], answer = on_wallaby(engine, df)
            verdict = "not compared"
            if by_spark:
                equal = same(answer, answers[number], order=tpch.ORDERS[number])
                verdict = "equal" if equal else "DIFFERS"
            rows.append(_row(number, ours[number], theirs.get(number), verdict))
            note(f"query {number}: {size(ours[number].exchanged)} exchanged")
    rows.append(_total(ours, {number: theirs[number] for number in ours if by_spark}))
    _show(rows)
    if any(row[-1] == "DIFFERS" for row in rows):
        raise typer.Exit(1)


def on_wallaby(engine: Engine, df: DataFrame) -> tuple[Moved, Any]:
    """Run a query by the engine."""
    from wallaby.lineage.graph import LinkKind
    from wallaby.plan.physical import JoinFragment

    result = engine.run(df, observed=True)
    answer = result.arrow()
    plan, stats = result.plan, result.stats
    assert plan is not None, "its reasons were asked for"
    assert stats.detail is not None, "it was observed"
    sides = sum(link.kind is LinkKind.SIDE and link.required for link in plan.graph.links)
    joins = sum(isinstance(fragment, JoinFragment) for fragment in plan.fragments)
    stages = len(plan.graph.stages)
    return Moved(stages, sides, joins, stats.detail.exchanged_bytes, stats.detail.sent_bytes), answer


def on_spark(spark: SparkSession, df: DataFrame) -> tuple[SparkMoved, Any]:
    """Run a query by Spark and see what its stages wrote."""
    before = _shuffled_bytes(spark)
    answer = df.toArrow()
    shuffled = sum(written for stage, written in _shuffled_bytes(spark).items() if stage not in before)
    sizes = _data_sizes(df._jdf.queryExecution().executedPlan())
    uncompressed = sum(size for name, size in sizes if name.startswith("ShuffleExchange"))
    broadcast = sum(size for name, size in sizes if name.startswith("BroadcastExchange"))
    return SparkMoved(shuffled, uncompressed, broadcast), answer


def _shuffled_bytes(spark: SparkSession) -> dict[int, int]:
    """What each stage that Spark still knows has written for shuffles; it forgets the oldest after a thousand."""
    gateway: Any = spark.sparkContext._gateway
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    nothing = gateway.jvm.java.util.ArrayList()
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    stages = context.statusStore().stageList(nothing, False, False, quantiles, nothing)
    found = (stages.apply(at) for at in range(stages.size()))
    return {int(stage.stageId()): int(stage.shuffleWriteBytes()) for stage in found}


def _data_sizes(node: Any) -> list[tuple[str, int]]:
    """The exchanges of a plan that was run, with the size of their rows; one that is used again counts once."""
    name = node.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return _data_sizes(node.executedPlan())
    if name.endswith("QueryStageExec"):
        return _data_sizes(node.plan())
    if name == "ReusedExchangeExec":
        return []
    found = []
    if node.metrics().contains("dataSize"):
        found.append((name, node.metrics().apply("dataSize").value()))
    for parts in (node.children(), node.subqueries()):
        for at in range(parts.size()):
            found += _data_sizes(parts.apply(at))
    return found


def _row(number: int, ours: Moved | None, theirs: SparkMoved | None, answer: str) -> tuple[str, ...]:
    shape: tuple[str, ...] = ("",) * 5
    if ours is not None:
        counts = (ours.stages, ours.broadcast_joins, ours.partitioned_joins)
        shape = (*map(str, counts), size(ours.exchanged), size(ours.sent))
    spark: tuple[str, ...] = ("",) * 3
    if theirs is not None:
        spark = (size(theirs.shuffled), size(theirs.uncompressed), size(theirs.broadcast))
    return (str(number), *shape, *spark, answer)


def _total(ours: dict[int, Moved], theirs: dict[int, SparkMoved]) -> tuple[str, ...]:
    mine = (sum(m.exchanged for m in ours.values()), sum(m.sent for m in ours.values()))
    spark = (
        sum(m.shuffled for m in theirs.values()),
        sum(m.uncompressed for m in theirs.values()),
        sum(m.broadcast for m in theirs.values()),
    )
    return ("total", "", "", "", *map(size, mine), *map(size, spark), "")


def _show(rows: list[tuple[str, ...]]) -> None:
    from rich.table import Table

    table = Table(header_style="bold")
    for head in _HEADS:
        table.add_column(head, justify="left" if head == "answer" else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)
