"""Run a query with a top on the engine and on Spark alone, and compare."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from wallaby.engine import Engine
from wallaby_lab.differential.arena import ComparisonArena, how_planned, without_numbers
from wallaby_lab.differential.layouts import configured
from wallaby_lab.differential.outcome import difference, outcome
from wallaby_lab.differential.tops.catalogue import Top
from wallaby_lab.differential.tops.query import plain
from wallaby_lab.differential.tops.sinks import ALONE
from wallaby_lab.differential.tops.witness import Witnessed, witness

#: Cost would leave all of these small queries to Spark.
ALWAYS: Final = {"spark.wallaby.below": "always", "spark.wallaby.enabled": "true"}
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
NO_WORK: Final = "it has neither a join nor an aggregation nor a sort nor a window"
_DEFECT: Final = "please report it"


@dataclass(frozen=True, slots=True)
class TopComparison:
    """The outcome of a query with a top.

    `how` is part (Spark reads rows of a part), whole (rows go straight to the driver), doubt, none, local (Catalyst
    itself has the answer), large or invalid.
    """

    how: str
    different: str = ""
    raised: str = ""
    #: The parts that ran here, as the engine describes them.
    parts: tuple[str, ...] = ()
    #: Why parts, or all, stayed on Spark.
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopCase:
    """A query and its top."""

    query: str
    top: Top
    order: tuple[str, ...] = ()
    inexact: frozenset[str] = frozenset()
    #: May its rows hold dates that Python does not have?
    wild: bool = True


class TopArena:
    """Compares queries with tops, over the tables that an arena has written and registered."""

    def __init__(self, spark: SparkSession, engine: Engine, tables: ComparisonArena, place: Path) -> None:
        self._spark = spark
        self._engine = engine
        self.tables = tables
        self._place = place

    def ask(self, case: TopCase) -> TopComparison:
        """Run a query with its top on both engines and compare."""
        try:
            df = self._spark.sql(case.query)
        except AnalysisException as error:
            return TopComparison("invalid", reasons=(str(error).split("\n", 1)[0],))
        order: list[str] = []

        def run() -> pa.Table:
            return self._act(case, order)

        adaptive = {_ADAPTIVE: str(case.top.adaptive).lower()}
        with configured(self._spark, {**ALWAYS, **adaptive}), witness(self._engine) as seen:
            actual = outcome(run)
        with configured(self._spark, {**ALONE, **adaptive}):
            expected = outcome(run)
            different = difference(actual, expected, order=order)
            if different and self.tables.may_raise(run, actual, expected):
                different = ""
        different = different or next((one for one in seen.reasons if _DEFECT in one), "")
        how = _how(seen)
        reasons: Iterable[str] = seen.doubts if how == "doubt" else seen.reasons
        if how == "none" and not seen.reasons:
            planned = self._engine.fallback_reasons(df)
            how = "local" if how_planned(planned) == "local" else how
            reasons = planned or (NO_WORK,)
        raised = expected.condition if expected.table is None else ""
        return TopComparison(how, different, raised, tuple(seen.parts), without_numbers(tuple(reasons)))

    def _act(self, case: TopCase, order: list[str]) -> pa.Table:
        """The answer of a case in this session with its current settings; `order` gets the columns of its order."""
        shutil.rmtree(self._place, ignore_errors=True)
        query = plain(self._spark.sql(case.query), case.order, case.inexact, wild=case.wild)
        answer, order[:] = case.top.act(query, self._place)
        return answer


def _how(seen: Witnessed) -> str:
    if seen.parts:
        return "part"
    if seen.whole:
        return "whole"
    return "doubt" if seen.doubts or seen.begun else "none"


def kinds(parts: Sequence[str]) -> list[str]:
    """The operators of parts, without their arguments."""
    words = ("join", "aggregate", "window", "sort", "limit", "scan", "union")
    return [" + ".join(word for word in words if word in part) or part for part in parts]
