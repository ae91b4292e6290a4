"""The names of services, for JVMs in pods: a file of hosts stands for the cluster's DNS.

Only headless services have names here, each with the addresses of the pods that it selects. Other programs than JVMs do
not read the file.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from wallaby_lab.kubernetes.objects import KINDS, PODS, ObjectStore
from wallaby_lab.kubernetes.selectors import Selection

SERVICES = next(kind for kind in KINDS if kind.name == "Service")


class ServiceNames:
    """The file of one cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def java_option(self) -> str:
        """What makes a JVM look names up in the file, and nowhere else."""
        return f"-Djdk.net.hosts.file={self.path}"

    def write(self, objects: ObjectStore, addresses: Mapping[str, str]) -> None:
        """Write down which names there are; `addresses` has those of pods, by their ids."""
        lines = [f"127.0.0.1 localhost {socket.gethostname()}"]
        for service in objects.select(SERVICES)[0]:
            metadata, spec = service["metadata"], service.get("spec") or {}
            if spec.get("clusterIP") != "None" or not spec.get("selector"):
                continue
            selected = Selection.parse(",".join(f"{key}={value}" for key, value in spec["selector"].items()))
            name = f"{metadata['name']}.{metadata['namespace']}.svc"
            pods = (
                pod["metadata"]["uid"] for pod in objects.select(PODS, metadata["namespace"], selected)[0]
            )
            lines += [f"{addresses[uid]} {name} {name}.cluster.local" for uid in pods if uid in addresses]
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.rename(self.path)
