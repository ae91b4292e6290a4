"""A Spark Connect server in the shared session, and clients in processes of their own, without Java.

WALLABY_CONNECT_PYTHON names another Python for the clients, with another PySpark: `make connect` has them run
`pyspark-client`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.conftest import SHORT_FILES, kept_after_collecting
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

import wallaby
from wallaby.engine import Engine
from wallaby.serving import ConnectServer

NO_TABLES: Mapping[str, Sequence[str]] = MappingProxyType({})
CLIENT = Path(__file__).with_name("client.py")
PYTHON = os.environ.get("WALLABY_CONNECT_PYTHON", sys.executable)
#: Streams are cut after this much, so that a longer operation and a larger answer are reattached; an abandoned one is
#: soon ended. With a shorter time, a client on a busy machine would do little but reattach.
QUICK = {
    "spark.connect.execute.reattachable.senderMaxStreamDuration": "1s",
    "spark.connect.execute.reattachable.senderMaxStreamSize": "64k",
    "spark.connect.execute.manager.detachedTimeout": "5s",
    "spark.connect.execute.manager.maintenanceInterval": "500ms",
}


class ClientError(Exception):
    """What a snippet raised in a client."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said["trace"])
        self.kind: str = said["error"]
        self.module: str = said["module"]
        self.condition: str | None = said["condition"]
        self.message: str = said["message"]


class Client:
    """A program that uses Spark Connect. A table becomes a view when a snippet first names it, by a Spark job."""

    def __init__(self, url: str, tables: Mapping[str, Sequence[str]] = NO_TABLES, **variables: str) -> None:
        self._tables = dict(tables)
        # Neither Java nor anything else is on its path.
        environment = {key: text for key, text in os.environ.items() if not key.startswith(("JAVA", "SPARK"))}
        self.process = subprocess.Popen(
            [PYTHON, str(CLIENT), url],
            env={**environment, "PATH": "", "PYTHONPATH": "", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def begin(self, snippet: str) -> None:
        """Have it run a snippet, which `end` waits for."""
        assert self.process.stdin is not None
        named = [name for name in self._tables if re.search(rf"\b{name}\b", snippet)]
        views = [
            f"spark.read.parquet(*{self._tables.pop(name)!r}).createOrReplaceTempView({name!r})\n"
            for name in named
        ]
        self.process.stdin.write(json.dumps("".join(views) + snippet) + "\n")
        self.process.stdin.flush()

    def end(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the client has ended"
        said = json.loads(line)
        if "error" in said:
            raise ClientError(said)
        return said["answer"]

    def run(self, snippet: str) -> Any:
        """What a snippet gives to `answer`."""
        self.begin(snippet)
        return self.end()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait(30)


@pytest.fixture(scope="module")
def server(spark: SparkSession, engines: Engines) -> Iterator[ConnectServer]:
    engines.get(workers=2, threads=1, split=1, leaf_minimum=0)
    jsc: Any = spark.sparkContext._jsc
    conf = jsc.sc().conf()
    for key, text in QUICK.items():
        conf.set(key, text)
    with wallaby.serve(spark, port=0) as made:
        yield made
    for key in QUICK:
        conf.remove(key)


@pytest.fixture
def served(server: ConnectServer) -> Iterator[Engine]:
    """The server's engine; nothing is left of its queries afterwards."""
    yield server.engine
    until(lambda: not kept_after_collecting(server.engine))
    until(lambda: nothing_is_left_of_queries(server.engine))


@pytest.fixture
def connect(server: ConnectServer, served: Engine, data: Path, tiny: Path) -> Iterator[Callable[[], Client]]:
    """Starts clients that know the tables of the tests, and let every part run in the TaskManagers."""
    clients: list[Client] = []
    tables = {"short": sorted(str(path) for path in tiny.iterdir())[:SHORT_FILES]}
    tables |= {path.stem: [str(path)] for path in data.iterdir()}

    def start() -> Client:
        client = Client(server.url, tables)
        clients.append(client)
        client.run("spark.conf.set('spark.wallaby.below', 'always')")
        return client

    yield start
    for client in clients:
        client.close()
