"""What attach computes on Kubernetes: addresses, how many executors come, and what fits into a pod."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark import SparkContext
from tests.hosting.test_refusals import Context, KnownCluster

from wallaby.config.settings import read_settings
from wallaby.errors import AttachError
from wallaby.spark.cluster import Cluster
from wallaby.spark.memory.pods import PodMemory
from wallaby.worker.main import _spark_address

MASTER = "k8s://https://kubernetes.example:6443"
MIB = 1 << 20


def cluster(**conf: str) -> Cluster:
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return Cluster(cast(SparkContext, Context(MASTER, settings)))


@pytest.mark.parametrize(
    ("conf", "beside_mib"),
    [
        ({}, 384),  # the least that Spark adds to its default of 1g
        ({"spark.executor.memory": "8g"}, 819),
        ({"spark.executor.memory": "8g", "spark.executor.memoryOverheadFactor": "0.25"}, 2048),
        ({"spark.executor.memory": "8g", "spark.kubernetes.memoryOverheadFactor": "0.5"}, 4096),
        ({"spark.executor.memoryOverhead": "2g"}, 2048),
        ({"spark.executor.memoryOverhead": "700"}, 700),
        ({"spark.executor.minMemoryOverhead": "1g"}, 1024),
        ({"spark.executor.pyspark.memory": "2g"}, 384),  # not added unless Spark knows of Python
        ({"spark.executor.pyspark.memory": "2g", "spark.kubernetes.resource.type": "python"}, 2432),
    ],
)
def test_what_a_pod_has_beside_the_heap_is_what_spark_asks_for(conf: dict[str, str], beside_mib: int) -> None:
    assert PodMemory.of(conf.get).beside_bytes // MIB == beside_mib


def sized(overhead: str, **settings: Any) -> int:
    known = KnownCluster(MASTER, 4, 4, spark_executor_memoryOverhead=overhead)
    return known.size(read_settings({}, settings), profiles=True).memory_bytes // MIB


def test_a_budget_is_half_of_what_is_not_heap_whatever_the_drivers_host_has() -> None:
    assert sized("4g") == 2048
    assert sized("4g", workers=4) == 1024
    assert sized("4g", memory="3g") == 3072


@pytest.mark.parametrize(
    ("overhead", "settings"),
    [
        ("409m", {}),
        ("409m", {"memory": "8g"}),
        ("1g", {"workers": 4}),
        ("4g", {"workers": 4, "memory": "2g"}),
        ("1g", {"memory_allowance": "2g"}),
    ],
)
def test_what_does_not_fit_is_refused_with_the_line_to_add(overhead: str, settings: dict[str, Any]) -> None:
    with pytest.raises(AttachError, match="no room for a TaskManager") as refused:
        sized(overhead, **settings)
    key, _, rest = refused.value.fix.removeprefix("Set ").partition("=")
    assert (key, refused.value.fields["setting"]) == ("spark.executor.memoryOverhead",) * 2
    assert sized(rest.partition(" ")[0], **settings) > 0, "with that line it fits"
    with pytest.raises(AttachError):
        sized(f"{int(rest.partition('m')[0]) - 2}m", **settings)


def test_python_memory_that_spark_adds_to_the_pod_is_the_budget() -> None:
    conf = {
        "spark.executor.pyspark.memory": "2g",
        "spark.kubernetes.resource.type": "python",
        "spark.executor.memoryOverhead": "600m",
    }
    assert PodMemory.of(conf.get).budget(0, 300 * MIB, 1, 0.5) == 2048 * MIB
    with pytest.raises(AttachError) as refused:
        PodMemory.of({**conf, "spark.executor.memoryOverhead": "400m"}.get).budget(0, 300 * MIB, 1, 0.5)
    assert refused.value.fix == "Set spark.executor.memoryOverhead=500m or more."


def test_two_executors_are_expected_unless_spark_is_told_or_grows_by_itself() -> None:
    assert cluster()._expected_executors() == 2
    assert cluster(spark_executor_instances="5")._expected_executors() == 5
    assert cluster(spark_dynamicAllocation_enabled="true")._expected_executors() == 0


def test_pods_that_do_not_start_are_to_be_looked_at() -> None:
    none = KnownCluster(MASTER)
    with pytest.raises(AttachError) as refused:
        none.await_executors(0.01)
    assert "kubectl describe pods" in refused.value.fix


def test_the_driver_listens_on_its_pods_address_where_executors_look_for_it() -> None:
    service = "driver-svc.default.svc"  # a name that is not known while the pod starts
    in_pod = {"spark_driver_host": service, "spark_driver_bindAddress": "127.83.0.9"}
    assert cluster(**in_pod).driver_address() == "127.83.0.9"
    for further in (
        {"spark_driver_bindAddress": "0.0.0.0"},
        {"spark_driver_bindAddress": "no address"},
        {"spark_kubernetes_executor_useDriverPodIP": "false"},
    ):
        found = cluster(**{**in_pod, "spark_driver_host": "127.83.0.1", **further})
        assert found.driver_address() == "127.83.0.1"
    with pytest.raises(AttachError, match=r"spark\.driver\.bindAddress") as refused:
        cluster(spark_driver_bindAddress="203.0.113.7").driver_address()
    assert refused.value.fields["setting"] == "spark.driver.bindAddress"


def test_only_kubernetes_has_pods() -> None:
    settings = {"spark.driver.host": "127.83.0.1", "spark.driver.bindAddress": "127.83.0.9"}
    standalone = Cluster(cast(SparkContext, Context("spark://host:7077", settings)))
    assert standalone.driver_address() == "127.83.0.1"
    assert standalone._expected_executors() == 0


@pytest.mark.parametrize(
    ("local", "pod", "found"),
    [("", "", ""), ("", "127.83.0.7", "127.83.0.7"), ("127.0.0.2", "127.83.0.7", "127.0.0.2")],
)
def test_a_taskmanager_listens_on_the_address_that_spark_knows_of_its_pod(
    monkeypatch: pytest.MonkeyPatch, local: str, pod: str, found: str
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", local)
    monkeypatch.setenv("SPARK_EXECUTOR_POD_IP", pod)
    assert _spark_address() == found
