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
    """Settings that change after an engine was attached: an entry is set, set again, or unset.

    Keywords of `attach` override the entries of that time, but no later ones. An entry that is set again to the value
    of that time counts as unchanged, unless it was seen with another value in between.
    """

    def __init__(self, at_attach: Mapping[str, str], without: Settings) -> None:
        """`without`: the settings that the keywords alone would give, without any entries of the session."""
        self._at_attach = at_attach
        self._without = without
        #: The keys whose entries have changed since.
        self._changed: set[str] = set()
        self._told: set[tuple[str, str | None]] = set()

    def now(self, settings: Settings, entries: Mapping[str, str], *, is_own: bool = False) -> Settings:
        """The engine's settings, with the present entries of a session.

        `is_own`: the entries are those of the session that the engine was attached to; another may lack some.

        Raises:
            ConfigurationError: a key is unknown, or its value is invalid.
        """
        changed = self._changed | (self._at_attach.keys() - entries.keys())
        changed |= {key for key, text in entries.items() if self._at_attach.get(key) != text}
        if not changed:
            return settings
        later = {key: entries[key] for key in sorted(changed) if key in entries}
        found, too_late = changed_settings(settings, later, changed - later.keys(), self._without)
        self._changed |= changed  # only now: an entry that makes no sense is refused, and leaves no trace
        for key in too_late:
            if (key in later or is_own) and (key, later.get(key)) not in self._told:
                self._told.add((key, later.get(key)))
                _log.warning(
                    "%s has no effect: it was %s after the engine was attached. "
                    "Close the engine (wallaby.disable) and attach again.",
                    f"{key} = {later[key]}" if key in later else f"Unsetting {key}",
                    "set" if key in later else "unset",
                )
        return found
