"""Ask Spark's driver to write down a plan: the one place that talks to the JVM about plans.

`java/PlanWriter.java` is compiled once per JVM, by the compiler that Spark ships for its generated code. After that,
a plan costs one round trip, or a few if it is long. Exceptions of py4j leave this module only as `UnreadablePlanError`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from wallaby.catalyst.janino import load_class
from wallaby.catalyst.node import PlanPart, PlanText, UnreadablePlanError, decode, decode_part

_log = logging.getLogger(__name__)
#: The writer, and the JVM in which it was compiled; a new JVM (after `spark.stop()` and a new gateway) needs a new one.
_compiled: tuple[object, Any] | None = None
_compiling = threading.Lock()
#: Java's rules of time zones, cached because they do not change.
_zones: dict[str, str | None] = {}


def plan_of(query: Any, *, collects: bool = False, runs: bool = False) -> PlanText:
    """The optimized plan of a DataFrame or of a `QueryExecution` in the JVM.

    A query that `collects` its rows, and `runs` now, has the same files of its tables when it does so again.
    """
    with _errors_as_ours():
        execution = _execution(query)
        return decode(_joined(_writer().write(execution, collects, runs)))


def part_of(query: Any, path: tuple[int, ...]) -> PlanPart:
    """Describe the output of a part of the optimized plan; `path` leads to the part from the root, child by child."""
    with _errors_as_ours():
        execution = _execution(query)
        return decode_part(_joined(_writer().describe(execution, dotted(path))))


def plan_in(session: Any, plan: Any) -> PlanText:
    """A plan for which a session in the JVM, or the active one, is about to make a physical plan."""
    with _errors_as_ours():
        return decode(_joined(_writer().writePlan(session, plan)))


def part_in(plan: Any, path: tuple[int, ...]) -> PlanPart:
    """The output of a part of a plan in the JVM; `path` leads to the part from the root, child by child."""
    with _errors_as_ours():
        return decode_part(_joined(_writer().describePart(plan, dotted(path))))


def query_of(query: DataFrame, path: tuple[int, ...]) -> DataFrame:
    """A part of the optimized plan as a DataFrame of its own."""
    with _errors_as_ours():
        execution = _execution(query)
        return DataFrame(_writer().query(execution, dotted(path)), query.sparkSession)


def plan_physically(query: DataFrame) -> None:
    """Let Spark finish planning a query, so that whatever it refuses shows before anything runs."""
    with _errors_as_ours():
        _execution(query).executedPlan()


def zone_rules(name: str) -> str | None:
    """A time zone's rules, as Java knows them, in the text of `relations/zone.py`; None if there is no such zone."""
    if name not in _zones:
        with _errors_as_ours():
            _zones[name] = None if _compiled is None else _compiled[1].zone(name)
    return _zones[name]


def storage_settings(conf: Any) -> dict[str, str]:
    """The settings of a Hadoop configuration that say how files are reached, without Hadoop's own defaults."""
    with _errors_as_ours():
        found: dict[str, str] = json.loads(_writer().storage(conf))
    return found


def warm_up(spark: Any) -> None:
    """Compile the writer and read a first plan now, so that the first query need not wait."""
    plan_of(spark.range(1))


class WarmUp:
    """A thread that warms the JVM up while the program does other things before its first query.

    It takes one to three seconds of the JVM, most of them for classes of Spark's own. The first query waits for what is
    left of it. A warm-up that fails says nothing: the first query meets the same error, and says so.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._thread = threading.Thread(target=self._run, name="wallaby-warm-up", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        try:
            warm_up(self._spark)
        except (
            UnreadablePlanError,
            Py4JError,
            OSError,
            AttributeError,
        ) as error:  # or Spark was stopped meanwhile
            _log.debug("the warm-up ended early: %s", error)

    def join(self, timeout: float) -> None:
        """Wait for its end, if it has begun."""
        if self._thread.ident is not None:
            self._thread.join(timeout)


def _is_dataframe(query: Any) -> bool:
    # A JavaObject answers to every attribute name, so the question is about the class. In a Spark Connect
    # session `_jdf` raises a PySparkException.
    return hasattr(type(query), "sparkSession")


def _execution(query: Any) -> Any:
    return query._jdf.queryExecution() if _is_dataframe(query) else query


@contextmanager
def _errors_as_ours() -> Iterator[None]:
    try:
        yield
    except Py4JError as error:
        raise UnreadablePlanError(f"Spark's driver did not return the plan: {_first_line(error)}") from error
    except PySparkException as error:
        if isinstance(error, UnreadablePlanError):
            raise
        raise UnreadablePlanError(f"Spark did not plan this query: {_first_line(error)}") from error


def _joined(answer: Any) -> str:
    return answer if isinstance(answer, str) else "".join(answer)


def dotted(path: tuple[int, ...]) -> str:
    """Encode a path for the JVM."""
    return ".".join(map(str, path))


def _writer() -> Any:
    global _compiled  # noqa: PLW0603 - one compilation per JVM, whoever asks
    jvm = SparkContext._jvm
    if jvm is None:
        raise UnreadablePlanError("There is no Spark driver in this process.")
    with _compiling:
        if _compiled is None or _compiled[0] is not jvm:
            writer = load_class(jvm, "wallaby.catalyst", "PlanWriter")
            _compiled = (jvm, writer.newInstance())
        return _compiled[1]


def _first_line(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    return text.strip().partition("\n")[0]
