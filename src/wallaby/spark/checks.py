"""Refuse Spark settings with which a TaskManager cannot work, at attach, with the reason and the fix.

These settings are no problem and are not refused:

- `spark.speculation`: Spark does not speculate on jobs of one task, unless told a duration (below).
- `spark.authenticate` alone: it authenticates and does not encrypt; so do Wallaby's token and password.
- `OMP_NUM_THREADS`, which Spark sets to a task's share of CPUs: thread counts are set explicitly.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from wallaby.catalyst.spark_versions import check_version
from wallaby.config.settings import Settings
from wallaby.errors import AttachError, ConfigurationError
from wallaby.gcs.address import parse_address
from wallaby.spark.cluster import Cluster

#: With a shorter interval, Spark would kill the executor while a TaskManager is still ending.
REAPER_SECONDS_MIN = 15.0
_ENCRYPTION = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)
_SECONDS = re.compile(r"(-?\d+)\s*(ms|s|m|min|h|d)?", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def check(cluster: Cluster, settings: Settings) -> None:
    """Refuse settings that cannot work.

    Raises:
        AttachError: the message names the setting, the reason and the fix.
    """
    _check_speculation(cluster)
    _check_idle(cluster)
    _check_reaper(cluster)
    _check_encryption(cluster, settings)
    _check_address(settings)


def check_session(spark: object) -> None:
    """Refuse an object that is no session, and a session to which no engine can be attached."""
    check_version()
    if not isinstance(spark, SparkSession):
        if type(spark).__module__.startswith("pyspark.sql.connect"):
            raise AttachError(
                "Cannot attach to a Spark Connect session: its queries are planned and run by the server.",
                fix="Remove this call and start the server with `wallaby connect`, or with wallaby.serve(spark) in a "
                "program of its own. Clients then use Wallaby unchanged.",
            )
        raise AttachError(
            f"Cannot attach to {type(spark).__name__}.", fix="Use a classic SparkSession, without remote()."
        )
    if spark.sparkContext._jsc is None:
        raise AttachError("Cannot attach to a stopped session.", fix="Start a new SparkSession.")
    check_version(spark.version, "Spark")


def needs_encryption(cluster: Cluster) -> str:
    """The setting by which Spark encrypts network traffic; empty if it does not, or if all is on one host."""
    return "" if cluster.is_one_host else next((key for key in _ENCRYPTION if cluster.is_on(key)), "")


def _check_speculation(cluster: Cluster) -> None:
    if not cluster.is_on("spark.speculation"):
        return
    for key in ("spark.speculation.task.duration.threshold", "spark.executor.decommission.killInterval"):
        if cluster.setting(key):
            raise _refused(
                key,
                "Spark would start second copies of TaskManagers, because they look like slow tasks",
                f"Unset {key}",
            )


def _check_idle(cluster: Cluster) -> None:
    key = "spark.python.worker.killOnIdleTimeout"
    idle_seconds = _seconds(cluster.setting("spark.python.worker.idleTimeoutSeconds"), 0.0)
    if cluster.is_on(key) and idle_seconds > 0:
        raise _refused(
            key,
            "Spark would kill TaskManagers, because they look like idle Python workers",
            f"Set {key}=false, or spark.python.worker.idleTimeoutSeconds=0",
        )


def _check_reaper(cluster: Cluster) -> None:
    key = "spark.task.reaper.killTimeout"
    timeout_seconds = _seconds(cluster.setting(key), -1.0)
    if cluster.is_on("spark.task.reaper.enabled") and 0 <= timeout_seconds < REAPER_SECONDS_MIN:
        raise _refused(
            key,
            "Spark would kill an executor whose TaskManager needs longer to end after it is cancelled",
            f"Set it to {REAPER_SECONDS_MIN:g}s or more, or to -1",
        )


def _check_encryption(cluster: Cluster, settings: Settings) -> None:
    if cluster.is_on("spark.io.encryption.enabled"):
        raise _refused(
            "spark.io.encryption.enabled",
            "it promises that spilled data is encrypted, but Wallaby does not encrypt what it spills",
            "Set it to false, or put spark.local.dir on an encrypted disk instead",
        )
    key = needs_encryption(cluster)
    if key and not settings.gcs_url.startswith("rediss://"):
        raise _refused(
            key,
            "it promises encryption on the network, but the embedded Redis has no TLS",
            "Set spark.wallaby.gcs.url to a Redis of your own, with TLS (rediss://…); data then goes over TLS too",
        )


def _check_address(settings: Settings) -> None:
    if parse_address(settings.gcs_url).password if settings.gcs_url else None:
        raise ConfigurationError(
            "spark.wallaby.gcs.url contains a password, which Spark's UI and event log show.",
            fix="Set spark.wallaby.gcs.password, which they hide.",
            key="spark.wallaby.gcs.url",
        )


def _refused(key: str, why: str, fix: str) -> AttachError:
    return AttachError(f"Wallaby cannot attach with this value of {key}: {why}.", fix=f"{fix}.", setting=key)


def _seconds(text: str | None, default: float) -> float:
    match = _SECONDS.fullmatch((text or "").strip())
    return int(match[1]) * _UNITS[(match[2] or "s").lower()] if match else default
