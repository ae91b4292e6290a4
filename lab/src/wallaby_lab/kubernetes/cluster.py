"""A whole cluster: the API server, and the kubelet that runs what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from wallaby_lab.kubernetes.access import Account
from wallaby_lab.kubernetes.api_server import ApiServer
from wallaby_lab.kubernetes.images import Image
from wallaby_lab.kubernetes.kubelet import Kubelet
from wallaby_lab.kubernetes.objects import KINDS, PODS, Json, ObjectStore

NAMESPACE: Final = "default"
#: The name of the image that stands for this machine's Spark and Python.
IMAGE: Final = "wallaby:test"


class PodCluster:
    """A Kubernetes cluster of processes of this machine. Leave its `with` block to end it."""

    def __init__(self, directory: Path, accounts: Iterable[Account] = ()) -> None:
        """Start it; it keeps volumes and logs in the directory."""
        self.objects = ObjectStore()
        self.kubelet = Kubelet(self.objects, directory, {IMAGE: Image.of_this_machine()})
        self.server = ApiServer(self.objects, accounts, self.kubelet.log)

    @property
    def master(self) -> str:
        """Spark's master."""
        return f"k8s://{self.server.url}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close()
        self.kubelet.close()

    def run(self, name: str, command: list[str], labels: Mapping[str, str] = {}) -> Json:
        """Create a pod that runs a command."""
        container = {"name": "main", "image": IMAGE, "command": command}
        spec = {"containers": [container], "restartPolicy": "Never"}
        pod = {"metadata": {"name": name, "labels": dict(labels)}, "spec": spec}
        return self.objects.create(PODS, NAMESPACE, pod)

    def pods(self, **labels: str) -> dict[str, Json]:
        """The pods with these labels, by name; `spark_role` stands for `spark-role`."""
        wanted = {key.replace("_", "-"): value for key, value in labels.items()}
        found, _ = self.objects.select(PODS, NAMESPACE)
        return {
            pod["metadata"]["name"]: pod
            for pod in found
            if wanted.items() <= (pod["metadata"].get("labels") or {}).items()
        }

    def everything(self) -> list[str]:
        """All objects that there are, as kind and name."""
        named: list[Any] = [
            (kind, each["metadata"]["name"]) for kind in KINDS for each in self.objects.select(kind)[0]
        ]
        return [f"{kind.plural}/{name}" for kind, name in named]
