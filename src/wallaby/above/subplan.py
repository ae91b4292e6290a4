"""A part of a Spark query that runs in the TaskManagers, and how its outcome is reported to Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame

from wallaby.config.settings import Settings
from wallaby.errors import DoubtfulValueError, HandOverError, QueryError, WallabyError
from wallaby.errors.text import write_error
from wallaby.plan.physical import PhysicalPlan
from wallaby.plan.planned import Planned
from wallaby.runner import Site

_log = logging.getLogger(__name__)
#: Log messages about sub-plans; tests and benchmarks look for them to prove that one has run.
CONSIDERED: Final = "a part of a query %s"
NOT_LOOKED_AT: Final = "a plan was left to Spark: %s"
HAS_RUN: Final = "a part of a query has run: %s (%d rows in %.2f s)"
HAS_FAILED: Final = "a part of a query has failed: %s (%s)"
LEFT_WHILE_RUNNING: Final = "left to Spark while running: %s"


@dataclass(frozen=True, slots=True)
class Subplan:
    """A part of a query that runs in the TaskManagers, as a query of its own with its own plan."""

    site: Site
    settings: Settings
    planned: Planned
    physical: PhysicalPlan
    #: The query, once Spark executes it; until then, nobody needs it.
    df: DataFrame | None = None
    #: If TaskManagers do not write its rows: do Spark's tasks read them? Otherwise Spark computes them itself.
    handed_over: bool = True
    #: Is it a query of its own, whose rows stay, instead of a part of one that Spark runs?
    is_whole: bool = False

    @property
    def query(self) -> DataFrame:
        """The part as a query of its own."""
        assert self.df is not None, "it is executed"
        return self.df


class JavaFunction:
    """A function that the JVM can call."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def apply(self, argument: Any) -> Any:
        """Called by the JVM."""
        return self._call(argument)

    class Java:
        """The Java interface that py4j gives it."""

        implements: Final = ["java.util.function.Function"]


class JavaBiFunction:
    """A function of two arguments that the JVM can call."""

    def __init__(self, call: Callable[[Any, Any], Any]) -> None:
        self._call = call

    def apply(self, first: Any, second: Any) -> Any:
        """Called by the JVM."""
        return self._call(first, second)

    class Java:
        """The Java interface that py4j gives it."""

        implements: Final = ["java.util.function.BiFunction"]


def is_sparks(error: QueryError, settings: Settings) -> bool:
    """Should Spark run this sub-plan itself, because only Spark gives its exact error?"""
    _drop_frames(error)
    doubt = isinstance(error, DoubtfulValueError | HandOverError)
    return doubt or (settings.spark_errors and (error.is_of_data or error.is_of_spark_too))


def said_to_spark(answer: Any, error: WallabyError, subplan: Subplan | None) -> Any:
    """Encode an error for the JVM: its condition, its text, and what `error_conversion` restores it from."""
    _drop_frames(error)
    if subplan is not None:
        _log.info(HAS_FAILED, text_of(subplan.physical), error.what)
    answer.add(error.getCondition() or "WALLABY_QUERY")
    answer.add(str(error))
    answer.add(write_error(error))
    return answer


def _drop_frames(error: WallabyError) -> None:
    """Forget where an error was raised: frames of the caller hold the DataFrame, and with it rows of a later run."""
    error.__traceback__ = None


def text_of(plan: PhysicalPlan) -> str:
    """Describe a sub-plan in one line for Spark's `explain`: what its stages do."""
    stages = [label for label in plan.labels[:-1] if label]
    return "; ".join(stages)
