"""The engines that take part, a file for each, which is loaded only in the process of that engine.

All get the same cores (by affinity), the same Parquet files and the same SQL text, plan each run anew, and hand over
their answer as an Arrow table.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


class Contender(Protocol):
    """One engine in its own process."""

    #: What it is, with its version.
    what: str

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query anew."""
        ...

    def breakdown(self, sql: str) -> dict[str, Any]:
        """Where the time of one further run went, as far as the engine tells."""
        ...

    def end(self) -> None:
        """Leave nothing behind."""
        ...


#: Names, each with its file here and what its `start` is told beyond data, cores and memory.
CONTENDERS: Final[dict[str, tuple[str, dict[str, int]]]] = {
    "spark": ("sparksql", {}),
    "wallaby": ("wallaby", {"workers": 1}),
    "wallaby-2": ("wallaby", {"workers": 2}),
    "duckdb": ("duckdb", {}),
    "datafusion": ("datafusion", {}),
}


def start(name: str, data: Path, cores: int, memory: str) -> Contender:
    """An engine that is ready for queries."""
    file, further = CONTENDERS[name]
    make: Callable[..., Contender] = import_module(f"{__name__}.{file}").start
    return make(data, cores, memory, **further)
