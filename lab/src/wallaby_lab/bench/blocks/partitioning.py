"""Cutting rows by the hash of a key into eight, beside Polars."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.operators.partition import partition
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby_lab.bench.blocks.block import Block, best_of

CHANNELS: Final = 8
ROWS_MAX: Final = 4_000_000
COLUMNS: Final = ("l_orderkey", "l_suppkey", "l_extendedprice", "l_quantity")


def measure_partitioning(data: Path, rounds: int) -> list[Block]:
    """Four columns of lineitem, by the order's key."""
    rows = pq.read_table(data / "lineitem.parquet", columns=list(COLUMNS)).slice(0, ROWS_MAX)
    batch = pa.concat_batches(rows.combine_chunks().to_batches())
    session = thread_session(KernelSettings())

    def ours() -> object:
        return partition((batch,), (0,), CHANNELS, session)

    def bare() -> object:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        channel = (pl.col(COLUMNS[0]).hash() % CHANNELS).alias("channel")
        parts = frame.with_columns(channel).partition_by("channel", include_key=False)
        return [part.to_arrow() for part in parts]

    seconds, bare_seconds = best_of(rounds, ours, bare)
    name = f"partitioning, {len(COLUMNS)} columns into {CHANNELS}"
    return [Block(name, "Polars partition_by", seconds, bare_seconds, batch.num_rows / 1e6, "million rows")]
