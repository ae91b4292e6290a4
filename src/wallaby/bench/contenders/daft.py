"""Daft, in this process, if it is installed: it is no dependency of Wallaby's."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from wallaby.bench.contenders import Contender
from wallaby.tpch import TABLES


class Daft(Contender):
    """See `Contender`."""

    def __init__(self, daft: Any, data: Path, what: str) -> None:
        self._daft = daft
        self._data = data
        self.what = what

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        tables = {t: self._daft.read_parquet(str(self._data / f"{t}.parquet")) for t in TABLES}
        return self._daft.sql(sql.strip().removesuffix(";"), **tables).to_arrow()


def start(data: Path, cores: int, _memory: str) -> Daft:
    """Frames over the files; it has no limit of memory that it keeps."""
    os.environ["DAFT_ANALYTICS_ENABLED"] = "0"
    os.environ["DAFT_PROGRESS_BAR"] = "0"
    daft = import_module("daft")
    return Daft(daft, data, f"Daft {daft.__version__}, {cores} cores")
