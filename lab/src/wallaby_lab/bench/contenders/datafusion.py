"""DataFusion, in this process, if it is installed; Wallaby does not depend on it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from wallaby_lab.bench.contenders import Contender
from wallaby_lab.tpch import TABLES


class DataFusion(Contender):
    """See `Contender`."""

    def __init__(self, context: Any, what: str) -> None:
        self._context = context
        self.what = what

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        return self._context.sql(sql).to_arrow_table()


def start(data: Path, cores: int, _memory: str) -> DataFusion:
    """Tables over the files; it has no limit of memory that it keeps."""
    datafusion = import_module("datafusion")
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(cores))
    for table in TABLES:
        context.register_parquet(table, str(data / f"{table}.parquet"))
    return DataFusion(context, f"DataFusion {datafusion.__version__}, {cores} partitions")
