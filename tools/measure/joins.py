"""How good the chosen orders of joins are: real rows between joins, as written, as chosen, and in the best order.

    python -m tools.measure.joins TABLES QUERIES [NUMBER...]

TABLES has a directory of Parquet files for each table, QUERIES a file of SQL for each query. Spark reads the queries;
DuckDB counts the rows of every set of sides that some order could join. A choice is judged by its largest result on the
way, beside the least that any order has. The written order is counted with all keys that follow from others, which
planning gives it too. Orders of more than ten sides are not all looked at.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from wallaby.functions import registry
from wallaby.operators.generated_rows import generate_rows
from wallaby.plan.physical import RowSplit
from wallaby.plan.rules import RULES
from wallaby.plan.rules.order_joins import JoinChoice, Order, choices, order_joins, pairs_of
from wallaby.reading.reader import read_plan
from wallaby.relations.relation import Input, Range, Relation, Rows, Scan, children_of
from wallaby.relations.tree import with_children
from wallaby.sql.words import column_identifier, identifier, text
from wallaby.statements.relation import input_name, relation_sql
from wallaby.tables.tables import known_tables

_SIDES_MAX = 10
#: A set that takes longer to count counts as too large.
_COUNT_SECONDS = 20.0
_SPLIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    """The largest result between joins, in rows; None: not found out."""

    sides: int
    written: int | None
    chosen: int | None
    best: int | None
    estimated: float

    @property
    def ratio(self) -> float | None:
        """The chosen order's largest result over the smallest possible one."""
        if self.chosen is None or self.best is None:
            return None
        return max(1, self.chosen) / max(1, self.best)


class Counting:
    """DuckDB, with the sides of one choice as tables."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'; SET memory_limit = '4GB'; SET threads = 2")
        self._functions: set[str] = set()
        self._tables = 0

    def measured(self, choice: JoinChoice) -> Measured:
        """Measure the intermediate results of all orders of some joins."""
        graph = choice.graph
        self._counts: dict[int, int] = {}
        self._choice = choice
        self._sides = [self._table(side) for side in graph.sides]
        chosen = self._largest(choice.chosen)
        written = chosen if choice.written == choice.chosen else self._largest(choice.written)
        known = [largest for largest in (chosen, written) if largest is not None]
        searched = known and len(graph.sides) <= _SIDES_MAX
        best = self._least(min(known)) if searched else None
        estimated = max(map(graph.rows, _between(choice.chosen, graph.all)))
        return Measured(len(graph.sides), written, chosen, best, estimated)

    def _table(self, side: Relation) -> Input:
        sql = relation_sql(self._with_inputs(side))
        registry.register(self._connection, sql, self._functions)
        number = self._next()
        self._connection.execute(f"CREATE TEMP TABLE {identifier(input_name(number))} AS {sql}")
        return Input(number, side.columns)

    def _with_inputs(self, relation: Relation) -> Relation:
        if isinstance(relation, Scan):
            number = self._next()
            columns = ", ".join(
                f"{identifier(name)} AS {column_identifier(column.id)}"
                for name, column in zip(relation.names, relation.columns, strict=True)
            )
            files = ", ".join(text(file.path) for file in relation.files)
            name = identifier(input_name(number))
            self._connection.execute(
                f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM read_parquet([{files}])"  # noqa: S608
            )
            return Input(number, relation.columns)
        if isinstance(relation, Rows | Range):
            number = self._next()
            count = len(relation.rows) if isinstance(relation, Rows) else relation.count
            self._connection.register(input_name(number), generate_rows(relation, RowSplit(0, count)))
            return Input(number, relation.columns)
        return with_children(relation, tuple(map(self._with_inputs, children_of(relation))))

    def _next(self) -> int:
        self._tables += 1
        return self._tables

    def _largest(self, order: Order) -> int | None:
        """The largest intermediate result."""
        counts = [self._count(sides) for sides in _between(order, self._choice.graph.all)]
        return None if None in counts else max(count for count in counts if count is not None)

    def _least(self, bound: int) -> int:
        """The largest result of the order in which that is least: sets beyond what is reached already do not count."""
        graph = self._choice.graph
        best = {1 << at: 0 for at in range(len(graph.sides))}
        ordered = sorted(pairs_of(graph), key=lambda pair: ((pair[0] | pair[1]).bit_count(), pair))
        for left, right in ordered:
            both = left | right
            if left not in best or right not in best:
                continue
            reached = max(best[left], best[right])
            if both != graph.all:
                count = self._count(both, bound)
                if count is None or count > bound:
                    continue
                reached = max(reached, count)
            best[both] = min(best.get(both, reached), reached)
        return best.get(graph.all, bound)

    def _count(self, sides: int, bound: int | None = None) -> int | None:
        if sides not in self._counts:
            sql = f"SELECT 1 FROM ({relation_sql(self._joined(sides))}) AS t"  # noqa: S608
            limited = sql if bound is None else f"{sql} LIMIT {bound + 1}"
            timer = threading.Timer(_COUNT_SECONDS, self._connection.interrupt)
            timer.start()
            registry.register(self._connection, sql, self._functions)
            try:
                found = self._connection.execute(f"SELECT count(*) FROM ({limited}) AS t").fetchall()  # noqa: S608
            except duckdb.InterruptException:
                self._connection.abort()
                return None
            finally:
                timer.cancel()
            ((count,),) = found
            self._counts[sides] = int(count)
        return self._counts[sides]

    def _joined(self, sides: int) -> Relation:
        """A set in some order: its rows are the same in all."""
        graph = self._choice.graph
        done = sides & -sides
        joined: Relation = self._sides[done.bit_length() - 1]
        while done != sides:
            near = (at for at in range(len(graph.sides)) if (sides & ~done) >> at & 1)
            at = next(at for at in near if graph.is_joined(done, 1 << at))
            joined = graph.join(joined, self._sides[at], done, 1 << at)
            done |= 1 << at
        return joined


def _between(order: Order, everything: int) -> list[int]:
    """The sets that an order has between its joins."""
    found: list[int] = []

    def visit(part: Order) -> int:
        if isinstance(part, int):
            return 1 << part
        both = visit(part[0]) | visit(part[1])
        if both != everything:
            found.append(both)
        return both

    visit(order)
    return found


def choices_of(relation: Relation) -> Iterator[JoinChoice]:
    """The choices that planning has in a query."""
    statistics = known_tables(list(_scans(relation)), _SPLIT_BYTES)
    for rule in RULES[: RULES.index(order_joins)]:
        relation = rule(relation, statistics)
    return choices(relation, statistics)


def _scans(relation: Relation) -> Iterator[Scan]:
    if isinstance(relation, Scan):
        yield relation
    for child in children_of(relation):
        yield from _scans(child)


def report(name: str, relation: Relation, counting: Counting) -> list[float]:
    """Print a line for each choice of a query; returns the ratios."""
    ratios: list[float] = []
    for number, choice in enumerate(choices_of(relation), start=1):
        measured = counting.measured(choice)
        if measured.ratio is not None:
            ratios.append(measured.ratio)
        shown = "not searched" if measured.ratio is None else f"{measured.ratio:.2f}"
        print(
            f"{name}.{number}: {measured.sides} sides, written {measured.written}, chosen {measured.chosen}"
            f" (estimated {measured.estimated:.0f}), best {measured.best}, ratio {shown}",
            flush=True,
        )
    return ratios


def summary(ratios: list[float]) -> str:
    """A summary of all choices in one sentence."""
    mean = exp(sum(map(log, ratios)) / len(ratios))
    worst = max(ratios)
    return f"{len(ratios)} choices: the largest result is {mean:.2f} times the least on average, at most {worst:.1f}"


def main(tables: Path, queries: Path, wanted: list[str]) -> None:
    """Measure some queries, or all."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    for table in sorted(tables.iterdir()):
        spark.read.parquet(str(table)).createOrReplaceTempView(table.name)
    ratios: list[float] = []
    for path in sorted(queries.glob("*.sql")):
        if not wanted or path.stem in wanted:
            written = path.read_text(encoding="utf-8").replace('"', "`").strip().rstrip(";")
            relation = read_plan(spark.sql(written)).relation
            if relation is not None:
                ratios += report(path.stem, relation, Counting())
    print(summary(ratios))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
