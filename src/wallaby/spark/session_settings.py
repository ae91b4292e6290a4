"""The `spark.wallaby.*` entries of a session: those at attach, and those set later with `spark.conf.set`.

A later entry takes effect from the next query on, or a warning says that it has no effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wallaby.config.registry import PREFIX
from wallaby.config.settings import Settings, changed_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


def entries_of(spark: SparkSession) -> dict[str, str]:
    """The entries of a session's application and of the session itself, which take precedence."""
    of_application = dict(spark.sparkContext.getConf().getAll())
    return {
        key: str(value)
        for key, value in {**of_application, **spark.conf.getAll}.items()
        if key.startswith(PREFIX)
    }


class SessionSettings:
    """Settings that change after an engine was attached."""

    def __init__(self, at_attach: Mapping[str, str]) -> None:
        self._at_attach = at_attach
        self._told: set[tuple[str, str]] = set()

    def now(self, settings: Settings, entries: Mapping[str, str]) -> Settings:
        """The engine's settings, with the session's present entries.

        Raises:
            ConfigurationError: a key is unknown, or its value is invalid.
        """
        later = {key: text for key, text in entries.items() if self._at_attach.get(key) != text}
        if not later:
            return settings
        found, too_late = changed_settings(settings, later)
        for key in too_late:
            if (key, later[key]) not in self._told:
                self._told.add((key, later[key]))
                _log.warning(
                    "%s = %s has no effect: it was set after the engine was attached. "
                    "Close the engine (wallaby.disable) and attach again.",
                    key,
                    later[key],
                )
        return found
