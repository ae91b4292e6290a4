"""Wallaby: a pipelined query engine on Spark that survives lost workers by write-ahead lineage.

`attach` starts an engine on a SparkSession; `enable` also lets the session's own DataFrames use it. docs/using.md
explains both, docs/stability.md says which names and formats stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wallaby.version import __version__

if TYPE_CHECKING:
    from wallaby import errors
    from wallaby.enabling import disable, enable
    from wallaby.engine import Engine, attach
    from wallaby.node.worker_address import WorkerInfo
    from wallaby.results.facts import QueryEvent, RunDetail, RunStats, StageStats
    from wallaby.results.result import Result

__all__ = [
    "Engine",
    "QueryEvent",
    "Result",
    "RunDetail",
    "RunStats",
    "StageStats",
    "WorkerInfo",
    "__version__",
    "attach",
    "disable",
    "enable",
    "errors",
]

#: The modules of the public names. They are imported on demand, so that `wallaby --help` needs no Spark.
_HOMES = {
    "Engine": "wallaby.engine",
    "QueryEvent": "wallaby.results.facts",
    "Result": "wallaby.results.result",
    "RunDetail": "wallaby.results.facts",
    "RunStats": "wallaby.results.facts",
    "StageStats": "wallaby.results.facts",
    "WorkerInfo": "wallaby.node.worker_address",
    "attach": "wallaby.engine",
    "disable": "wallaby.enabling",
    "enable": "wallaby.enabling",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - keeps the name out of this module

    if name == "errors":
        return import_module("wallaby.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'wallaby' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
