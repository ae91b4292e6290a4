"""Every `spark.wallaby.*` key with its type, default, unit and meaning. docs/configuration.md is generated from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wallaby.config.values import UNITS_BYTES, byte_count, dependencies, one_of, seconds, truth, whole_number

PREFIX = "spark.wallaby."
#: No size is larger, and no time longer: 366 days. Beyond, some library's clock or integer would overflow.
BYTES_MAX = 64 << 40
SECONDS_MAX = 366 * 86400


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: how its text is read, its meaning, and the bounds of its value: both, or none if it is no number."""

    key: str
    read: Callable[[str], Any]
    kind: str
    default: Any
    doc: str
    least: float | None = None
    most: float | None = None


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "enabled",
        truth,
        "true or false",
        True,
        "After wallaby.enable: set to false to leave queries to Spark.",
    ),
    Setting(
        "below",
        one_of("auto", "always", "never"),
        "auto, always or never",
        "auto",
        "After wallaby.enable: whether parts of queries that Spark runs, such as the input of a write or of a "
        "Python function, run in the TaskManagers. auto: where that is estimated to be faster.",
    ),
    Setting(
        "workers",
        whole_number,
        "number",
        0,
        "How many TaskManagers to start; 0: one per executor, one under local[n].",
        0,
        4096,
    ),
    Setting(
        "threads",
        whole_number,
        "number",
        0,
        "Threads that compute, per TaskManager; 0: one per core.",
        0,
        1024,
    ),
    Setting(
        "exclusive",
        truth,
        "true or false",
        False,
        "Under local[m], allow TaskManagers to take every slot, so that no ordinary Spark job can run.",
    ),
    Setting(
        "memory",
        byte_count,
        "bytes",
        0,
        "Memory budget of each TaskManager; 0: Spark's Python memory (spark.executor.pyspark.memory) if set, else "
        "half of what the host, its control group or the pod leaves beside the JVMs, divided among its TaskManagers.",
        0,
        BYTES_MAX,
    ),
    Setting(
        "memory.allowance",
        byte_count,
        "bytes",
        300 << 20,
        "What a TaskManager may use on top of its budget, for code and memory that libraries keep. Before it uses "
        "more, it ends the query that takes most with MemoryLimitError; see docs/memory.md.",
        256 << 20,
        BYTES_MAX,
    ),
    Setting(
        "channels",
        whole_number,
        "number",
        0,
        "Parallel parts (channels) of each stage; 0: one per kernel thread.",
        0,
        1024,
    ),
    Setting(
        "broadcast",
        byte_count,
        "bytes",
        128 << 20,
        "The largest side of a join that is sent to every channel of the other side, instead of dividing both sides by "
        "the key; at most 1/16 of the memory per thread.",
        0,
        BYTES_MAX,
    ),
    Setting(
        "split",
        byte_count,
        "bytes",
        64 << 20,
        "A read takes row groups up to about this size; less if the memory budget is small.",
        1,
        BYTES_MAX,
    ),
    Setting(
        "write.fileSize",
        byte_count,
        "bytes",
        0,
        "Target size, before compression, of the files that TaskManagers write. If the rows fill fewer files than "
        "there are channels, only that many channels write. 0: every channel writes, up to 128 MiB each.",
        0,
        BYTES_MAX,
    ),
    Setting(
        "window",
        byte_count,
        "bytes",
        128 << 20,
        "How much data may wait at a receiving channel, for each channel that sends to it; less if the memory budget "
        "is small.",
        1,
        BYTES_MAX,
    ),
    Setting(
        "taskTarget",
        byte_count,
        "bytes",
        32 << 20,
        "A task takes inputs up to about this size; less if the memory budget is small.",
        1,
        BYTES_MAX,
    ),
    Setting(
        "lease",
        seconds,
        "seconds",
        1.25,
        "A TaskManager that is silent for longer is suspected to be lost.",
        0.2,
        600,
    ),
    Setting(
        "attachTimeout", seconds, "seconds", 60.0, "How long attach waits for the TaskManagers.", 1, 3600
    ),
    Setting(
        "noWorkersTimeout",
        seconds,
        "seconds",
        60.0,
        "How long a query waits while there is no TaskManager; then it ends with NoWorkersError.",
        0,
        86400,
    ),
    Setting(
        "retryOnGcsLoss",
        truth,
        "true or false",
        False,
        "Run a query again from the start, up to three times, if the control store was lost while it ran "
        "(GcsLostError). Rows are then held back until the result is complete.",
    ),
    Setting(
        "timeout",
        seconds,
        "seconds",
        0.0,
        "A query that takes longer is cancelled (QueryTimeoutError); 0: no limit. The time counts from the start of "
        "the action: planning, waiting for TaskManagers, each further run of the query, and Spark's run if Spark "
        "answers. It holds for collect, take, toArrow, toPandas, count and show, of an engine and of enabled sessions, "
        "even if Spark runs the whole query. In whatever else Spark runs (writes, caches, commands, queries over Spark "
        "Connect), each part that runs in the TaskManagers has this limit for itself, and Spark's own work has none. "
        "Time in which nothing runs because nobody reads the result does not count. A stalled query ends without it, "
        "by stallTimeout.",
        0,
        SECONDS_MAX,
    ),
    Setting(
        "stallTimeout",
        seconds,
        "seconds",
        60.0,
        "A query in which nothing moves for this long, although nothing computes and no slow client holds it up, "
        "ends with QueryStalledError, which says who waits for what; 0: never.",
        0,
        86400,
    ),
    Setting(
        "sparkErrors",
        truth,
        "true or false",
        True,
        "After a data error (a division by zero, a bad cast), Spark runs the query up to the error, so that the "
        "error has Spark's class, parameters and query context. False: the engine's own error is raised at once, "
        "with only Spark's condition and SQLSTATE.",
    ),
    Setting(
        "maxTaskWorkerLosses",
        whole_number,
        "number",
        4,
        "The query fails when so many TaskManagers in a row have been lost while the same task was running.",
        1,
        1000,
    ),
    Setting(
        "faultTolerance.policy",
        str,
        "text",
        "lineage",
        "How queries survive a loss: lineage, restart (from the beginning), spool, stagewise (a stage starts only "
        "when its inputs are complete), stagewise+spool, checkpoint (snapshots of all channels, to which all go back "
        "together), checkpoint+lineage, spool+checkpoint, or off (a lost worker fails its queries; meant as a control, "
        "to test recovery and to measure what fault tolerance costs); see docs/protocol.md.",
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
        seconds,
        "seconds",
        2.0,
        "With checkpoints: the minimum time between two checkpoints of a channel's state; 0: one after every task. "
        "With the policy checkpoint: the time between two snapshots of all channels; 0: one before every read.",
        0,
        SECONDS_MAX,
    ),
    Setting(
        "faultTolerance.abandonedAfter",
        seconds,
        "seconds",
        86400.0,
        "If this driver is killed: after this time, another engine that uses the same durable store may remove what "
        "is left there. An engine of the same host and user does so as soon as it starts.",
        60,
        SECONDS_MAX,
    ),
    Setting(
        "execution.dependencies",
        dependencies,
        "dynamic or static(K)",
        "dynamic",
        "How many outputs a task takes. dynamic: whatever has arrived, up to taskTarget; static(8): always 8, fewer "
        "only at the end.",
    ),
    Setting(
        "execution.draw",
        one_of("several", "one"),
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
        seconds,
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
        truth,
        "true or false",
        True,
        "Show a progress bar for long queries on a terminal or in a notebook; never in pipes or CI.",
    ),
    Setting(
        "ui.enabled",
        one_of("auto", "true", "false"),
        "auto, true or false",
        "auto",
        "Start the live page with the engine, on 127.0.0.1 of the driver. auto: in notebooks under local[n]. engine.ui "
        "starts it at any time.",
    ),
    Setting("ui.port", whole_number, "number", 0, "The port of the live page; 0: any free one.", 0, 65535),
    Setting(
        "console.quiet",
        truth,
        "true or false",
        True,
        "Keep Spark's stack traces about lost TaskManagers out of the driver's log: Wallaby reports a loss in one "
        "line. false: show them.",
    ),
    Setting("chaos.enabled", truth, "true or false", False, "Allow injected faults; only to test recovery."),
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
        byte_count,
        "bytes",
        1 << 20,
        "If Spark has to run a part of a query first, Spark runs all of it in two cases: the query reads less than "
        "this, or handing rows over is estimated to cost more than the engine saves. 0: in neither case.",
        0,
        BYTES_MAX,
    ),
    Setting("localDirectory", str, "path", "", "Where TaskManagers spill; empty: Spark's local directories."),
)
#: Former keys, and what to set instead.
REPLACED = {
    "faultTolerance.enabled": "faultTolerance.policy=off instead of false, and no policy instead of true",
    "execution.mode": "faultTolerance.policy=stagewise instead of stagewise, and no policy instead of pipelined",
}
#: Settings of single queries, which may be changed while an engine is attached.
ANY_TIME = frozenset(
    {
        "enabled",
        "below",
        "channels",
        "broadcast",
        "split",
        "write.fileSize",
        "window",
        "taskTarget",
        "timeout",
        "sparkErrors",
        "execution.dependencies",
        "execution.draw",
        "leaf.minimum",
    }
)

#: Settings that sessions have and engines do not, because sessions of one engine may differ in them.
ONLY_OF_SESSIONS = frozenset({"enabled"})


def shown_default(setting: Setting) -> str:
    """A default as a user would write it."""
    return shown_value(setting, setting.default)


def shown_value(setting: Setting, value: Any) -> str:
    """A value of a setting as a user would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if setting.kind == "bytes" and value:
        unit, size = next((u, n) for u, n in reversed(UNITS_BYTES.items()) if value % n == 0)
        return f"{value // size}{unit}"
    return f"{value:.10g}s" if setting.kind == "seconds" else str(value)
