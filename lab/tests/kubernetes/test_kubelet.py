"""Pods are processes: with their environment, volumes and addresses; they end in all the ways that pods do."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from wallaby_lab.kubernetes.cluster import IMAGE, NAMESPACE, PodCluster
from wallaby_lab.kubernetes.images import DECOMMISSION_SCRIPT, Image
from wallaby_lab.kubernetes.kubelet import POD_UID
from wallaby_lab.kubernetes.names import SERVICES
from wallaby_lab.kubernetes.objects import CONFIG_MAPS, KINDS, PODS
from wallaby_lab.kubernetes.status import StatusError

LIMIT_SECONDS = 20.0
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
#: Tells when it can be signalled, and ends when it is, with a code of its own.
OBEYS = """
import signal, sys, time
signal.signal(getattr(signal, sys.argv[1]), lambda *_: sys.exit(int(sys.argv[2])))
print("ready", flush=True)
time.sleep(600)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[PodCluster]:
    with PodCluster(tmp_path / "pods") as made:
        yield made


def phase(cluster: PodCluster, name: str) -> str:
    return str(cluster.objects.get(PODS, NAMESPACE, name)["status"]["phase"])


def has_failed(cluster: PodCluster, name: str) -> bool:
    return phase(cluster, name) == "Failed"


def is_gone(cluster: PodCluster, name: str) -> bool:
    return name not in cluster.pods()


def exit_code(cluster: PodCluster, name: str) -> int:
    (container,) = cluster.objects.get(PODS, NAMESPACE, name)["status"]["containerStatuses"]
    return int(container["state"]["terminated"]["exitCode"])


def begin(cluster: PodCluster, name: str, *command: str, **spec: Any) -> None:
    """Run a command, and wait until it has said that it is ready."""
    container = {
        "name": "main",
        "image": IMAGE,
        "command": [sys.executable, "-c", *command],
        **spec.pop("main", {}),
    }
    cluster.objects.create(
        PODS, NAMESPACE, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
    )
    log = cluster.kubelet.log
    assert until(lambda: phase(cluster, name) != "Pending" and "ready" in log(NAMESPACE, name).read_text())


@pytest.mark.parametrize(("code", "becomes"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_ends_with_its_process(cluster: PodCluster, code: int, becomes: str) -> None:
    cluster.run("one", [sys.executable, "-c", f"raise SystemExit({code})"])
    assert until(lambda: phase(cluster, "one") == becomes)
    assert exit_code(cluster, "one") == code
    cluster.objects.delete(PODS, NAMESPACE, "one")
    assert until(lambda: is_gone(cluster, "one"))


def test_pods_have_addresses_of_their_own(cluster: PodCluster) -> None:
    for name in ("one", "other"):
        cluster.run(name, SLEEP)
    assert until(lambda: {phase(cluster, name) for name in ("one", "other")} == {"Running"})
    addresses = {pod["status"]["podIP"] for pod in cluster.pods().values()}
    assert addresses == {"127.83.0.1", "127.83.0.2"}


def test_a_headless_service_has_the_addresses_of_its_pods(cluster: PodCluster) -> None:
    for name, cluster_ip in (("headless", "None"), ("other", "10.0.0.1")):
        spec = {"clusterIP": cluster_ip, "selector": {"app": "a"}}
        cluster.objects.create(SERVICES, NAMESPACE, {"metadata": {"name": name}, "spec": spec})
    for name, app in (("one", "a"), ("two", "b"), ("three", "a")):
        cluster.run(name, SLEEP, {"app": app})
    hosts = cluster.kubelet.names.path

    def is_told(*addresses: str) -> bool:
        name = "headless.default.svc headless.default.svc.cluster.local"
        return hosts.read_text().splitlines()[1:] == [f"{address} {name}" for address in addresses]

    assert until(lambda: is_told("127.83.0.1", "127.83.0.3"))
    cluster.objects.delete(PODS, NAMESPACE, "one", 0)
    assert until(lambda: is_told("127.83.0.3"))
    assert f"={hosts}" in cluster.kubelet.names.java_option


def test_a_process_gets_its_environment_and_its_volumes(cluster: PodCluster, tmp_path: Path) -> None:
    cluster.objects.create(
        CONFIG_MAPS, NAMESPACE, {"metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}
    )
    secrets = next(kind for kind in KINDS if kind.name == "Secret")
    hidden = base64.b64encode(b"hidden").decode()
    cluster.objects.create(secrets, NAMESPACE, {"metadata": {"name": "password"}, "data": {"word": hidden}})
    told = tmp_path / "told"
    told.mkdir()
    show = (
        "import json, os, sys, pathlib; path = pathlib.Path;"
        "seen = {key: os.environ[key] for key in ('IP', 'NAME', 'BOTH')};"
        "seen['conf'] = sorted((file.name, file.read_text()) for file in path(os.environ['CONF']).iterdir());"
        "seen['word'] = path(sys.argv[1]).read_text();"
        "first, second = os.environ['DIRS'].split(',');"
        "seen['empty'] = os.listdir(first); seen['scratch'] = first; path(first, 'x').touch();"
        "path(second, 'seen').write_text(json.dumps(seen)); print('ready', flush=True);"
        "import time; time.sleep(600)"
    )
    fields = {"IP": "status.podIP", "NAME": "metadata.name"}
    main = {
        "args": ["/etc/password/word"],
        "env": [
            *({"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()),
            {"name": "BOTH", "value": "$(NAME)@$(IP)$(OTHER)"},
            {"name": "CONF", "value": "/opt/conf"},
            {"name": "DIRS", "value": "/var/data/spark,/mnt"},
        ],
        "volumeMounts": [
            {"name": "conf", "mountPath": "/opt/conf"},
            {"name": "password", "mountPath": "/etc/password"},
            {"name": "scratch", "mountPath": "/var/data/spark"},
            {"name": "host", "mountPath": "/mnt"},
        ],
    }
    volumes = [
        {"name": "conf", "configMap": {"name": "conf", "items": [{"key": "a", "path": "renamed"}]}},
        {"name": "password", "secret": {"secretName": "password"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": str(told)}},
    ]
    begin(cluster, "one", show, main=main, volumes=volumes)
    seen = json.loads((told / "seen").read_text())
    scratch = Path(seen.pop("scratch"))
    assert seen == {
        "IP": "127.83.0.1",
        "NAME": "one",
        "BOTH": "one@127.83.0.1$(OTHER)",
        "conf": [["renamed", "1"]],
        "word": "hidden",
        "empty": [],
    }
    assert (scratch / "x").exists()
    cluster.objects.delete(PODS, NAMESPACE, "one", 0)
    assert until(lambda: not scratch.exists()), "an empty directory goes with its pod"
    assert (told / "seen").exists()


def test_what_this_cluster_does_not_have_makes_a_pod_fail_or_wait(cluster: PodCluster) -> None:
    container = {"name": "main", "image": IMAGE, "command": SLEEP}
    mount = {"name": "v", "mountPath": "/v"}
    specs: dict[str, dict[str, Any]] = {
        "volume": {
            "containers": [{**container, "volumeMounts": [mount]}],
            "volumes": [{"name": "v", "nfs": {}}],
        },
        "two": {"containers": [container, container]},
        "program": {"containers": [{**container, "command": ["no such program"]}]},
        "image": {"containers": [{**container, "image": "absent"}]},
    }
    for name, spec in specs.items():
        cluster.objects.create(PODS, NAMESPACE, {"metadata": {"name": name}, "spec": spec})
    for name in ("volume", "two", "program"):
        assert until(partial(has_failed, cluster, name)), name
        assert cluster.objects.get(PODS, NAMESPACE, name)["status"]["message"]
    assert until(lambda: "containerStatuses" in cluster.objects.get(PODS, NAMESPACE, "image")["status"])
    (waiting,) = cluster.objects.get(PODS, NAMESPACE, "image")["status"]["containerStatuses"]
    assert waiting["state"] == {"waiting": {"reason": "ImagePullBackOff"}}
    cluster.objects.delete(PODS, NAMESPACE, "image")
    assert until(lambda: is_gone(cluster, "image"))


def test_a_pod_waits_for_what_its_volumes_refer_to(cluster: PodCluster) -> None:
    for name in ("late", "never"):
        mounts = [{"name": "conf", "mountPath": "/conf"}]
        show = f"import sys; sys.exit(open(sys.argv[1]).read() != {name!r})"
        command = [sys.executable, "-c", show, "/conf/word"]
        container = {"name": "main", "image": IMAGE, "args": command, "volumeMounts": mounts}
        spec = {"containers": [container], "volumes": [{"name": "conf", "configMap": {"name": name}}]}
        cluster.objects.create(PODS, NAMESPACE, {"metadata": {"name": name}, "spec": spec})
    assert until(lambda: "containerStatuses" in cluster.objects.get(PODS, NAMESPACE, "late")["status"])
    assert phase(cluster, "late") == "Pending"
    cluster.objects.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": "late"}, "data": {"word": "late"}})
    assert until(lambda: phase(cluster, "late") == "Succeeded")
    cluster.objects.delete(PODS, NAMESPACE, "never")
    assert until(lambda: is_gone(cluster, "never"))


def test_a_deleted_pod_is_asked_to_end(cluster: PodCluster) -> None:
    begin(cluster, "one", OBEYS, "SIGTERM", "0")
    cluster.objects.delete(PODS, NAMESPACE, "one", 600)
    assert until(lambda: is_gone(cluster, "one"))


def test_a_pod_that_does_not_end_in_its_time_is_killed(cluster: PodCluster) -> None:
    begin(cluster, "one", DEAF)
    (process,) = cluster.kubelet.processes("one")
    cluster.objects.delete(PODS, NAMESPACE, "one", 1)
    assert until(lambda: is_gone(cluster, "one"))
    assert not process.is_running()


def test_the_hook_that_decommissions_an_executor_comes_first(cluster: PodCluster) -> None:
    hook = {"lifecycle": {"preStop": {"exec": {"command": [DECOMMISSION_SCRIPT]}}}}
    both = OBEYS.replace("print(", "signal.signal(signal.SIGTERM, lambda *_: os._exit(9)); import os; print(")
    watch = cluster.objects.version
    begin(cluster, "one", both, "SIGPWR", "0", main=hook)
    cluster.objects.delete(PODS, NAMESPACE, "one", 600)
    assert until(lambda: is_gone(cluster, "one"))
    phases = [
        change.after["status"]["phase"] for change in cluster.objects.changes(watch, 0.0) if change.after
    ]
    assert phases[-1] == "Succeeded"


def test_a_killed_pod_fails_with_all_its_processes(cluster: PodCluster) -> None:
    begin(cluster, "one", PARENT)
    assert until(lambda: len(cluster.kubelet.processes("one")) == 2)
    cluster.kubelet.kill("one")
    assert until(lambda: phase(cluster, "one") == "Failed")
    assert exit_code(cluster, "one") == 128 + signal.SIGKILL
    assert cluster.kubelet.processes("one") == []


def test_what_runs_in_a_pod_ends_with_it(cluster: PodCluster) -> None:
    cluster.run("one", SLEEP)
    assert until(lambda: phase(cluster, "one") == "Running")
    environment = {**os.environ, **cluster.kubelet.environment("one")}
    with subprocess.Popen(SLEEP, env=environment) as other:
        cluster.objects.delete(PODS, NAMESPACE, "one", 0)
        assert other.wait(LIMIT_SECONDS) == -signal.SIGKILL
    with pytest.raises(StatusError, match="not found"):
        cluster.kubelet.kill("absent")


def test_a_cluster_that_ends_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    with PodCluster(tmp_path / "pods") as cluster:
        cluster.run("one", SLEEP)
        assert until(lambda: phase(cluster, "one") == "Running")
        uid = cluster.pods()["one"]["metadata"]["uid"]
        (process,) = cluster.kubelet.processes("one")
        assert psutil.Process(process.pid).environ()[POD_UID] == uid
        assert cluster.everything() == ["pods/one"]
    assert not process.is_running()
    assert sorted(path.name for path in (tmp_path / "pods").iterdir()) == ["hosts", "one.log"]


def test_an_image_starts_what_sparks_entrypoint_would() -> None:
    image = Image(Path("/spark"), "java", {})
    environment = {
        "SPARK_JAVA_OPT_1": "-Db=2",
        "SPARK_JAVA_OPT_0": "-Da=1",
        "SPARK_JAVA_OPT_10": "-Dc=3",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_DRIVER_URL": "spark://x",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "127.83.0.9",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "exec-7",
        "SPARK_DRIVER_BIND_ADDRESS": "127.83.0.8",
    }
    executor = image.command([], ["executor"], environment)
    assert executor[:4] == ["java", "-Da=1", "-Db=2", "-Dc=3"]
    assert executor[executor.index("--executor-id") + 1] == "7"
    assert executor[executor.index("--hostname") + 1] == "127.83.0.9"
    driver = image.command([], ["driver", "--class", "Main", "a.py"], environment)
    assert driver[0] == "/spark/bin/spark-submit"
    assert driver[-3:] == ["--class", "Main", "a.py"]
    assert "spark.driver.bindAddress=127.83.0.8" in driver
    assert image.command(["a"], ["b"], {}) == ["a", "b"]
    assert image.command([], ["date"], {}) == ["date"]
    assert image.command(["/opt/spark/bin/spark-submit"], ["a.py"], {}) == ["/spark/bin/spark-submit", "a.py"]
    with pytest.raises(StatusError):
        image.command([], [], {})
