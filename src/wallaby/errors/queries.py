"""Errors of queries: cancelled, out of time, out of workers, out of memory, and others."""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JJavaError

from wallaby.errors.base import WallabyError


class QueryError(WallabyError):
    """A query ended without its result."""

    condition = "WALLABY_QUERY"


class DurableStoreError(QueryError):
    """The durable store of outputs or states is gone, full, or damaged."""

    condition = "WALLABY_DURABLE_STORE"


class QueryCancelledError(QueryError):
    """The query was cancelled by its user."""

    condition = "WALLABY_QUERY_CANCELLED"


class SparkCancelledError(QueryCancelledError, Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """Spark cancelled the query: a job group, a tag, an operation, all jobs. PySpark raises the same class."""

    condition = "SPARK_JOB_CANCELLED"

    def __init__(self, what: str, *, fix: str = "", java_exception: Any = None, **fields: object) -> None:
        super().__init__(what, fix=fix, **fields)
        self.errmsg = what
        #: Spark's own exception, in the JVM.
        self.java_exception = java_exception

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - the name is PySpark's
        """The number of the job and the reason, as in Spark's own exception."""
        return {name: str(value) for name, value in self.fields.items()}

    @property
    def is_of_data(self) -> bool:
        """False: the cancellation came from outside."""
        return False


class KeptResultError(QueryError):
    """Kept rows cannot be read: they were released, are lost, or do not arrive."""

    condition = "WALLABY_KEPT_RESULT"


class WriteError(QueryError):
    """A file of the result cannot be written: the disk is full, permission is denied, or its folder is gone."""

    condition = "WALLABY_WRITE"


class QueryTimeoutError(QueryError):
    """The query took longer than `spark.wallaby.timeout`, and was ended."""

    condition = "WALLABY_QUERY_TIMEOUT"


class QueryStalledError(QueryError):
    """Nothing moved for `spark.wallaby.stallTimeout` although nobody was busy; the field `waits` says who waits."""

    condition = "WALLABY_QUERY_STALLED"


class ResultSizeError(QueryError, Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """A result is larger than `spark.driver.maxResultSize`. PySpark raises Py4J's error for it, without a condition."""

    condition = "WALLABY_MAX_RESULT_SIZE"
    java_exception = None


class DivergenceError(QueryError):
    """The same task gave two different outputs or records, so the query must not continue."""

    condition = "WALLABY_DIVERGENCE"


class WorkerLostError(QueryError):
    """The query lost a worker under the policy `off`, or too many workers under `restart` or `checkpoint`."""

    condition = "WALLABY_WORKER_LOST"
    retryable = True


class NoWorkersError(QueryError):
    """Every worker is gone and none came back in time."""

    condition = "WALLABY_NO_WORKERS"


class PoisonTaskError(QueryError):
    """A task lost its worker too often; the task probably kills its workers."""

    condition = "WALLABY_POISON_TASK"


class RecoveryTimeoutError(QueryError):
    """The query was frozen for longer than its limit."""

    condition = "WALLABY_RECOVERY_TIMEOUT"


class HandOverError(QueryError):
    """Rows of a Spark leaf could not be handed over. The engine catches it and lets Spark run the whole query."""

    condition = "WALLABY_HAND_OVER"


class DoubtfulValueError(QueryError):
    """A value that only Spark knows how to treat. The engine catches it and lets Spark run the whole query."""

    condition = "WALLABY_DOUBTFUL_VALUE"


class MemoryLimitError(QueryError):
    """A step needs more memory than the budget allows, and cannot spill it."""

    condition = "WALLABY_MEMORY_LIMIT"


#: The message for a step that failed for an unforeseen reason.
STEP_FAILED: Final = "A step of the query could not be run."
REPORT_IT: Final = "Please report it with the query and with what the driver's log says."


class KernelError(QueryError):
    """A step failed for an unforeseen reason. The field `detail` has the library's own message."""

    condition = "WALLABY_KERNEL"

    @property
    def is_of_data(self) -> bool:
        """True: a value may be the cause, so Spark decides what becomes of the query."""
        return True


def query_errors() -> dict[str, type[QueryError]]:
    """Every type of a query's errors, by its condition."""
    kinds: list[type[QueryError]] = [QueryError, *_kinds_of(QueryError)]
    return {kind.condition: kind for kind in kinds if "condition" in vars(kind)}  # others only inherit one


def _kinds_of(kind: type[QueryError]) -> list[type[QueryError]]:
    return [found for child in kind.__subclasses__() for found in (child, *_kinds_of(child))]
