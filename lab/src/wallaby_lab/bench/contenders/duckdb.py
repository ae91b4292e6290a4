"""DuckDB, in this process."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from wallaby.config.settings import read_settings
from wallaby_lab.bench.contenders import Contender
from wallaby_lab.tpch import TABLES


class DuckDb(Contender):
    """See `Contender`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, cores: int) -> None:
        self._connection = connection
        self.what = f"DuckDB {duckdb.__version__}, {cores} threads"

    def ask(self, sql: str) -> pa.Table:
        """Plan and run a query."""
        return self._connection.sql(sql.strip().removesuffix(";")).to_arrow_table()

    def end(self) -> None:
        """Close the connection."""
        self._connection.close()


def start(data: Path, cores: int, memory: str) -> DuckDb:
    """Views over the files."""
    size = read_settings({}, {"memory": memory}).memory
    connection = duckdb.connect(config={"threads": cores, "memory_limit": f"{size >> 20}MiB"})
    for table in TABLES:
        connection.read_parquet(str(data / f"{table}.parquet")).create_view(table)
    return DuckDb(connection, cores)
