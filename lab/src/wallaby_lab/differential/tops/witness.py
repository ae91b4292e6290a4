"""Observe which parts of Spark's plans an engine ran, and why not more, from its log, history and inspection."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from wallaby.above import subplan
from wallaby.coordinator.effects import Submit
from wallaby.engine import Engine
from wallaby.lineage.names import QueryId
from wallaby.results.record import QueryRecord, Where

_STAYS: Final = "stays on Spark: "
_LOGGER: Final = logging.getLogger(subplan.__package__)


@dataclass(slots=True)
class Witnessed:
    """What was seen in a block."""

    #: The parts of Spark's plans that ran, as the engine describes them.
    parts: list[str] = field(default_factory=list)
    #: Why parts stayed on Spark.
    reasons: list[str] = field(default_factory=list)
    #: Parts that the engine started and then left to Spark, because of a value in doubt.
    doubts: list[str] = field(default_factory=list)
    #: The queries that were submitted to the TaskManagers, for parts and as a whole.
    submitted: set[QueryId] = field(default_factory=set)
    #: The queries that began in the TaskManagers, as the engine's history has them.
    begun: list[QueryRecord] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Did a query run here as a whole?"""
        return any(record.where is not Where.SPARK for record in self.begun)


class _Notes(logging.Handler):
    def __init__(self, seen: Witnessed) -> None:
        super().__init__(logging.DEBUG)
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        said = str(arguments[0]) if arguments else ""
        if record.msg in (subplan.HAS_RUN, subplan.HAS_FAILED):
            self._seen.parts.append(said)
        elif record.msg == subplan.LEFT_WHILE_RUNNING:
            self._seen.doubts.append(said)
        elif record.msg == subplan.NOT_LOOKED_AT:
            self._seen.reasons.append(f"not looked at: {said}")
        elif record.msg == subplan.CONSIDERED and said.startswith(_STAYS):
            self._seen.reasons.append(said.removeprefix(_STAYS))


@contextmanager
def witness(engine: Engine) -> Iterator[Witnessed]:
    """Watch what an engine runs in a block."""
    seen = Witnessed()
    notes, level = _Notes(seen), _LOGGER.level
    before = max((record.number for record in engine.history()), default=0)

    def noticed(effect: Any, _answer: Any) -> None:
        if isinstance(effect, Submit):
            seen.submitted.add(effect.query)

    end_watch = engine.inspection.watch_coordinator(noticed)
    _LOGGER.addHandler(notes)
    _LOGGER.setLevel(logging.DEBUG)
    try:
        yield seen
    finally:
        _LOGGER.setLevel(level)
        _LOGGER.removeHandler(notes)
        end_watch()
        seen.begun = [each for each in engine.history() if each.number > before and each.queries]
