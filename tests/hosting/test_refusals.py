"""Attach refuses what a TaskManager could not live with, and names the setting. No Spark is needed to refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import pytest
from pyspark import SparkContext

from wallaby.config.settings import read_settings
from wallaby.errors import AttachError, ConfigurationError
from wallaby.spark.checks import check, needs_encryption
from wallaby.spark.cluster import Cluster, Executor


class Conf(dict[str, str]):
    """Stands for a SparkConf."""

    def contains(self, key: str) -> bool:
        return key in self


class Context:
    """Stands for a SparkContext, as far as its settings go."""

    def __init__(self, master: str, conf: dict[str, str]) -> None:
        self.master = master
        self._conf = Conf(conf)

    def getConf(self) -> Conf:  # noqa: N802 - the name is PySpark's
        return self._conf


class KnownCluster(Cluster):
    """A cluster with executors that are there already."""

    def __init__(self, master: str, *cores: int, **conf: str) -> None:
        super().__init__(
            cast(SparkContext, Context(master, {k.replace("_", "."): v for k, v in conf.items()}))
        )
        self._there = tuple(Executor(str(at), f"host{at}", count) for at, count in enumerate(cores))

    def executors(self) -> tuple[Executor, ...]:
        return self._there


def cluster(master: str, conf: dict[str, str]) -> Cluster:
    return Cluster(cast(SparkContext, Context(master, conf)))


REFUSED: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "spark.speculation.task.duration.threshold",
        {"spark.speculation": "true", "spark.speculation.task.duration.threshold": "10s"},
    ),
    (
        "spark.executor.decommission.killInterval",
        {"spark.speculation": "true", "spark.executor.decommission.killInterval": "60s"},
    ),
    (
        "spark.python.worker.killOnIdleTimeout",
        {"spark.python.worker.killOnIdleTimeout": "true", "spark.python.worker.idleTimeoutSeconds": "30"},
    ),
    (
        "spark.task.reaper.killTimeout",
        {"spark.task.reaper.enabled": "true", "spark.task.reaper.killTimeout": "5s"},
    ),
    ("spark.io.encryption.enabled", {"spark.io.encryption.enabled": "true"}),
    ("spark.network.crypto.enabled", {"spark.network.crypto.enabled": "true"}),
    ("spark.ssl.rpc.enabled", {"spark.ssl.rpc.enabled": "true"}),
)


@pytest.mark.parametrize(("key", "conf"), REFUSED, ids=[key for key, _ in REFUSED])
def test_a_setting_is_refused_by_name(key: str, conf: dict[str, str]) -> None:
    with pytest.raises(AttachError) as refused:
        check(cluster("spark://host:7077", conf), read_settings({}, {}))
    assert key in str(refused.value)
    assert refused.value.fix
    assert refused.value.fields["setting"] == key


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark.speculation": "true"},
        {"spark.python.worker.killOnIdleTimeout": "true"},
        {"spark.task.reaper.enabled": "true"},
        {"spark.task.reaper.enabled": "true", "spark.task.reaper.killTimeout": "2m"},
        {"spark.authenticate": "true"},
    ],
)
def test_what_does_no_harm_is_not_refused(conf: dict[str, str]) -> None:
    check(cluster("spark://host:7077", conf), read_settings({}, {}))


def test_encryption_is_possible_with_a_redis_that_knows_tls() -> None:
    encrypted = cluster("spark://host:7077", {"spark.ssl.enabled": "true"})
    check(encrypted, read_settings({}, {"gcs_url": "rediss://redis:6380/0"}))
    assert needs_encryption(encrypted) == "spark.ssl.enabled"


def test_nothing_leaves_the_host_under_a_local_master() -> None:
    for master in ("local[2]", "local-cluster[2,1,512]"):
        one_host = cluster(master, {"spark.network.crypto.enabled": "true"})
        assert needs_encryption(one_host) == ""
        assert one_host.driver_address() == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "no-such-host.invalid", "203.0.113.7"])
def test_a_driver_address_that_cannot_be_listened_on(host: str) -> None:
    with pytest.raises(AttachError, match=r"spark\.driver\.host"):
        cluster("spark://master:7077", {"spark.driver.host": host}).driver_address()


@pytest.mark.parametrize(
    ("master", "keywords", "fix"),
    [
        ("local", {}, "local[2]"),
        ("local[3]", {"workers": 3}, "local[4]"),
    ],
)
def test_a_local_master_without_a_slot_to_spare(master: str, keywords: dict[str, Any], fix: str) -> None:
    with pytest.raises(AttachError) as refused:
        cluster(master, {}).size(read_settings({}, keywords), profiles=False)
    assert fix in refused.value.fix
    size = cluster(master, {}).size(read_settings({}, {**keywords, "exclusive": True}), profiles=False)
    assert not size.leaves_slot
    assert size.count == keywords.get("workers", 1)


def test_executors_of_one_core_have_no_slot_to_spare() -> None:
    small = KnownCluster("spark://host:7077", 1, 1, spark_executor_instances="2")
    with pytest.raises(AttachError, match="No slot"):
        small.size(read_settings({}, {}), profiles=True)
    size = small.size(read_settings({}, {"exclusive": True}), profiles=True)
    assert (size.count, size.threads, size.per_executor) == (2, 1, 1)


def test_one_taskmanager_per_executor_with_all_its_cores() -> None:
    large = KnownCluster(
        "spark://host:7077", 4, 4, 4, spark_executor_instances="3", spark_executor_pyspark_memory="2g"
    )
    size = large.size(read_settings({}, {}), profiles=True)
    assert (size.count, size.threads, size.per_executor, size.memory_bytes) == (3, 4, 1, 2 << 30)
    size = large.size(read_settings({}, {"workers": 4}), profiles=True)
    assert (size.count, size.threads, size.per_executor, size.memory_bytes) == (4, 2, 2, 1 << 30)


def test_dynamic_allocation_without_an_executor_is_given_a_reason_to_start_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = KnownCluster("spark://host:7077", 4, spark_dynamicAllocation_enabled="true")
    comes, found._there = found._there, ()

    @contextmanager
    def asking(_: SparkContext) -> Iterator[None]:
        found._there = comes
        yield

    monkeypatch.setattr("wallaby.spark.cluster._asking_for_an_executor", asking)
    assert found.await_executors(10.0, wanted=1) == comes


def test_no_executor_names_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallaby.spark.cluster._asking_for_an_executor", lambda _: nullcontext())
    none = KnownCluster("spark://host:7077", spark_dynamicAllocation_enabled="true")
    with pytest.raises(AttachError, match="dynamic allocation had a task waiting for one"):
        none.await_executors(0.01)


def test_a_password_in_the_address_of_redis_is_refused_and_not_repeated() -> None:
    settings = read_settings({}, {"gcs_url": "redis://:hunter2@host:6379"})
    with pytest.raises(ConfigurationError, match=r"spark\.wallaby\.gcs\.password") as raised:
        check(cluster("local[2]", {}), settings)
    assert "hunter2" not in str(raised.value)
