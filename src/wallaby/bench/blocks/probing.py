"""Joining lineitem with orders through a kept index, in twelve batches, beside one join by DuckDB on one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.bench.blocks.block import Block, best_of
from wallaby.kernels.index import make_index, probe
from wallaby.plan.relation import JoinKind

BATCHES: Final = 12
_LIMIT_BYTES: Final = 1 << 30


def measure_probe(data: Path, rounds: int) -> list[Block]:
    """Each lineitem gets its order's date; the index is made anew in every round."""
    orders = pq.read_table(data / "orders.parquet", columns=["o_orderkey", "o_orderdate"]).combine_chunks()
    lines = pq.read_table(data / "lineitem.parquet", columns=["l_orderkey", "l_extendedprice"])
    whole = pa.concat_batches(lines.combine_chunks().to_batches())
    each = -(-whole.num_rows // BATCHES)
    batches = [whole.slice(at, each) for at in range(0, whole.num_rows, each)]

    def ours() -> list[pa.Table]:
        index = make_index(orders, "o_orderkey", _LIMIT_BYTES)
        assert index is not None, "the keys of orders are dense"
        joined = []
        for batch in batches:
            chosen, partners = probe(index, batch, "l_orderkey", JoinKind.INNER)
            left = batch if chosen is None else batch.take(pa.array(chosen))
            right = orders.column("o_orderdate").take(partners)
            joined.append(pa.table([left.column("l_extendedprice"), right], names=["price", "date"]))
        return joined

    connection = duckdb.connect(config={"threads": 1})
    connection.register("orders", orders)
    connection.register("lines", pa.Table.from_batches([whole]))
    sql = "SELECT l_extendedprice, o_orderdate FROM lines JOIN orders ON l_orderkey = o_orderkey"

    def bare() -> pa.Table:
        return connection.sql(sql).to_arrow_table()

    rows = sum(table.num_rows for table in ours())
    assert rows == bare().num_rows == whole.num_rows, "every lineitem has an order"
    seconds, bare_seconds = best_of(rounds, ours, bare)
    connection.close()
    name = f"join probe in {BATCHES} batches, index included"
    return [Block(name, "DuckDB, one call, one thread", seconds, bare_seconds, rows / 1e6, "million rows")]
