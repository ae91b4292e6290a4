"""Pushing an output over Flight on loopback, beside a bare `do_put` of the same batches."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl
import pyarrow.parquet as pq

from wallaby.exchange.client import PeerClient, new_token
from wallaby.exchange.server import FlightDataServer
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import Edge, QueryId, TaskName, WorkerId
from wallaby_lab.bench.blocks.block import Block, best_of

SIZES: Final = (1 << 20, 32 << 20)
#: Small pushes are measured many at a time.
BYTES_IN_ALL: Final = 64 << 20
_ROW_BYTES: Final = 24


class _Bare(fl.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """A bare server that reads and drops what it receives."""

    def do_put(self, _context: Any, _descriptor: Any, reader: Any, _writer: Any) -> None:
        """Take everything."""
        for _ in reader:
            pass


def measure_push(data: Path, rounds: int) -> list[Block]:
    """Slices of one and of thirty-two megabytes."""
    columns = ["l_orderkey", "l_partkey", "l_suppkey"]
    table = pq.read_table(data / "lineitem.parquet", columns=columns).combine_chunks()
    rows = max(SIZES) // _ROW_BYTES
    while table.num_rows < rows:
        table = pa.concat_tables([table, table])
    (batch,) = table.slice(0, rows).combine_chunks().to_batches()
    found = []
    with ExitStack() as stack:
        token, target = new_token(), WorkerId("w1")
        server = FlightDataServer("127.0.0.1", token, target, _hold_all)
        stack.callback(server.close)
        client = PeerClient(token)
        stack.callback(client.close)
        bare_server = _Bare("grpc://127.0.0.1:0")
        stack.callback(bare_server.shutdown)
        bare_client = stack.enter_context(fl.FlightClient(f"grpc://127.0.0.1:{bare_server.port}"))
        for size in SIZES:
            part = batch.slice(0, size // _ROW_BYTES)
            times = BYTES_IN_ALL // size
            piece = Slice(TaskName(0, 0, 0), Edge(0, 0, 0), False, part.nbytes, (part,))

            def ours(times: int = times, piece: Slice = piece) -> None:
                for _ in range(times):
                    reply = client.push(server.address, QueryId("q-1"), 1, WorkerId("w0"), target, (piece,))
                    assert reply is not None
                    assert reply.held == (True,), "the push did not arrive"

            def bare(times: int = times, part: pa.RecordBatch = part) -> None:
                for _ in range(times):
                    writer, _ = bare_client.do_put(fl.FlightDescriptor.for_command(b"x"), part.schema)
                    writer.write_batch(part)
                    writer.close()

            seconds, bare_seconds = best_of(rounds, ours, bare)
            name = f"push over Flight, {size >> 20} MiB"
            amount = times * part.nbytes / 1e9
            found.append(Block(name, "bare Flight do_put", seconds, bare_seconds, amount, "GB"))
    return found


def _hold_all(
    _query: QueryId, _epoch: int, _sender: WorkerId, _target: WorkerId, slices: tuple[Slice, ...]
) -> PushReply:
    return PushReply(True, (True,) * len(slices))
