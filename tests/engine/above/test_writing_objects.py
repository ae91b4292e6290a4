"""Tables in a bucket that the TaskManagers write: as Spark's commands say, once, whatever is lost on the way.

To Spark alone, `s3a:` is Hadoop's view of a local directory, as in `test_remote`: its commands look there whether there
is a table, and Hadoop's committers work there. What the TaskManagers write is in the bucket of moto's server; the view
gets a copy before it is read. `tests/above/objects` has what happens between two requests.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from tests.engine.above.test_writing import enabled, files, small_files, stopped_processes
from tests.engine.chaos import Chaos, require_all_struck
from tests.engine.conftest import on_spark
from tests.engine.test_ends import until
from tests.engine.test_remote import _VIEW as VIEW
from tests.stores import S3Server, s3_service

from wallaby.engine import Engine
from wallaby.errors import QueryTimeoutError, WriteError
from wallaby.reading import storages
from wallaby.relations.storage import S3Storage
from wallaby.tables.objects.bucket import Bucket, bucket_of

__all__ = ["files", "small_files"]

#: A bucket of its own: Hadoop remembers which folder it shows as which bucket.
TABLES = "tables"
BY_PRIORITY = "select o_orderpriority p, o_orderdate d, sum(o_totalprice) v from orders group by 1, 2"
COLUMNS = ("p", "d", "v")


class LosingProxy:
    """Passes requests on to a server, and loses the answers to some that it has carried out."""

    def __init__(self, server: str) -> None:
        host, _, port = server.partition(":")
        self._server = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        #: The answer to which requests is lost next time, by the beginning of their first line.
        self.losing: Callable[[bytes], bool] = lambda _: False
        self.lost: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server, suppress(OSError):
            doomed = threading.Event()
            threading.Thread(target=self._answers, args=(server, client, doomed), daemon=True).start()
            while data := client.recv(1 << 16):
                line = data.partition(b"\r\n")[0]
                if self.losing(line):
                    self.lost.append(line)
                    doomed.set()
                server.sendall(data)

    def _answers(self, server: socket.socket, client: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if doomed.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

    def close(self) -> None:
        self._listener.close()


class Lake:
    """A bucket, Spark's view of it, and a table in it."""

    def __init__(self, spark: SparkSession, directory: Path, server: S3Server, proxy: LosingProxy) -> None:
        self.spark, self.directory, self.server, self.proxy = spark, directory, server, proxy
        self.address = f"s3a://{TABLES}/lake/t"
        self.settings = {
            "fs.s3a.impl": VIEW,
            f"fs.viewfs.mounttable.{TABLES}.link./lake": directory.as_uri(),
            "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
            "fs.s3a.access.key": "someone",
            "fs.s3a.secret.key": "secret",
            "fs.s3a.endpoint": f"http://{proxy.address}",
            "fs.s3a.path.style.access": "true",
        }
        options = {"access_key": "someone", "secret_key": "secret", "scheme": "http", "region": "us-east-1"}
        self.files = fs.S3FileSystem(endpoint_override=server.address, **options)

    @property
    def bucket(self) -> Bucket:
        storage = S3Storage(
            endpoint=self.server.address,
            region="us-east-1",
            encrypted=False,
            virtual_addressing=False,
            anonymous=False,
            access_key="someone",
            secret_key="secret",
        )
        return bucket_of(storage, TABLES)

    def keys(self) -> list[str]:
        """The objects of the table, without the notes of keys."""
        keys = self.bucket.keys("lake/t/")
        return [key.removeprefix("lake/t/") for key in keys if "_wallaby_keys" not in key]

    def empty(self) -> None:
        for key in list(self.bucket.keys("")):
            self.bucket.delete(key)
        for key, upload in list(self.bucket.uploads("")):
            self.bucket.abort(key, upload)
        self.pull()

    def pull(self) -> None:
        """Let Spark's view show what the bucket has."""
        shutil.rmtree(self.directory / "t", ignore_errors=True)
        for key in self.bucket.keys("lake/t/"):
            path = self.directory / key.removeprefix("lake/")
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.files.open_input_file(f"{TABLES}/{key}") as file:
                path.write_bytes(file.read())
            seconds = self.files.get_file_info(f"{TABLES}/{key}").mtime_ns // 1_000_000_000
            os.utime(path, (seconds, seconds))

    def rows(self) -> list[str]:
        """The rows of the table as Spark reads it."""
        self.pull()
        return rows_of(self.spark.read.parquet(self.address).select(*COLUMNS))

    def is_clean(self) -> bool:
        """Has the table nothing but data files, and the bucket no upload?"""
        return not list(self.bucket.uploads("")) and all(key.endswith(".parquet") for key in self.keys())


def rows_of(df: DataFrame) -> list[str]:
    as_text = df.selectExpr("to_json(struct(*)) j")
    return on_spark(df.sparkSession, lambda: sorted(row.j for row in as_text.collect()))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_service(TABLES) as found:
        yield found


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("view")


@pytest.fixture
def lake(
    spark: SparkSession, view: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lake]:
    monkeypatch.setattr(storages, "S3A_IMPLEMENTATIONS", frozenset({VIEW}))
    proxy = LosingProxy(server.address)
    made = Lake(spark, view, server, proxy)
    for key, value in made.settings.items():
        spark.conf.set(key, value)
    yield made
    for key in made.settings:
        spark.conf.unset(key)
    made.empty()
    proxy.close()


def test_modes_and_partitions_mean_what_they_mean_on_spark(
    lake: Lake, engine: Engine, files: list[int], spark: SparkSession
) -> None:
    df = spark.sql(BY_PRIORITY)
    every = rows_of(df)
    low = [row for row in every if "5-LOW" in row]
    engine.write(df).partitionBy("p").parquet(lake.address)
    assert lake.rows() == every
    assert engine.fallback_reasons(spark.read.parquet(lake.address).groupBy("p").count()) == []
    assert len(engine.collect(spark.read.parquet(lake.address).groupBy("p").count())) == 5
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        engine.write(df).partitionBy("p").parquet(lake.address)
    engine.write(df.where("p = '5-LOW'")).mode("append").partitionBy("p").parquet(lake.address)
    assert lake.rows() == sorted(every + low)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        engine.write(df.where("p = '5-LOW'")).mode("overwrite").partitionBy("p").parquet(lake.address)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert lake.rows() == every
    engine.write(df.where("p = '5-LOW'")).mode("overwrite").partitionBy("p").parquet(lake.address)
    assert lake.rows() == low
    engine.write(df.where("p = 'none'")).mode("overwrite").parquet(lake.address)
    assert lake.rows() == []
    assert len(files) == 5
    assert lake.is_clean()


def test_a_key_writes_once_although_answers_are_lost(lake: Lake, engine: Engine, spark: SparkSession) -> None:
    """Of every request that changes the bucket, the first answer is lost."""
    seen: set[bytes] = set()

    def is_first(line: bytes) -> bool:
        kind = line.split(b" ")[0] + b"?".join(line.partition(b"?")[1:2]) + line.partition(b"?")[2][:9]
        fresh = line.startswith((b"PUT", b"POST", b"DELETE")) and kind not in seen
        seen.add(kind)
        return fresh

    lake.proxy.losing = is_first
    df = spark.sql(BY_PRIORITY)
    for _ in range(2):
        engine.write(df).mode("append").option("key", "monday").parquet(lake.address)
        assert lake.rows() == rows_of(df)
    assert len(lake.proxy.lost) >= 6, lake.proxy.lost
    assert any(b"POST" in line and b"uploadId" in line for line in lake.proxy.lost), "of a completion"
    assert lake.is_clean()


def test_a_write_that_fails_leaves_the_table_as_it_was(
    lake: Lake, engine: Engine, spark: SparkSession
) -> None:
    df = spark.sql(BY_PRIORITY)
    engine.write(df).parquet(lake.address)
    before = lake.keys()
    lake.pull()
    spark.conf.set("spark.wallaby.timeout", "200ms")
    try:
        with pytest.raises(QueryTimeoutError):
            engine.write(spark.sql("select k p, v d, count(*) v from tiny group by 1, 2")).mode(
                "overwrite"
            ).parquet(lake.address)
    finally:
        spark.conf.unset("spark.wallaby.timeout")
    until(lambda: not list(lake.bucket.uploads("")))
    assert lake.keys() == before
    lake.server.deny_writes()
    try:
        with pytest.raises(WriteError, match="403"):
            engine.write(df).mode("append").parquet(lake.address)
    finally:
        lake.server.allow_writes()
    assert lake.keys() == before
    assert lake.is_clean()
    lake.server.lose_bucket()
    try:
        with pytest.raises(WriteError, match="NoSuchBucket"):
            engine.write(df).mode("append").parquet(lake.address)
    finally:
        lake.server.make_bucket()


@pytest.mark.parametrize(
    "fault",
    [
        "commit@{write}:1:kill",
        "commit@{write}:1:kill:after",
        "execute@{write}:1:stop=8s",
    ],
)
@pytest.mark.usefixtures("small_files")
def test_a_lost_worker_costs_time_and_no_row(
    lake: Lake, chaos: Chaos, spark: SparkSession, fault: str
) -> None:
    engine = chaos.engine()
    df = spark.sql(BY_PRIORITY)
    physical = engine._plan(df).physical
    assert physical is not None
    stage = len(physical.graph.stages) - 1
    for _ in enabled(engine, spark):
        name = chaos.order("*:" + fault.format(write=f"s{stage}.c0.t1"))
        df.write.partitionBy("p").parquet(lake.address)
        require_all_struck(chaos, name)
        assert lake.rows() == rows_of(df)
    until(lambda: not stopped_processes(), 60)
    until(partial(Lake.is_clean, lake), 60)
    chaos.book.give(())
