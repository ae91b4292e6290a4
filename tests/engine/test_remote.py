"""Tables on S3, read by the workers from moto's server with the session's own `fs.s3a.*` settings.

There is no `hadoop-aws` here, so Spark cannot list a bucket. To Spark alone, `s3a:` is Hadoop's view of a local
directory, which has the same files as the bucket, with the times that the bucket gives them; a class by that name is
not one that we take for S3, so that has to be allowed. All that the engine reads, footers included, comes from the
server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from tests.stores import BUCKET, s3_server

from wallaby.engine import Engine
from wallaby.errors import SourceChangedError
from wallaby.reading import storages

_VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
SECRET = "not-to-be-shown"
ROWS = 1000


class Lake:
    """A bucket with a partitioned table, and Spark's view of it."""

    def __init__(self, spark: SparkSession, directory: Path, address: str) -> None:
        self.spark, self.directory = spark, directory
        self.files = fs.S3FileSystem(
            access_key="someone",
            secret_key=SECRET,
            endpoint_override=address,
            scheme="http",
            region="us-east-1",
        )
        self.settings = {
            "fs.s3a.impl": _VIEW,
            f"fs.viewfs.mounttable.{BUCKET}.link./lake": directory.as_uri(),
            "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
            "fs.s3a.access.key": "someone",
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.endpoint": f"http://{address}",
            "fs.s3a.path.style.access": "true",
        }
        for day in (1, 2):
            path = directory / "sales" / f"day={day}" / "part.parquet"
            path.parent.mkdir(parents=True)
            ids = list(range(day * ROWS, (day + 1) * ROWS))
            table = pa.table({"id": ids, "name": [f"é {i % 7}" for i in ids]})
            pq.write_table(table, path, row_group_size=ROWS // 4)
            self.put(path)

    def put(self, path: Path) -> None:
        """A local file into the bucket; then it has the bucket's time."""
        key = self.key(path)
        with self.files.open_output_stream(key) as stream:
            stream.write(path.read_bytes())
        seconds = self.files.get_file_info(key).mtime_ns // 1_000_000_000
        os.utime(path, (seconds, seconds))

    def key(self, path: Path) -> str:
        """What a local file is called in the bucket."""
        return f"{BUCKET}/lake/{path.relative_to(self.directory)}"

    def sales(self) -> DataFrame:
        """By day and name, with a condition that row groups can be told apart by."""
        rows = self.spark.read.parquet(f"s3a://{BUCKET}/lake/sales")
        return rows.where("id >= 1400").groupBy("day", "name").agg({"id": "sum", "*": "count"})


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with s3_server() as address:
        made = Lake(spark, tmp_path_factory.mktemp("lake"), address)
        for key, value in made.settings.items():
            spark.conf.set(key, value)
        yield made
        for key in made.settings:
            spark.conf.unset(key)


@pytest.fixture
def as_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's view of the bucket is taken for the bucket."""
    monkeypatch.setattr(storages, "S3A_IMPLEMENTATIONS", frozenset({_VIEW}))


@pytest.mark.usefixtures("as_s3")
def test_a_table_on_s3_is_read_by_the_workers(lake: Lake, engine: Engine) -> None:
    query = lake.sales()
    assert engine.fallback_reasons(query) == []
    assert sorted(engine.collect(query)) == sorted(query.collect())
    explained = engine.explain(query, "analyze")
    assert SECRET not in explained
    assert "day" in explained


@pytest.mark.usefixtures("as_s3")
def test_what_is_read_is_the_bucket(lake: Lake, engine: Engine) -> None:
    """An object that is gone while Spark's view of it is still there is an error that names it."""
    path = lake.directory / "sales" / "day=2" / "part.parquet"
    query = lake.sales()
    lake.files.delete_file(lake.key(path))
    try:
        with pytest.raises(SourceChangedError, match=r"s3a://wallaby/lake/sales/day=2/part\.parquet"):
            engine.collect(query)
    finally:
        lake.put(path)


def test_another_class_for_s3a_stays_a_spark_leaf(lake: Lake, engine: Engine) -> None:
    query = lake.sales()
    reasons = engine.fallback_reasons(query)
    assert any("fs.s3a.impl is a class that is not supported" in reason for reason in reasons), reasons
    assert sorted(engine.collect(query)) == sorted(query.collect())


@pytest.mark.usefixtures("as_s3")
def test_a_setting_that_is_not_known_leaves_the_table_to_spark(lake: Lake, engine: Engine) -> None:
    lake.spark.conf.set("fs.s3a.encryption.algorithm", "CSE-KMS")
    try:
        query = lake.sales()
        reasons = engine.fallback_reasons(query)
        assert any("fs.s3a.encryption.algorithm is not supported" in reason for reason in reasons), reasons
        assert not any("CSE" in reason or SECRET in reason for reason in reasons)
        assert sorted(engine.collect(query)) == sorted(query.collect())
    finally:
        lake.spark.conf.unset("fs.s3a.encryption.algorithm")


@pytest.mark.usefixtures("as_s3")
def test_a_server_that_cannot_be_reached_leaves_the_table_to_spark(lake: Lake, engine: Engine) -> None:
    """Footers are read when a query is planned: what is refused then is left to who can read it."""
    before = lake.settings["fs.s3a.endpoint"]
    lake.spark.conf.set("fs.s3a.endpoint", "http://127.0.0.1:9")
    try:
        reasons = engine.fallback_reasons(lake.sales().where("day = 1"))
        assert any("part.parquet" in reason for reason in reasons), reasons
    finally:
        lake.spark.conf.set("fs.s3a.endpoint", before)
