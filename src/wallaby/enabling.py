"""`enable` and `disable`: let the actions of PySpark's own DataFrames use the engine.

A query that brings its rows to the driver, and that the engine runs as a whole, goes straight through it. For that,
`enable` replaces four methods of PySpark's classic DataFrame, which all others use: `take`, `head` and `first` collect
a limit, `toArrow` and `toPandas` collect batches and convert them. Every other action is Spark's own; Spark's planner
offers what it plans, and parts of it run in the TaskManagers (`above`).

An enabled session stands for all sessions of its application that are made from it: by `newSession`, and by Spark
itself for `foreachBatch`. When the last enabled session is disabled, the class is restored.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from wallaby.actions import as_local_rows, can_be_shown
from wallaby.config.settings import is_switched_on
from wallaby.engine import Engine, attach, attached_to
from wallaby.errors import AttachError, InvalidArgumentError
from wallaby.results.result import Result
from wallaby.results.spark_result import SparkResult
from wallaby.spark.bypass import is_on_spark, on_spark

_SWITCH = "spark.wallaby.enabled"


@dataclass(frozen=True, slots=True)
class _Enabled:
    """An enabled session. `ours`: `enable` attached the engine, so `disable` closes it."""

    session: SparkSession
    engine: Engine
    ours: bool


_lock = threading.Lock()
_enabled: dict[int, _Enabled] = {}
#: Sessions that were disabled individually while others of their application are enabled.
_disabled: weakref.WeakSet[SparkSession] = weakref.WeakSet()
#: The class's own attribute under each name before; None if it was inherited.
_before: dict[str, Any] = {}


def enable(spark: SparkSession, **settings: object) -> Engine:
    """Let the actions of this session's DataFrames use an engine: the attached one, or a new one.

    Programs stay as they are. Actions that bring rows to the driver (`collect`, `toArrow`, `toPandas`, `count`, `show`)
    run through the engine. Of everything else that Spark plans (writes, SQL commands, `cache`, Python functions), the
    parts run in the TaskManagers that are faster there. Calling it again changes nothing.

    Args:
        spark: A classic session. Sessions that are made from it are enabled with it.
        **settings: Settings of a new engine, as for `attach`.

    Returns:
        The engine.

    Raises:
        AttachError: no engine can be attached; or one is attached and settings were given.
        ConfigurationError: a setting is unknown or invalid.

    Example:
        >>> wallaby.enable(spark, workers=3)
        >>> df.collect()  # by the engine
        >>> wallaby.disable(spark)
    """
    with _lock:
        _disabled.discard(spark)
        known = _enabled.get(id(spark))
        if known is not None and known.engine.is_open:
            return known.engine
        there = attached_to(spark)
        if there is not None and settings:
            raise AttachError(
                "The session already has an engine, whose settings cannot be changed by enable.",
                fix="Call enable without settings, or close the engine first: engine.close().",
            )
        engine = there if there is not None else attach(spark, **settings)
        _enabled[id(spark)] = _Enabled(spark, engine, ours=there is None)
        engine.subplans.install(spark)
        if not _before:
            _replace()
        return engine


def is_enabled(spark: SparkSession) -> bool:
    """Is this session enabled?"""
    known = _enabled.get(id(spark))
    return known is not None and known.engine.is_open


def disable(spark: SparkSession) -> None:
    """Let Spark run everything again, and close the engine if `enable` attached it.

    A session that is not enabled stays as it is.

    Args:
        spark: The session that was given to `enable`.

    Raises:
        InvalidArgumentError: it is not a classic session.
    """
    if not isinstance(spark, SparkSession):
        raise InvalidArgumentError(
            f"Expected a SparkSession, got {type(spark).__name__}.", fix="Pass the session given to enable."
        )
    with _lock:
        known = _enabled.pop(id(spark), None)
        if known is None:
            _disabled.add(spark)
        if not _enabled:
            _restore()
    attached = known.engine if known is not None else attached_to(spark)
    if attached is not None:
        attached.subplans.uninstall(spark)
    if known is not None and known.ours:
        known.engine.close()


def _replace() -> None:
    for name, make in _METHODS.items():
        original = getattr(DataFrame, name)
        _before[name] = DataFrame.__dict__.get(name)
        setattr(DataFrame, name, functools.wraps(original)(make(original)))


def _restore() -> None:
    for name, method in _before.items():
        if method is None:
            delattr(DataFrame, name)
        else:
            setattr(DataFrame, name, method)
    _before.clear()


def _engine_for(df: DataFrame) -> Engine | None:
    """The engine that runs this query, if any."""
    known = _enabled.get(id(df._session)) or _of_same_application(df._session)
    if known is None or is_on_spark() or not known.engine.is_open:
        return None
    switched_on = is_switched_on(str(df._session.conf.get(_SWITCH, "true")))
    return known.engine if switched_on else None


def _of_same_application(session: SparkSession) -> _Enabled | None:
    """The enabled session from which this one was created, if that is known."""
    if session in _disabled:
        return None
    context = session.sparkContext
    return next((known for known in list(_enabled.values()) if known.session.sparkContext is context), None)


def _answered(df: DataFrame, ours: Callable[[Result], Any], sparks: Callable[[], Any]) -> Any:
    """An action's answer: from the engine if the session uses one that can run the query, else from Spark."""
    engine = _engine_for(df)
    if engine is None:
        return sparks()
    result, _ = engine._started(df)
    return result.ask(sparks) if isinstance(result, SparkResult) else ours(result)


def _collect(original: Callable[[DataFrame], Any]) -> Callable[..., Any]:
    def collect(self: DataFrame) -> Any:
        return _answered(self, lambda result: result.rows(), lambda: original(self))

    return collect


def _collect_as_arrow(original: Callable[..., Any]) -> Callable[..., Any]:
    def collect_as_arrow(self: DataFrame, *arguments: Any, **named: Any) -> Any:
        return _answered(
            self,
            lambda result: result._collect_as_arrow(*arguments, **named),
            lambda: original(self, *arguments, **named),
        )

    return collect_as_arrow


def _count(original: Callable[[DataFrame], int]) -> Callable[..., int]:
    def count(self: DataFrame) -> int:
        if _engine_for(self) is None:
            return original(self)
        # If Spark has to run it, this is the plan that `count` would make, already optimized.
        return int(self.groupBy().count().collect()[0][0])

    return count


def _show_string(original: Callable[..., str]) -> Callable[..., str]:
    def show_string(self: DataFrame, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        def shown(result: Result) -> str:
            with on_spark():
                return original(as_local_rows(self, result), n, truncate, vertical)

        def sparks() -> str:
            return original(self, n, truncate, vertical)

        if not can_be_shown(n) or _engine_for(self) is None:
            return sparks()
        return str(_answered(self.limit(n + 1), shown, sparks))  # type: ignore[arg-type]  # it is a classic one

    return show_string


_METHODS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "collect": _collect,
    "_collect_as_arrow": _collect_as_arrow,
    "count": _count,
    "_show_string": _show_string,
}
