"""Let Spark start the process from which it forks its Python workers, while the engine's modules are loaded.

After a cold start each takes most of a second, and a TaskManager needs both. They do not need each other, so they go on
at the same time. Spark starts that process for its first Python task, so the job here has one, which does nothing.
If it fails, nothing is lost: the first TaskManager waits for the process, or reports the same error.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

from wallaby.spark.cluster import Cluster

_log = logging.getLogger(__name__)


def wake_python() -> None:
    """Start the job, if Spark runs in this process and its tasks do too."""
    # Without this module there is no session yet; a client of Spark Connect has none either.
    found: Any = sys.modules.get("pyspark.core.context")
    context = None if found is None else found.SparkContext._active_spark_context
    if context is not None:
        threading.Thread(target=_wake, args=(context,), name="wallaby-wake", daemon=True).start()


def _wake(context: Any) -> None:
    try:
        cluster = Cluster(context)
        if not cluster.is_local:
            return
        cluster.choose_python()  # Spark has such a process for each interpreter
        context.setLocalProperty("spark.job.description", "Wallaby starts Python")
        context.parallelize([0], 1).mapPartitions(_nothing).collect()
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever starts the TaskManagers meets it too
        _log.debug("Python was not started ahead: %s", error)


def _nothing(_rows: object) -> Iterator[int]:
    return iter(())
