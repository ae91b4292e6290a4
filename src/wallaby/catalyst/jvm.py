"""The one place that talks to the JVM: asks Spark's driver to write a plan down.

`PlanWriter.java` is compiled once per JVM, by the compiler that Spark brings for its generated code. After that a
plan costs one round trip, or a few if it is long. No exception of py4j leaves here but as `UnreadablePlanError`.
"""

from __future__ import annotations

import threading
from importlib import resources
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from wallaby.catalyst.node import PlanText, UnreadablePlanError, decode

#: The writer, and the JVM in which it was compiled; a new JVM (after `spark.stop()` and a new gateway) needs a new one.
_compiled: tuple[object, Any] | None = None
_compiling = threading.Lock()


def plan_of(query: Any) -> PlanText:
    """The optimized plan of a DataFrame or of a `QueryExecution` in the JVM."""
    try:
        execution = query._jdf.queryExecution() if _is_dataframe(query) else query
        answer = _writer(execution).write(execution)
        return decode(answer if isinstance(answer, str) else "".join(answer))
    except Py4JError as error:
        raise UnreadablePlanError(f"Spark's driver did not give the plan: {_first_line(error)}") from error
    except PySparkException as error:
        raise UnreadablePlanError(f"Spark did not plan this query: {_first_line(error)}") from error


def warm_up(spark: Any) -> None:
    """Compile the writer and read a first plan now (half a second), so that the first query need not wait."""
    plan_of(spark.range(1))


def _is_dataframe(query: Any) -> bool:
    # A JavaObject answers to every attribute name, so the question is about the class. In a Spark Connect
    # session `_jdf` raises a PySparkException.
    return hasattr(type(query), "sparkSession")


def _writer(execution: Any) -> Any:
    global _compiled  # noqa: PLW0603 - one compilation per JVM, whoever asks
    jvm = SparkContext._jvm
    if jvm is None:
        raise UnreadablePlanError("There is no Spark driver in this process.")
    with _compiling:
        if _compiled is None or _compiled[0] is not jvm:
            source = (
                resources.files("wallaby.catalyst").joinpath("PlanWriter.java").read_text(encoding="utf-8")
            )
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(execution.getClass().getClassLoader())
            compiler.cook(source)
            _compiled = (jvm, compiler.getClassLoader().loadClass("wallaby.PlanWriter").newInstance())
        return _compiled[1]


def _first_line(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    return text.strip().partition("\n")[0]
