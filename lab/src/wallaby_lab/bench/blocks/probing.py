"""Joining lineitem with orders through a kept index, in twelve batches, beside one join by DuckDB on one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.operators.program import Program
from wallaby.relations.expression import Column
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Input, Join
from wallaby.relations.types import DATE, LONG
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby_lab.bench.blocks.block import Block, best_of

BATCHES: Final = 12
ORDER: Final = Column(1, "o_orderkey", LONG, nullable=False)
DAY: Final = Column(2, "o_orderdate", DATE, nullable=False)
LINE: Final = Column(3, "l_orderkey", LONG, nullable=False)
PART: Final = Column(4, "l_partkey", LONG, nullable=False)
_BUILD, _PROBE = Input(0, (ORDER, DAY)), Input(1, (LINE, PART))
TREE: Final = Join(_PROBE, _BUILD, JoinKind.INNER, (LINE,), (ORDER,), None, (PART, DAY))


def measure_probe(data: Path, rounds: int) -> list[Block]:
    """Each lineitem gets its order's date; the index is made anew in every round."""
    (orders,) = _rows(data / "orders.parquet", _BUILD).to_batches()
    lines = _rows(data / "lineitem.parquet", _PROBE)
    (whole,) = lines.to_batches()
    each = -(-whole.num_rows // BATCHES)
    batches = [whole.slice(at, each) for at in range(0, whole.num_rows, each)]
    session = thread_session(KernelSettings(memory_bytes=4 << 30))

    def ours() -> int:
        program = Program(TREE, frozenset({0}))
        joined = [program.run(session, {0: (orders,), 1: (batch,)}) for batch in batches]
        return sum(batch.num_rows for several in joined for batch in several)

    connection = duckdb.connect(config={"threads": 1})
    connection.register("orders", pa.Table.from_batches([orders]))
    connection.register("lines", lines)
    (order, date), (line, part) = orders.schema.names, whole.schema.names
    joining = connection.table("lines").join(connection.table("orders"), f'"{line}" = "{order}"')
    wanted = joining.select(f'"{part}", "{date}"')

    def bare() -> int:
        return int(wanted.to_arrow_table().num_rows)

    assert ours() == bare() == whole.num_rows, "every lineitem has an order"
    seconds, bare_seconds = best_of(rounds, ours, bare)
    connection.close()
    name = f"join probe in {BATCHES} batches, index included"
    amount = whole.num_rows / 1e6
    return [Block(name, "DuckDB, one call, one thread", seconds, bare_seconds, amount, "million rows")]


def _rows(path: Path, source: Input) -> pa.Table:
    """The columns of an input, under the names that kernels know them by, in one chunk."""
    names = [column.name for column in source.columns]
    table = pq.read_table(path, columns=names).select(names)
    schema = arrow_schema(source.columns)
    return table.rename_columns(schema.names).cast(schema).combine_chunks()
