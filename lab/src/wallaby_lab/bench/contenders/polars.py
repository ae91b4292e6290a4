"""Polars with its streaming engine, in this process, as far as its SQL goes."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from wallaby_lab.bench.contenders import Contender
from wallaby_lab.tpch import TABLES


class Polars(Contender):
    """See `Contender`."""

    def __init__(self, context: Any, what: str) -> None:
        self._context = context
        self.what = what

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        return self._context.execute(sql.strip().removesuffix(";")).collect(engine="streaming").to_arrow()


def start(data: Path, cores: int, _memory: str) -> Polars:
    """Lazy frames over the files; it has no limit of memory."""
    os.environ["POLARS_MAX_THREADS"] = str(cores)  # before its first import
    polars = import_module("polars")
    frames = {table: polars.scan_parquet(data / f"{table}.parquet") for table in TABLES}
    context = polars.SQLContext(frames, eager=False)
    return Polars(context, f"Polars {polars.__version__}, {polars.thread_pool_size()} threads, streaming")
