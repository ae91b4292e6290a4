"""Compare every entry of the registry with Spark: its examples over all tables, in every mode, many per query.

Expressions that are not native are counted and skipped, because Spark would be compared with itself. Expressions share
a query as long as nothing differs and nothing fails. If Spark reports which expression fails, that one is compared
alone. If there is a difference, a doubt (so that Spark ran the whole query after all) or an unknown failure, the query
is split, so that each difference, doubt and error belongs to one expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from wallaby.catalyst.jvm import plan_of
from wallaby.catalyst.node import Node
from wallaby.engine import Engine
from wallaby_lab.differential.generated.examples import AGGREGATED, CANCELLING, CLOSE, EXAMPLES, SHOWN_AS
from wallaby_lab.differential.generated.expand import Expression, expand
from wallaby_lab.differential.generated.shapes import AGGREGATES, BLOCKS, ROWS, SMALL, Shape
from wallaby_lab.differential.halves import BATCH, bad_ones
from wallaby_lab.differential.layouts import spark_raises
from wallaby_lab.differential.outcome import QueryOutcome, difference, engines_outcome, outcome

#: Settings of Spark's under which everything is compared: evaluation modes, and time zones.
MODES: Final = (
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/Los_Angeles"},
)


#: The number of expressions in a group.
_GROUP: Final = 2 * BATCH
#: The size of rounding errors for numbers of two digits and their squares.
_NOISE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Difference:
    """An expression that Wallaby computed differently from Spark."""

    expression: Expression
    query: str
    settings: dict[str, str]
    what: str


@dataclass(slots=True)
class EntryTally:
    """The results of one entry."""

    native: int = 0
    on_spark: int = 0
    compared: int = 0
    raised: int = 0
    #: Comparisons that did not take place, because a value was in doubt and Spark ran the query after all.
    in_doubt: int = 0
    #: Does the plan of an example contain the entry's class?
    shown: bool = False
    invalid: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def tells(self, expression: Expression, settings: dict[str, str]) -> bool:
        """Is a difference of this expression known?"""
        return any(d.expression == expression and d.settings == settings for d in self.differences)


def groups(entries: Sequence[str], seed: int) -> Iterator[list[str]]:
    """Group entries whose expressions are compared together."""
    group: list[str] = []
    size = 0
    for entry in sorted(entries, key=AGGREGATED.__contains__):
        group.append(entry)
        size += sum(len(expand(entry, example, seed)) for example in EXAMPLES[entry])
        if size >= _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


class EntrySuite:
    """Compares entries over tables that are registered already."""

    def __init__(self, spark: SparkSession, engine: Engine, seed: int, say: Callable[[str], None]) -> None:
        self._spark = spark
        self._engine = engine
        self._seed = seed
        self._say = say
        self._settings: dict[str, str] = {}
        self.tallies: dict[str, EntryTally] = {}

    def run(self, entries: Sequence[str], modes: Sequence[dict[str, str]] = MODES) -> dict[str, EntryTally]:
        """Compare all examples of these entries."""
        self.tallies = {entry: EntryTally() for entry in entries}
        for settings in modes:
            self._settings = dict(settings)
            for key, value in settings.items():
                self._spark.conf.set(key, value)
            for shapes, natives in self._natives(entries):
                for shape in shapes:
                    self._compare_over(shape, natives, small=settings is modes[0])
        return self.tallies

    def _natives(self, entries: Sequence[str]) -> Iterator[tuple[tuple[Shape, ...], list[Expression]]]:
        """The expressions that run natively, with the shapes of query that they go into."""
        expressions = [
            expression
            for entry in entries
            for example in EXAMPLES.get(entry, ())
            for expression in expand(entry, example, self._seed)
        ]
        rows = [e for e in expressions if not e.is_query and e.entry not in AGGREGATED]
        aggregates = [e for e in expressions if not e.is_query and e.entry in AGGREGATED]
        yield ROWS, self._native(rows, ROWS[0])
        for shape in AGGREGATES:
            yield (shape,), self._native(aggregates, shape)
        for expression in expressions:
            if expression.is_query:
                shape = Shape(expression.sql, ("tame", "wild", "one", "none"))
                yield (shape,), self._native([expression], shape)

    def _native(self, expressions: Sequence[Expression], shape: Shape) -> list[Expression]:
        """The expressions that run natively in a shape of query; others are counted, with their reasons."""
        bad = set(bad_ones(expressions, lambda some: self._is_native(some, shape)))
        native = [e for e in expressions if e not in bad]
        for expression in native:
            self.tallies[expression.entry].native += 1
        for entry, tally in self.tallies.items():
            own = [e.sql for e in native if e.entry == entry][:BATCH]
            if own and not tally.shown:
                plan = plan_of(self._spark.sql(shape.sql(own, shape.tables[0])))
                tally.shown = SHOWN_AS.get(entry, entry) in set(_names(plan.root))
        return native

    def _is_native(self, expressions: Sequence[Expression], shape: Shape) -> bool:
        """Are all expressions valid and native? For a single one the reason is recorded."""
        tally = self.tallies[expressions[0].entry] if len(expressions) == 1 else EntryTally()
        try:
            df = self._spark.sql(shape.sql([e.sql for e in expressions], shape.tables[0]))
        except AnalysisException as error:
            tally.invalid.append(f"{expressions[0].sql}: {str(error).splitlines()[0]}")
            return False
        reasons = self._engine.fallback_reasons(df)
        if reasons:
            tally.on_spark += 1
            tally.reasons[reasons[0]] = tally.reasons.get(reasons[0], 0) + 1
        return not reasons

    def _compare_over(self, shape: Shape, expressions: Sequence[Expression], *, small: bool) -> None:
        for table in (name for name in shape.tables if small or name not in SMALL):
            failing = self._compare_all(shape, expressions, table)
            if table == "wild":
                for part in shape.parts:
                    self._compare_all(part, failing, table)

    def _compare_all(self, shape: Shape, expressions: Sequence[Expression], table: str) -> list[Expression]:
        """Compare expressions, many per query; returns those that fail on Spark or are in doubt."""
        batches = (expressions[begin : begin + BATCH] for begin in range(0, len(expressions), BATCH))
        return [failing for batch in batches for failing in self._compare(shape, batch, table)]

    def _compare(self, shape: Shape, expressions: Sequence[Expression], table: str) -> list[Expression]:
        """Compare expressions in one query, without those that fail on Spark, which are compared alone.

        Returns those that fail or are in doubt.
        """
        failing: list[Expression] = []
        rest = list(expressions)
        while rest:
            query = shape.sql([e.sql for e in rest], table)
            df = self._spark.sql(query)
            expected = outcome(df.toArrow)
            if len(rest) == 1:
                actual, _ = engines_outcome(self._engine, df)
                self._judge(shape, rest[0], query, actual, expected)
                return [*failing, *(rest if expected.table is None or actual.in_doubt else ())]
            if expected.table is None:
                place = shape.place([e.sql for e in rest], table, expected.position)
                if place is None:
                    return [*failing, *self._halves(shape, rest, table)]
                failed = rest.pop(place)
                failing.append(failed)
                query = shape.sql([failed.sql], table)
                df = self._spark.sql(query)
                actual, _ = engines_outcome(self._engine, df)
                if self._what(shape, (failed,), actual, expected):
                    # Spark computes a common subexpression once, and names one of its expressions.
                    expected = outcome(df.toArrow)
                self._judge(shape, failed, query, actual, expected)
                continue
            actual, _ = engines_outcome(self._engine, df)
            if actual.in_doubt or self._what(shape, rest, actual, expected):
                return [*failing, *self._halves(shape, rest, table)]
            for expression in rest:
                self.tallies[expression.entry].compared += 1
            return failing
        return failing

    def _what(
        self, shape: Shape, expressions: Sequence[Expression], actual: QueryOutcome, expected: QueryOutcome
    ) -> str:
        """Describe the difference between two outcomes; empty if there is none."""
        exact = shape in (*ROWS, *BLOCKS) and not any(e.entry in CLOSE for e in expressions)
        cancelling = any(e.entry in CANCELLING for e in expressions)
        return difference(actual, expected, exact=exact, noise=_NOISE if cancelling else 0.0)

    def _judge(
        self, shape: Shape, expression: Expression, query: str, actual: QueryOutcome, expected: QueryOutcome
    ) -> None:
        """Count the comparison of a single expression."""
        tally = self.tallies[expression.entry]
        if actual.in_doubt:
            tally.in_doubt += 1
            return
        what = self._what(shape, (expression,), actual, expected)
        if what and actual.is_sparks_error and expected.is_sparks_error:
            # With several errors either may come first; single rows and groups show whether they are the same.
            another = not shape.parts and spark_raises(
                self._spark, lambda: self._spark.sql(query).toArrow(), actual
            )
            what = "" if shape.parts or another else what
        tally.compared += 1
        tally.raised += expected.table is None
        if what and not tally.tells(expression, self._settings):
            tally.differences.append(Difference(expression, query, dict(self._settings), what))
            self._say(f"{expression.entry}: {query}\n    {what}")

    def _halves(self, shape: Shape, expressions: Sequence[Expression], table: str) -> list[Expression]:
        middle = len(expressions) // 2
        return [
            *self._compare(shape, expressions[:middle], table),
            *self._compare(shape, expressions[middle:], table),
        ]


def _names(node: Node) -> Iterator[str]:
    """The classes of a plan, operators and expressions."""
    yield node.name
    for child in node.children:
        yield from _names(child)
    for value in (node.fields or {}).values():
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, Node):
                yield from _names(part)
