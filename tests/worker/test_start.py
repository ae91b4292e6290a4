"""What a keeper has loaded can be forked: its children compute, and serve, as if they had loaded it themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: A keeper that forks three children, one after the other. Each uses all libraries, and says what it found.
SCRIPT = """
import os, sys, threading
from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.start import load

load(Bootstrap("e", "", "", "", threads=2, memory_bytes={memory}), gently=False)
assert threading.active_count() == 1, threading.enumerate()
names = [open(f"/proc/self/task/{{task}}/comm").read().strip() for task in os.listdir("/proc/self/task")]
strange = {{name for name in names if not name.startswith(("python", "jemalloc_bg", "polars-ooc"))}}
assert not strange, f"not known to survive a fork: {{strange}}"

def compute():
    import duckdb, polars, pyarrow, pyarrow.compute, pyarrow.flight
    numbers = pyarrow.table({{"n": range(100_000)}})
    with duckdb.connect() as database:
        database.execute("set threads = 2")
        (total,) = database.execute("select sum(n) from numbers where n % 2 = 0").fetchone()
    frame = polars.from_arrow(numbers).with_columns(k=polars.col("n") % 7)
    groups = frame.group_by("k").agg(polars.col("n").sum()).sort("k").height
    class Server(pyarrow.flight.FlightServerBase):
        def list_flights(self, context, criteria):
            return iter(())
    server = Server("grpc://127.0.0.1:0")
    with pyarrow.flight.FlightClient(f"grpc://127.0.0.1:{{server.port}}") as client:
        flights = len(list(client.list_flights()))
    server.shutdown()
    print(total, groups, flights, pyarrow.compute.sum(numbers["n"]).as_py(), flush=True)

for _ in range(3):
    child = os.fork()
    if not child:
        try:
            compute()
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="names of threads are looked up in /proc")
@pytest.mark.parametrize("memory_mib", [256, 2048, 8192], ids=lambda mib: f"{mib} MiB")
def test_children_use_what_the_keeper_has_loaded(memory_mib: int) -> None:
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(memory=memory_mib << 20)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert said.stdout.splitlines() == ["2499950000 7 0 4999950000"] * 3, said.stderr
