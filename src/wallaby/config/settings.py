"""The settings of one engine: read from the session and from keywords, checked, and changed later if allowed.

Keywords of `attach` override the session's entries. A later change with `spark.conf.set` takes effect from the next
query on, if the setting is in `ANY_TIME`. An unknown key, a value of the wrong type and an impossible value are errors
that name the key and the fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from wallaby.config.registry import (
    ANY_TIME,
    ONLY_OF_SESSIONS,
    PREFIX,
    REPLACED,
    SETTINGS,
    Setting,
    shown_value,
)
from wallaby.errors import ConfigurationError

_BY_KEY = {setting.key: setting for setting in SETTINGS}
#: How values look whose kind alone does not tell.
_EXAMPLES = {"bytes": ", such as 512m or 2g", "seconds": ", such as 30s or 5m"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one engine, read and checked. Fields are the keys in snake case."""

    enabled: bool
    below: str
    workers: int
    threads: int
    exclusive: bool
    memory: int
    memory_allowance: int
    channels: int
    broadcast: int
    split: int
    write_file_size: int
    window: int
    task_target: int
    lease: float
    attach_timeout: float
    no_workers_timeout: float
    retry_on_gcs_loss: bool
    timeout: float
    stall_timeout: float
    spark_errors: bool
    max_task_worker_losses: int
    fault_tolerance_policy: str
    fault_tolerance_store: str
    fault_tolerance_checkpoint: float
    fault_tolerance_abandoned_after: float
    execution_dependencies: str
    execution_draw: str
    gcs_url: str
    gcs_password: str
    gcs_timeout: float
    gcs_tls_ca: str
    event_log_dir: str
    progress_enabled: bool
    ui_enabled: str
    ui_port: int
    console_quiet: bool
    chaos_enabled: bool
    chaos_directory: str
    chaos_faults: str
    leaf_dir: str
    leaf_minimum: int
    local_directory: str

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={'***' if _is_secret(name, value) else repr(value)}"
            for name, value in ((each.name, getattr(self, each.name)) for each in fields(self))
        )
        return f"Settings({shown})"


def _is_secret(name: str, value: object) -> bool:
    """Is it a password, or an address that contains one?"""
    return "password" in name or (name == "fault_tolerance_store" and "@" in str(value))


def read_settings(configured: Mapping[str, str], keywords: Mapping[str, object]) -> Settings:
    """Read the settings from `spark.wallaby.*` entries and from keywords, which take precedence.

    Raises:
        ConfigurationError: a key is unknown, or its value makes no sense.
    """
    values = {setting.key: setting.default for setting in SETTINGS}
    for key, text in configured.items():
        if key.startswith(PREFIX):
            name = key.removeprefix(PREFIX)
            setting = _known(key, name)
            values[setting.key] = _read(setting, key, text)
    by_keyword = {field_of(setting.key): setting for setting in SETTINGS}
    for keyword, value in keywords.items():
        if keyword not in by_keyword:
            raise _unknown(keyword, by_keyword)
        if keyword in ONLY_OF_SESSIONS:
            raise ConfigurationError(
                f"{keyword} cannot be passed as an argument: every query reads {PREFIX}{keyword} of its session.",
                fix=f'Use spark.conf.set("{PREFIX}{keyword}", "{_text_of(value)}").',
                key=keyword,
            )
        setting = by_keyword[keyword]
        values[setting.key] = _read(setting, keyword, _text_of(value))
    return Settings(**{field_of(key): value for key, value in values.items()})


def changed_settings(
    settings: Settings, entries: Mapping[str, str], unset: Iterable[str], without: Settings
) -> tuple[Settings, tuple[str, ...]]:
    """Apply entries that were made or unset later; also returns the keys that can no longer change.

    A setting whose entry was unset has its value in `without`.

    Raises:
        ConfigurationError: a key is unknown, or its value makes no sense.
    """
    changes, too_late = {}, []
    for key in (*entries, *sorted(unset)):
        setting = _known(key, key.removeprefix(PREFIX))
        field = field_of(setting.key)
        value = _read(setting, key, entries[key]) if key in entries else getattr(without, field)
        if setting.key in ANY_TIME:
            changes[field] = value
        elif value != getattr(settings, field):
            too_late.append(key)
    return replace(settings, **changes), tuple(too_late)


def _text_of(value: object) -> str:
    """A value that was passed as an argument, as it would stand in Spark's configuration."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_switched_on(text: str) -> bool:
    """Does the value of `spark.wallaby.enabled` let the engine run queries?"""
    return bool(_read(_BY_KEY["enabled"], PREFIX + "enabled", text))


def _known(key: str, name: str) -> Setting:
    if name not in _BY_KEY:
        raise _unknown(key, {PREFIX + known: None for known in _BY_KEY})
    return _BY_KEY[name]


def _unknown(key: str, known: Mapping[str, object]) -> ConfigurationError:
    instead = {field_of(old): new for old, new in REPLACED.items()}.get(field_of(key.removeprefix(PREFIX)))
    # The prefix is part of every key, and would make any two of them alike.
    names = {name.removeprefix(PREFIX): name for name in known}
    near = [names[name] for name in get_close_matches(key.removeprefix(PREFIX), list(names), n=1)]
    if instead is not None:
        fix = f"Set {PREFIX}{instead}."
    else:
        fix = f"Did you mean {near[0]}?" if near else "See docs/configuration.md for all keys."
    return ConfigurationError(f"There is no setting {key}.", fix=fix, key=key)


def _read(setting: Setting, key: str, text: str) -> Any:
    try:
        value = setting.read(text)
    except ValueError:
        raise ConfigurationError(
            f"{key} = {text!r} is not valid.",
            fix=f"Expected: {setting.kind}{_EXAMPLES.get(setting.kind, '')}.",
            key=key,
        ) from None
    low, high = setting.least, setting.most
    if low is not None and high is not None and not low <= value <= high:
        bounds = f"between {shown_value(setting, low)} and {shown_value(setting, high)}"
        raise ConfigurationError(f"{key} = {text} is out of range.", fix=f"Set it to {bounds}.", key=key)
    return value


def field_of(key: str) -> str:
    """The field of `Settings`, and the keyword, of a key without its prefix."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key.replace(".", "_")).lower()
