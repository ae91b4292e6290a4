"""Settings: every `spark.wallaby.*` key, with its type, default, unit and meaning, in one registry.

Keys are read at attach, from the session's configuration; keywords of `attach` come before them. What is changed
later with `spark.conf.set` counts from the next query on, if the setting is one of `ANY_TIME`. An unknown key, a value
of the wrong type and an impossible value are errors that name the key and the fix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from wallaby.errors import ConfigurationError

PREFIX = "spark.wallaby."
_BYTES = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?", re.IGNORECASE)
_STATIC = re.compile(r"static\((\d+)\)")
#: A static draw of more outputs could not be recorded; see `lineage`.
STATIC_MAX = (1 << 14) - 1
_UNITS_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: how its text is read, what holds for its value, and what it means."""

    key: str
    read: Callable[[str], Any]
    kind: str
    default: Any
    doc: str
    least: float | None = None
    most: float | None = None


def _whole(text: str) -> int:
    return int(text.strip())


def _truth(text: str) -> bool:
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def _size(text: str) -> int:
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return int(match[1]) * _UNITS_BYTES[match[2].lower()]


def _time(text: str) -> float:
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _UNITS_SECONDS[(match[2] or "s").lower()]


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if (word := text.strip().lower()) not in words:
            raise ValueError(text)
        return word

    return read


def _dependencies(text: str) -> str:
    """`dynamic`, or `static(K)` in this one form."""
    word = text.strip().lower().replace(" ", "")
    match = _STATIC.fullmatch(word)
    if word != "dynamic" and (match is None or not 1 <= int(match[1]) <= STATIC_MAX):
        raise ValueError(text)
    return word


def static_outputs(dependencies: str) -> int | None:
    """K of `static(K)`; None for `dynamic`."""
    match = _STATIC.fullmatch(dependencies)
    return int(match[1]) if match is not None else None


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "enabled",
        _truth,
        "true or false",
        True,
        "After wallaby.enable: set to false to leave queries to Spark.",
    ),
    Setting(
        "workers", _whole, "number", 0, "TaskManagers; 0: one per executor, one under local[n].", 0, 4096
    ),
    Setting("threads", _whole, "number", 0, "Kernel threads per TaskManager; 0: one per core.", 0, 1024),
    Setting(
        "exclusive",
        _truth,
        "true or false",
        False,
        "Under local[m], allow TaskManagers to take every slot, so that no ordinary Spark job can run.",
    ),
    Setting(
        "memory",
        _size,
        "bytes",
        0,
        "Memory budget of each TaskManager; 0: Spark's Python memory (spark.executor.pyspark.memory) if set, else "
        "half of what the host or its control group leaves beside the JVMs, divided among its TaskManagers.",
        0,
    ),
    Setting(
        "memory.allowance",
        _size,
        "bytes",
        300 << 20,
        "What a TaskManager may use on top of its budget, for code and memory that libraries keep. Before it uses "
        "more, it ends the query that takes most with MemoryLimitError; see docs/memory.md.",
        256 << 20,
    ),
    Setting("channels", _whole, "number", 0, "Channels per stage; 0: one per kernel thread.", 0, 1024),
    Setting(
        "broadcast",
        _size,
        "bytes",
        128 << 20,
        "A build side up to this size, and up to 1/16 of memory per thread, is broadcast to every reader.",
        0,
    ),
    Setting(
        "split",
        _size,
        "bytes",
        64 << 20,
        "A read takes row groups up to about this size; less if the memory budget is small.",
        1,
    ),
    Setting(
        "window",
        _size,
        "bytes",
        128 << 20,
        "How much unconsumed data may wait at the consumer, per edge; less if the memory budget is small.",
        1,
    ),
    Setting(
        "taskTarget",
        _size,
        "bytes",
        32 << 20,
        "A task takes inputs up to about this size; less if the memory budget is small.",
        1,
    ),
    Setting("lease", _time, "seconds", 1.25, "A worker silent for longer is suspected to be lost.", 0.2, 600),
    Setting("attachTimeout", _time, "seconds", 60.0, "How long attach waits for the TaskManagers.", 1, 3600),
    Setting("noWorkersTimeout", _time, "seconds", 60.0, "How long a query without workers waits.", 0, 86400),
    Setting(
        "retryOnGcsLoss",
        _truth,
        "true or false",
        False,
        "Run a query again from the start, up to three times, if the control store was lost while it ran "
        "(GcsLostError). Rows are then held back until the result is complete.",
    ),
    Setting(
        "timeout",
        _time,
        "seconds",
        0.0,
        "A query that takes longer is cancelled; 0: no limit. A stalled query ends without it, by stallTimeout.",
        0,
    ),
    Setting(
        "stallTimeout",
        _time,
        "seconds",
        60.0,
        "A query in which nothing moves for this long, although nothing computes and no slow client holds it up, "
        "ends with QueryStalledError, which says who waits for what; 0: never.",
        0,
        86400,
    ),
    Setting(
        "sparkErrors",
        _truth,
        "true or false",
        True,
        "After a data error (a division by zero, a bad cast), Spark runs the query up to the error, so that the "
        "error has Spark's class, parameters and query context. False: the engine's own error is raised at once, "
        "with only Spark's condition and SQLSTATE.",
    ),
    Setting(
        "maxTaskWorkerLosses", _whole, "number", 4, "Workers lost in a row before a task fails.", 1, 1000
    ),
    Setting(
        "faultTolerance.enabled",
        _truth,
        "true or false",
        True,
        "False: no lineage, commits or backups; a query that loses a worker fails with WorkerLostError. Meant as a "
        "control, to test recovery and to measure what fault tolerance costs. Cannot be combined with a policy.",
    ),
    Setting(
        "faultTolerance.policy",
        str,
        "text",
        "lineage",
        "How queries survive a loss: lineage, none (run the query again), spool, stagewise, checkpoint+lineage or "
        "spool+checkpoint; see docs/protocol.md.",
    ),
    Setting(
        "faultTolerance.store",
        str,
        "address",
        "",
        "The durable store for policies that spool or take checkpoints: a directory that all hosts can reach, as a "
        "path or as an address of one of pyarrow's file systems (s3://bucket/path).",
    ),
    Setting(
        "faultTolerance.checkpoint",
        _time,
        "seconds",
        2.0,
        "With checkpoints: the minimum time between two snapshots of a channel's state; 0: one after every task.",
        0,
    ),
    Setting(
        "faultTolerance.abandonedAfter",
        _time,
        "seconds",
        86400.0,
        "If this driver is killed: after this time, another engine that uses the same durable store may remove what "
        "is left there. An engine of the same host and user does so as soon as it starts.",
        60,
    ),
    Setting(
        "execution.mode",
        _one_of("pipelined", "stagewise"),
        "pipelined or stagewise",
        "pipelined",
        "Stagewise: a stage starts only when its inputs are complete. The policy stagewise allows only this mode.",
    ),
    Setting(
        "execution.dependencies",
        _dependencies,
        "dynamic or static(K)",
        "dynamic",
        "How many outputs a task takes. dynamic: whatever has arrived, up to taskTarget; static(8): always 8, fewer "
        "only at the end.",
    ),
    Setting(
        "execution.draw",
        _one_of("several", "one"),
        "several or one",
        "several",
        "Whether one task takes outputs from several upstream channels or from one.",
    ),
    Setting(
        "gcs.url",
        str,
        "address",
        "",
        "Address of a Redis as control store, without its password; empty: an embedded one. Engines may share one.",
    ),
    Setting("gcs.password", str, "text", "", "The password of that Redis. Spark's UI hides it."),
    Setting(
        "gcs.timeout",
        _time,
        "seconds",
        60.0,
        "A Redis that does not answer for longer counts as lost, and its queries end with GcsLostError.",
        1,
        86400,
    ),
    Setting(
        "gcs.tlsCa",
        str,
        "path",
        "",
        "For a rediss:// address: a PEM file with the trusted certificates, on the driver and on executors; empty: "
        "the system's.",
    ),
    Setting(
        "eventLog.dir", str, "path", "", "Directory for event logs, one per query; empty: no event logs."
    ),
    Setting(
        "progress.enabled",
        _truth,
        "true or false",
        True,
        "Show a progress bar for long queries on a terminal or in a notebook; never in pipes or CI.",
    ),
    Setting("chaos.enabled", _truth, "true or false", False, "Allow injected faults; only to test recovery."),
    Setting(
        "chaos.directory",
        str,
        "path",
        "",
        "With chaos: a directory that all hosts share, for fault orders and for a record of each fault that struck.",
    ),
    Setting(
        "chaos.faults",
        str,
        "text",
        "",
        "With chaos: faults to inject from the start, such as w2:commit:3:kill; see docs/chaos.md.",
    ),
    Setting(
        "leaf.dir",
        str,
        "path",
        "",
        "Where Spark hands over rows of Spark leaves, shared by all hosts; empty: local, if there is only one host.",
    ),
    Setting(
        "leaf.minimum",
        _size,
        "bytes",
        1 << 20,
        "If Spark has to run a part of a query that reads less than this, Spark runs the whole query.",
        0,
    ),
    Setting("localDirectory", str, "path", "", "Where TaskManagers spill; empty: Spark's local directories."),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}
#: These are a query's own, and may be changed while an engine is attached.
ANY_TIME = frozenset(
    {
        "enabled",
        "channels",
        "broadcast",
        "split",
        "window",
        "taskTarget",
        "timeout",
        "sparkErrors",
        "execution.dependencies",
        "execution.draw",
        "leaf.minimum",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one engine, read and checked. Fields are the keys in snake case."""

    enabled: bool
    workers: int
    threads: int
    exclusive: bool
    memory: int
    memory_allowance: int
    channels: int
    broadcast: int
    split: int
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
    fault_tolerance_enabled: bool
    fault_tolerance_policy: str
    fault_tolerance_store: str
    fault_tolerance_checkpoint: float
    fault_tolerance_abandoned_after: float
    execution_mode: str
    execution_dependencies: str
    execution_draw: str
    gcs_url: str
    gcs_password: str
    gcs_timeout: float
    gcs_tls_ca: str
    event_log_dir: str
    progress_enabled: bool
    chaos_enabled: bool
    chaos_directory: str
    chaos_faults: str
    leaf_dir: str
    leaf_minimum: int
    local_directory: str
    #: The keys that were set, be it to their defaults.
    given: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={'***' if _is_secret(name, value) else repr(value)}"
            for name, value in ((each.name, getattr(self, each.name)) for each in fields(self) if each.repr)
        )
        return f"Settings({shown})"


def _is_secret(name: str, value: object) -> bool:
    """Passwords, and addresses that hold one."""
    return "password" in name or (name == "fault_tolerance_store" and "@" in str(value))


def shown_default(setting: Setting) -> str:
    """A default as a user would write it."""
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    if setting.kind == "bytes" and setting.default:
        unit, size = next((u, n) for u, n in reversed(_UNITS_BYTES.items()) if setting.default % n == 0)
        return f"{setting.default // size}{unit}"
    return f"{setting.default:g}s" if setting.kind == "seconds" else str(setting.default)


def read_settings(configured: Mapping[str, str], keywords: Mapping[str, object]) -> Settings:
    """The settings from `spark.wallaby.*` entries and from keywords, which come first."""
    values = {setting.key: setting.default for setting in SETTINGS}
    given = set()
    for key, text in configured.items():
        if key.startswith(PREFIX):
            name = key.removeprefix(PREFIX)
            setting = _known(key, name)
            values[setting.key] = _read(setting, key, text)
            given.add(setting.key)
    by_keyword = {_snake(setting.key): setting for setting in SETTINGS}
    for keyword, value in keywords.items():
        if keyword not in by_keyword:
            raise _unknown(keyword, by_keyword)
        setting = by_keyword[keyword]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        values[setting.key] = _read(setting, keyword, text)
        given.add(setting.key)
    return Settings(**{_snake(key): value for key, value in values.items()}, given=tuple(sorted(given)))


def changed_settings(settings: Settings, entries: Mapping[str, str]) -> tuple[Settings, tuple[str, ...]]:
    """Settings with entries that were made later; also the keys that cannot change any more.

    Raises:
        ConfigurationError: a key is unknown, or its value makes no sense.
    """
    changes, too_late = {}, []
    for key, text in entries.items():
        setting = _known(key, key.removeprefix(PREFIX))
        value = _read(setting, key, text)
        if setting.key in ANY_TIME:
            changes[_snake(setting.key)] = value
        elif value != getattr(settings, _snake(setting.key)):
            too_late.append(key)
    return replace(settings, **changes), tuple(too_late)


def is_switched_on(text: str) -> bool:
    """Does the value of `spark.wallaby.enabled` let queries through?"""
    return bool(_read(_BY_KEY["enabled"], PREFIX + "enabled", text))


def contradiction(one: str, other: str, why: str) -> ConfigurationError:
    """The error of two settings, each with its value, that cannot both be followed."""
    return ConfigurationError(
        f"{PREFIX}{one} contradicts {PREFIX}{other}: {why}.",
        fix="Leave one of them out.",
        key=PREFIX + one.partition("=")[0],
    )


def _known(key: str, name: str) -> Setting:
    if name not in _BY_KEY:
        raise _unknown(key, {PREFIX + known: None for known in _BY_KEY})
    return _BY_KEY[name]


def _unknown(key: str, known: Mapping[str, object]) -> ConfigurationError:
    near = get_close_matches(key, list(known), n=1)
    fix = f"Did you mean {near[0]}?" if near else "See docs/configuration.md for all keys."
    return ConfigurationError(f"There is no setting {key}.", fix=fix, key=key)


def _read(setting: Setting, key: str, text: str) -> Any:
    try:
        value = setting.read(text)
    except ValueError:
        raise ConfigurationError(
            f"{key} = {text!r} is not valid.", fix=f"Expected: {setting.kind}.", key=key
        ) from None
    low, high = setting.least, setting.most
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low:g}" if high is None else f"between {low or 0:g} and {high:g}"
        raise ConfigurationError(f"{key} = {text} is out of range.", fix=f"Set it to {bounds}.", key=key)
    return value


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key.replace(".", "_")).lower()
