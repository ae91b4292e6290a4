"""The contenders, one file each, which is loaded only in the process of that engine.

All get the same cores (by affinity), the same Parquet files and the same SQL text, plan each run anew, and return their
answer as an Arrow table. Those that are not dependencies of Wallaby are in `requirements-bench.txt`; they may be in a
separate directory, because some need other versions of Wallaby's dependencies.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

#: SparkSQL's settings, for all contenders that plan with it; printed with every report. As tuned for a small machine:
#: few partitions, adaptive, no UI.
SPARK_SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    "spark.sql.files.maxPartitionBytes": "128m",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class Contender(ABC):
    """One engine in its own process."""

    #: A description with the version.
    what: str

    @abstractmethod
    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query anew."""

    def breakdown(self, sql: str) -> dict[str, Any]:  # noqa: ARG002 - most tell nothing
        """A breakdown of the time of one further run, as far as the engine provides it."""
        return {}

    def worker_pids(self) -> list[int]:
        """The processes of its workers."""
        return []

    def end(self) -> None:  # noqa: B027 - most have nothing to end
        """End the engine and clean up."""


#: Names, each with its file, the module that it needs, and further arguments of `start`.
CONTENDERS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "spark": ("sparksql", "pyspark", {}),
    "wallaby": ("wallaby", "wallaby", {"workers": 1}),
    "wallaby-2": ("wallaby", "wallaby", {"workers": 2}),
    "wallaby-off": ("wallaby", "wallaby", {"workers": 1, "tolerant": False}),
    "duckdb": ("duckdb", "duckdb", {}),
    "polars": ("polars", "polars", {}),
    "datafusion": ("datafusion", "datafusion", {}),
    "sail": ("sail", "pysail", {"mode": "local"}),
    "sail-cluster": ("sail", "pysail", {"mode": "local-cluster"}),
}
#: Contenders that are not dependencies of Wallaby.
FURTHER: Final = frozenset({"datafusion", "sail", "sail-cluster"})
_OF_WALLABY: Final = re.compile(r"wallaby-(\d+)(-off)?")


def known(name: str) -> tuple[str, str, dict[str, Any]] | None:
    """The file, module and arguments of a contender. `wallaby-4` has four TaskManagers; `-off`: no fault tolerance."""
    match = _OF_WALLABY.fullmatch(name)
    if match is not None and int(match[1]) > 0:
        return "wallaby", "wallaby", {"workers": int(match[1]), "tolerant": match[2] is None}
    return CONTENDERS.get(name)


def is_installed(name: str, packages: Path | None = None) -> bool:
    """Is the contender's module installed, or in the directory of further packages?"""
    found = known(name)
    if found is None:
        return False
    beside = packages is not None and name in FURTHER and PathFinder.find_spec(found[1], [str(packages)])
    return bool(beside) or find_spec(found[1]) is not None


def start(name: str, data: Path, cores: int, memory: str, **further: Any) -> Contender:
    """An engine that is ready for queries."""
    found = known(name)
    if found is None:
        raise KeyError(f"no such engine: {name}")
    make: Callable[..., Contender] = import_module(f"{__name__}.{found[0]}").start
    return make(data, cores, memory, **{**found[2], **further})
