"""Spark's own Kubernetes backend against a small API server whose pods are processes of this machine.

The server checks that the Role of the example is enough for the driver, and gives every pod an address of its own. All
but the last two tests share a driver, which runs in a pod as `kubectl exec` would start it there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
import yaml
from tests.hosting.support import Driver, driver, until
from tests.hosting.test_clusters import in_small_row_groups

from wallaby.spark.sockets import listening
from wallaby_lab.kubernetes.access import Account
from wallaby_lab.kubernetes.cluster import IMAGE, NAMESPACE, PodCluster
from wallaby_lab.kubernetes.kubelet import POD_UID
from wallaby_lab.kubernetes.objects import KINDS, PODS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "kubernetes.yaml"
JOB = Path(__file__).with_name("pod_job.py")
TOKEN, ADMIN = "of-the-driver", "of-the-administrator"
ANYTHING = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
EXECUTORS = {"spark_role": "executor"}
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def manifest(**replaced: str) -> dict[str, dict[str, Any]]:
    """The objects of the example by their kinds, with some of its words replaced."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def new_cluster(directory: Path) -> PodCluster:
    role = manifest()["Role"]
    return PodCluster(directory, [Account.of_role(TOKEN, role), Account.of_role(ADMIN, ANYTHING)])


def ask(cluster: PodCluster, method: str, path: str, body: object = None) -> None:
    """Ask the server as an administrator."""
    url = f"{cluster.server.url}/api/v1/namespaces/{NAMESPACE}/{path}"
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Authorization": f"Bearer {ADMIN}"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status in (200, 201)


def left_by_taskmanagers(directory: Path) -> list[Path]:
    return list(directory.rglob("wallaby-taskmanager-*"))


class Site:
    """The cluster, and a driver in one of its pods."""

    def __init__(self, cluster: PodCluster, directory: Path, program: Driver) -> None:
        self.cluster, self.directory, self.program = cluster, directory, program
        self.attached = program.ask("attach")
        assert "workers" in self.attached, (self.attached, self.logs())

    def workers(self) -> dict[str, dict[str, Any]]:
        """The live TaskManagers, by the names of their pods."""
        names = {pod["metadata"]["uid"]: name for name, pod in self.cluster.pods(**EXECUTORS).items()}
        live = [worker for worker in self.program.ask("workers") if worker["state"] == "live"]
        found = {}
        for worker in live:
            uid = psutil.Process(worker["pid"]).environ()[POD_UID] if psutil.pid_exists(worker["pid"]) else ""
            if uid in names:
                found[names[uid]] = worker
        return found

    def address(self, pod: str) -> str:
        return str(self.cluster.objects.get(PODS, NAMESPACE, pod)["status"]["podIP"])

    def logs(self) -> str:
        """The ends of all pods' logs, for a test that fails."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.directory.glob("*.log"))

    def watch_query(self, number: int) -> None:
        self.program.tell("run_watched", number)
        assert self.program.answer() == {"going": True}

    def watched(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.program.answer()["answer"]
        assert answer["equal"]
        return answer


@pytest.fixture(scope="module")
def site(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("kubernetes")
    pods = directory / "pods"
    with new_cluster(pods) as cluster, pytest.MonkeyPatch.context() as patch:
        cluster.run("driver", [sys.executable, "-c", "import time; time.sleep(3600)"])
        assert until(lambda: cluster.pods()["driver"]["status"]["phase"] == "Running")
        for key, value in cluster.kubelet.environment("driver").items():
            patch.setenv(key, value)
        address = cluster.pods()["driver"]["status"]["podIP"]
        conf = {
            "spark.kubernetes.container.image": IMAGE,
            "spark.kubernetes.driver.pod.name": "driver",
            "spark.kubernetes.authenticate.oauthToken": TOKEN,
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.driver.extraJavaOptions": SMALL_JVM,
            "spark.executor.extraJavaOptions": SMALL_JVM,
            "spark.executor.cores": "2",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "1g",
            "spark.decommission.enabled": "true",
            "spark.pyspark.python": sys.executable,
        }
        settings = {
            "split": 1,
            "attach_timeout": 120,
            "event_log_dir": str(directory / "events"),
            "chaos_enabled": True,
            "chaos_directory": str(directory / "chaos"),
            # Or the query would be over before Spark has heard of what becomes of pods.
            "chaos_faults": "*:read:1:slow=300ms:x60",
        }
        fine = in_small_row_groups(data, directory / "fine")
        with driver(cluster.master, fine, directory / "driver", conf=conf, **settings) as program:
            yield Site(cluster, pods, program)


def test_each_pod_has_a_taskmanager_that_listens_on_its_address_only(site: Site) -> None:
    assert until(lambda: len(site.workers()) == 2), "as many as Spark starts without being told"
    workers = site.workers()
    assert set(workers) == set(site.cluster.pods(**EXECUTORS))
    for pod, worker in workers.items():
        assert {host for host, _ in listening(worker["pid"])} == {site.address(pod)}
    ours = {found["host"] for found in site.attached["sockets"] if found["owner"] != "driver"}
    assert ours == {site.address("driver"), *map(site.address, workers)}
    scratch = left_by_taskmanagers(site.directory)
    assert len(scratch) == 2
    assert all("volumes/spark-local-dir-1" in str(path) for path in scratch), (
        "in the volume that Spark asked for"
    )


def test_an_evicted_pod_hands_its_work_over_and_another_takes_its_place(site: Site) -> None:
    assert until(lambda: len(site.workers()) == 2)
    pod, worker = next(iter(site.workers().items()))
    site.watch_query(9)
    ask(site.cluster, "POST", f"pods/{pod}/eviction", {"kind": "Eviction", "metadata": {"name": pod}})
    watched = site.watched()
    assert watched["stats"]["lost_workers"] == []
    froze = [event for event in watched["events"] if event["event"] == "froze"]
    assert froze[0]["draining"] == [worker["id"]], "it leaves before anybody has to notice"
    assert until(lambda: pod not in site.cluster.pods()), "and its pod is gone before its time is over"
    assert until(lambda: len(site.workers()) == 2)
    assert pod not in site.workers()


def test_a_killed_pod_costs_time_and_no_answer(site: Site) -> None:
    assert until(lambda: len(site.workers()) == 2)
    pod, worker = next(iter(site.workers().items()))
    before = {each["id"] for each in site.workers().values()}
    site.watch_query(9)
    site.cluster.kubelet.kill(pod)
    watched = site.watched()
    assert watched["stats"]["lost_workers"] == [worker["id"]]
    assert watched["stats"]["recoveries"] >= 1
    assert until(lambda: len(site.workers()) == 2)
    assert pod not in site.workers()
    (new,) = {each["id"] for each in site.workers().values()} - before
    site.watch_query(9)
    tasks = [event["worker"] for event in site.watched()["events"] if event["event"] == "task"]
    assert new in tasks, "the TaskManager of the pod that came instead takes work"


def test_all_answers_of_tpch_are_sparks(site: Site) -> None:
    assert until(lambda: len(site.workers()) == 2)
    different = [number for number in range(1, 23) if not site.program.ask("run", number)["equal"]]
    assert different == []


def test_with_the_drivers_pod_everything_goes(site: Site) -> None:
    """Executors, their configuration, their processes and their files; and the driver needed no other right."""
    assert site.cluster.server.refused == set()
    pods = [psutil.Process(worker["pid"]) for worker in site.workers().values()]
    site.watch_query(9)
    ask(site.cluster, "DELETE", "pods/driver?gracePeriodSeconds=0")
    assert until(lambda: site.cluster.everything() == []), site.cluster.everything()
    assert until(lambda: not any(process.is_running() for process in pods))
    assert until(lambda: site.program.processes() == []), site.program.processes()
    assert left_by_taskmanagers(site.directory) == []


def read_when_there(path: Path, logs: Path) -> Any:
    until(path.exists, 240)
    assert path.exists(), "\n".join(each.read_text(errors="replace")[-3000:] for each in logs.glob("*.log"))
    return json.loads(path.read_text())


def test_the_example_runs_as_it_is_written(data: Path, tmp_path: Path) -> None:
    """Image, program and the server's address are ours, and so is the token, which a real pod has by itself."""
    pods, out = tmp_path / "pods", tmp_path / "answer"
    with new_cluster(pods) as cluster:
        objects = manifest(
            **{
                "registry.example/wallaby:1": IMAGE,
                "https://kubernetes.default.svc": cluster.server.url,
                "/opt/jobs/orders.py": str(JOB),
            }
        )
        pod = objects["Pod"]
        arguments = pod["spec"]["containers"][0]["args"]
        ours = [f"--conf=spark.kubernetes.authenticate.oauthToken={TOKEN}", "--conf=spark.ui.enabled=false"]
        arguments[-1:-1] = [*ours, f"--conf=spark.pyspark.python={sys.executable}"]
        ask(
            cluster,
            "POST",
            "pods",
            {
                **pod,
                "spec": {
                    **pod["spec"],
                    "containers": [
                        {**pod["spec"]["containers"][0], "args": [*arguments, str(data), str(out)]}
                    ],
                },
            },
        )
        told = read_when_there(out, pods)
        assert told["equal"] == [True, True]
        assert told["natively"][:2] == ["native", "native"]
        assert told["workers"] == 2
        assert told["memory"] == 2 << 30, "half of what is not heap"
        assert cluster.pods()["orders-driver"]["status"]["podIP"] in told["address"]
        assert until(lambda: cluster.pods()["orders-driver"]["status"]["phase"] == "Succeeded")
        assert cluster.everything() == ["pods/orders-driver"], "Spark has removed the rest"
        assert cluster.server.refused == set()
        rules = {
            (verb, group, resource)
            for rule in objects["Role"]["rules"]
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        unused = (
            rules
            - {tuple(each) for each in cluster.server.allowed}
            - {("patch", "", "pods"), ("delete", "", "pods")}
        )
        assert unused == set(), "all but what losses and labels need was needed"


def test_cluster_mode_needs_nothing_but_the_image(data: Path, tmp_path: Path) -> None:
    """Spark starts the driver's pod with a service, and since 4.2 makes a network policy for the executors."""
    pods, out, token = tmp_path / "pods", tmp_path / "answer", tmp_path / "token"
    token.write_text(ADMIN)
    conf = {
        "spark.kubernetes.container.image": IMAGE,
        "spark.kubernetes.driver.master": "{url}",
        "spark.kubernetes.authenticate.submission.oauthToken": ADMIN,
        "spark.kubernetes.authenticate.driver.mounted.oauthTokenFile": str(token),
        "spark.kubernetes.driver.pod.name": "orders-driver",
        "spark.executor.instances": "1",
        "spark.executor.cores": "2",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "1g",
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": SMALL_JVM,
        "spark.executor.extraJavaOptions": SMALL_JVM,
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
    }
    with new_cluster(pods) as cluster:
        submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", cluster.master]
        submit += ["--deploy-mode", "cluster", "--name", "orders"]
        for key, value in conf.items():
            submit += ["--conf", f"{key}={value.format(url=cluster.server.url)}"]
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))
        }
        done = subprocess.run(
            [*submit, f"local://{JOB}", str(data), str(out)],
            check=False, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=400,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        told = read_when_there(out, pods)
        assert told["equal"] == [True, True]
        assert told["workers"] == 1
        assert cluster.pods()["orders-driver"]["status"]["podIP"] in told["address"]
        (policy,), _ = cluster.objects.select(
            next(kind for kind in KINDS if kind.plural == "networkpolicies")
        )
        executors = policy["spec"]["podSelector"]["matchLabels"]
        assert executors["spark-role"] == "executor"
        (rule,) = policy["spec"]["ingress"]
        assert "ports" not in rule, "executors may reach each other's ports, whichever TaskManagers chose"
        assert until(lambda: list(cluster.pods(**EXECUTORS)) == [])
        ask(cluster, "DELETE", "pods/orders-driver?gracePeriodSeconds=0")
        assert until(lambda: cluster.everything() == []), cluster.everything()
