"""Errors of ours in what Spark says of a task that failed."""

from __future__ import annotations

from wallaby.above.error_conversion import find_ours, in_trace
from wallaby.errors import KeptResultError, MemoryLimitError, QueryError
from wallaby.errors.text import write_error

TRACE = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times (TID 3) (host executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "reader.py", line 160, in _ahead
    raise item
wallaby.errors.queries.KeptResultError: The rows of q-1 were released. Run the query again.

\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)
"""


class Thrown:
    """An exception of Java's, as py4j shows it."""

    def __init__(self, name: str, message: str | None = None, cause: Thrown | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause
        self.error: str | None = None

    def getClass(self) -> Thrown:  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> Thrown | None:  # noqa: N802 - Java's name
        return self._cause

    def getCondition(self) -> str:  # noqa: N802 - Java's name
        return "WALLABY_KEPT_RESULT"

    def what(self) -> str | None:
        return self._message

    def written(self) -> str | None:
        return self.error


def test_the_error_of_a_task_is_found_in_its_trace() -> None:
    found = in_trace(TRACE)
    assert isinstance(found, KeptResultError)
    assert found.what == "The rows of q-1 were released. Run the query again."


def test_an_error_of_nobody_s_kind_is_one_of_a_query() -> None:
    found = in_trace("wallaby.errors.base.EncodingError: These bytes are not a message.")
    assert type(found) is QueryError
    assert found.what == "These bytes are not a message."


def test_other_traces_are_sparks() -> None:
    assert in_trace("ValueError: wallaby.errors.queries.KeptResultError is a name") is None
    assert (
        find_ours(Thrown("org.apache.spark.SparkException", TRACE.replace("wallaby.errors", "pandas")))
        is None
    )


def test_an_error_keeps_its_fields_on_its_way_through_causes() -> None:
    error = MemoryLimitError("The query needs more.", fix="Give it more.", budget_bytes=5)
    ours = Thrown("wallaby.KeptPlans$WallabyException", str(error))
    ours.error = write_error(error)
    found = find_ours(
        Thrown("java.util.concurrent.ExecutionException", cause=Thrown("java.lang.Exception", cause=ours))
    )
    assert isinstance(found, MemoryLimitError)
    assert (found.what, found.fix, found.fields) == (error.what, error.fix, {"budget_bytes": 5})


def test_an_error_that_java_raised_has_its_kind() -> None:
    found = find_ours(Thrown("wallaby.KeptPlans$WallabyException", "The engine is closed."))
    assert isinstance(found, KeptResultError)
    assert found.what == "The engine is closed."


def test_causes_that_go_in_circles_end() -> None:
    circle = Thrown("java.lang.Exception")
    circle._cause = circle
    assert find_ours(circle) is None
