"""Wallaby: a pipelined query engine on Spark that survives lost workers by write-ahead lineage.

`attach` starts an engine on a SparkSession; `enable` also lets the session's own DataFrames use it. docs/using.md
explains both, docs/stability.md says which names and formats stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wallaby.version import __version__

if TYPE_CHECKING:
    from wallaby import errors
    from wallaby.config.settings import Settings
    from wallaby.enabling import disable, enable
    from wallaby.engine import Engine, attach, explain_last
    from wallaby.observe.finding import Finding, FindingKind
    from wallaby.results.facts import QueryEvent, RunDetail, RunStats, StageStats
    from wallaby.results.record import QueryHistory, QueryRecord, Where
    from wallaby.results.result import Result
    from wallaby.results.worker_info import WorkerInfo
    from wallaby.serving import ConnectServer, serve
    from wallaby.ui.live_page import LivePage

__all__ = [
    "ConnectServer",
    "Engine",
    "Finding",
    "FindingKind",
    "LivePage",
    "QueryEvent",
    "QueryHistory",
    "QueryRecord",
    "Result",
    "RunDetail",
    "RunStats",
    "Settings",
    "StageStats",
    "Where",
    "WorkerInfo",
    "__version__",
    "attach",
    "disable",
    "enable",
    "errors",
    "explain_last",
    "serve",
]

#: The modules of the public names. They are imported on demand, so that `wallaby --help` needs no Spark.
_HOMES = {
    "ConnectServer": "wallaby.serving",
    "Engine": "wallaby.engine",
    "Finding": "wallaby.observe.finding",
    "FindingKind": "wallaby.observe.finding",
    "LivePage": "wallaby.ui.live_page",
    "QueryEvent": "wallaby.results.facts",
    "QueryHistory": "wallaby.results.record",
    "QueryRecord": "wallaby.results.record",
    "Result": "wallaby.results.result",
    "RunDetail": "wallaby.results.facts",
    "RunStats": "wallaby.results.facts",
    "Settings": "wallaby.config.settings",
    "StageStats": "wallaby.results.facts",
    "Where": "wallaby.results.record",
    "WorkerInfo": "wallaby.results.worker_info",
    "attach": "wallaby.engine",
    "disable": "wallaby.enabling",
    "enable": "wallaby.enabling",
    "explain_last": "wallaby.engine",
    "load_ipython_extension": "wallaby.notebook",
    "serve": "wallaby.serving",
}
#: Whoever asks for one of these is about to start an engine.
_STARTS = ("attach", "enable", "serve")


def __getattr__(name: str) -> Any:
    import sys  # noqa: PLC0415 - keeps the names out of this module
    from importlib import import_module  # noqa: PLC0415 - as above

    if name == "errors":
        return import_module("wallaby.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'wallaby' has no attribute {name!r}")
    # Modules of the engine import what older versions of PySpark lack.
    import_module("wallaby.catalyst.spark_versions").check_version()
    if name in _STARTS and "wallaby.engine" not in sys.modules:
        import_module("wallaby.waking").wake_python()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
