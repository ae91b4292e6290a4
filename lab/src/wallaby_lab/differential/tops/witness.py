"""What an engine ran of Spark's plans, and why it did not run more: from its log, and from the queries it was given."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame

from wallaby.above import subplans
from wallaby.engine import Engine
from wallaby.results.result import Result

_STAYS: Final = "stays on Spark: "
_LOGGER: Final = logging.getLogger(subplans.__name__)


@dataclass(slots=True)
class Witnessed:
    """What was seen in a block."""

    #: The parts of Spark's plans that ran, in the engine's words.
    parts: list[str] = field(default_factory=list)
    #: The queries that went straight to the driver.
    results: list[Result] = field(default_factory=list)
    #: Why parts stayed on Spark.
    reasons: list[str] = field(default_factory=list)
    #: Parts that the engine began and left to Spark, because of a value in doubt.
    doubts: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Did a query run here as a whole?"""
        return any(result.native for result in self.results)


class _Notes(logging.Handler):
    def __init__(self, seen: Witnessed) -> None:
        super().__init__(logging.DEBUG)
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        said = str(arguments[0]) if arguments else ""
        if record.msg in (subplans.HAS_RUN, subplans.HAS_FAILED):
            self._seen.parts.append(said)
        elif record.msg == subplans.LEFT_WHILE_RUNNING:
            self._seen.doubts.append(said)
        elif record.msg == subplans.NOT_LOOKED_AT:
            self._seen.reasons.append(f"not looked at: {said}")
        elif record.msg == subplans.CONSIDERED and said.startswith(_STAYS):
            self._seen.reasons.append(said.removeprefix(_STAYS))


@contextmanager
def witness(engine: Engine) -> Iterator[Witnessed]:
    """Watch what an engine runs in a block."""
    seen = Witnessed()
    notes = _Notes(seen)
    run_native, level = engine.run_native, _LOGGER.level

    def watched(df: DataFrame, *, observed: bool = False) -> Result | None:
        result = run_native(df, observed=observed)
        if result is not None:
            seen.results.append(result)
        return result

    engine.run_native = watched  # type: ignore[method-assign]  # until the end of the block
    _LOGGER.addHandler(notes)
    _LOGGER.setLevel(logging.DEBUG)
    try:
        yield seen
    finally:
        _LOGGER.setLevel(level)
        _LOGGER.removeHandler(notes)
        del engine.run_native
