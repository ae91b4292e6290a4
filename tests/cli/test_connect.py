"""`wallaby connect` for real: a server in a process of its own, a client without a JVM in another."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
WALLABY = (sys.executable, "-c", "from wallaby.cli import main; main()")
SECONDS = 280
CLIENT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.conf.set("spark.wallaby.below", "always")
df = spark.read.parquet("t.parquet").groupBy("k").sum("v").orderBy("k")
print([tuple(row) for row in df.collect()], "Wallaby" in df._explain_string())
"""


def test_a_client_is_answered_until_the_server_is_asked_to_end(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [n % 3 for n in range(1000)], "v": range(1000)}), tmp_path / "t.parquet")
    environment = {key: text for key, text in os.environ.items() if "TOKEN" not in key}
    with subprocess.Popen(
        [*WALLABY, "connect", "--port", "0"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        url = server.stdout.readline().strip()
        assert url.startswith("sc://localhost:"), server.stderr.read()
        assert "/;token=" in url
        client = subprocess.run(
            [sys.executable, "-c", CLIENT, url],
            cwd=tmp_path,
            env={**environment, "PATH": "", "JAVA_HOME": ""},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert client.stdout == "[(0, 166833), (1, 166167), (2, 166500)] True\n", client.stderr
        server.send_signal(signal.SIGTERM)
        assert server.wait(SECONDS) == 0
        assert "Traceback" not in server.stderr.read()


def test_a_port_in_use_ends_it_with_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = subprocess.run(
            [*WALLABY, "connect", "--port", port],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert said.returncode == 1
    assert said.stdout == ""
    assert said.stderr.startswith(f"wallaby: [WALLABY_ATTACH] Port {port} of 127.0.0.1 is in use")
