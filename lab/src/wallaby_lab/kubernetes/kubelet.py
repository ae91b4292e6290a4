"""Runs pods: a real process of this machine for each, with an address of its own on the loopback.

There are no containers. A pod's process gets the environment and the volumes that its specification names, as
directories. All its descendants carry the pod's id in their environment, so that they end with it, as processes in a
container do. A memory limit is told to nobody and is not enforced; nor are network policies.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psutil

from wallaby_lab.kubernetes.images import DECOMMISSION_SCRIPT, Image
from wallaby_lab.kubernetes.names import SERVICES, ServiceNames
from wallaby_lab.kubernetes.objects import PODS, Change, Json, ObjectStore, now
from wallaby_lab.kubernetes.status import StatusError
from wallaby_lab.kubernetes.volumes import Mounts, mounted

#: The variable by which all processes of a pod are known.
POD_UID: Final = "WALLABY_LAB_POD_UID"
#: Pods have the addresses 127.83.0.1 and following.
_SUBNET: Final = "127.83"
NODE: Final = "this-machine"
CHANGE_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.02
#: How often to look whether what a volume refers to is there.
MOUNT_SECONDS: Final = 0.2
NOT_FOUND: Final = 404
#: How long a pod's processes may take to end when the whole cluster ends.
CLOSE_SECONDS: Final = 20.0
_REFERENCE: Final = re.compile(r"\$\((\w+)\)")


class Kubelet:
    """The only node of the cluster. Close it, or leave its `with` block, to end all pods."""

    def __init__(self, objects: ObjectStore, directory: Path, images: Mapping[str, Image]) -> None:
        """Begin to run pods. A pod with another image than these stays pending, as where it cannot be pulled."""
        self.objects, self.images = objects, images
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._pods: dict[str, _Pod] = {}
        self._addresses = itertools.count(1)
        self.names = ServiceNames(directory / "hosts")
        self.names.write(objects, {})
        self._thread = threading.Thread(target=self._follow, name="kubelet", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all pods at once, and wait for that."""
        self.objects.close()
        self._thread.join()
        for pod in list(self._pods.values()):
            pod.end_now()
        for pod in list(self._pods.values()):
            pod.join(CLOSE_SECONDS)

    # --- what tests ask ------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """Kill all processes of a pod at once, as the kernel of its node would; the pod fails."""
        self._named(name).kill()

    def processes(self, name: str) -> list[psutil.Process]:
        """The processes of a pod that run now."""
        return self._named(name).processes()

    def environment(self, name: str) -> dict[str, str]:
        """What makes a process that is started elsewhere one of the pod's, as `kubectl exec` would."""
        return {POD_UID: self._named(name).uid}

    def log(self, namespace: str, name: str) -> Path:
        """What a pod has printed."""
        del namespace
        return self._named(name).log

    def _named(self, name: str) -> _Pod:
        found = [pod for pod in self._pods.values() if pod.name == name]
        if not found:
            raise StatusError(404, "NotFound", f'pods "{name}" not found')
        return found[-1]

    # --- pods ----------------------------------------------------------------------------------------

    def _follow(self) -> None:
        at = 0
        while not self.objects.is_closed:
            for change in self.objects.changes(at, CHANGE_SECONDS):
                at = change.version
                if change.kind is PODS:
                    self._heed(change)
                if change.kind in (PODS, SERVICES) and None in (change.before, change.after):
                    self.names.write(self.objects, {uid: pod.address for uid, pod in self._pods.items()})

    def _heed(self, change: Change) -> None:
        found = change.after or change.before or {}
        uid = found["metadata"]["uid"]
        if change.before is None:
            number = next(self._addresses)
            address = f"{_SUBNET}.{number >> 8}.{number & 255}"
            self._pods[uid] = _Pod(self, found, address, self._directory)
        elif change.after is None:
            self._pods[uid].end_now()
        elif "deletionTimestamp" in found["metadata"]:
            self._pods[uid].end(found["metadata"]["deletionGracePeriodSeconds"])


class _Pod:
    """One pod, on a thread of its own."""

    def __init__(self, kubelet: Kubelet, found: Json, address: str, directory: Path) -> None:
        self._kubelet, self._found = kubelet, found
        #: The address of the pod.
        self.address = address
        metadata = found["metadata"]
        self.name, self.uid, self._namespace = metadata["name"], metadata["uid"], metadata["namespace"]
        self._directory = directory / f"{self.name}-{self.uid[:8]}"
        self._claims = directory / "claims"
        self.log = directory / f"{self.name}.log"
        self._started = now()
        self._ends = threading.Event()
        self._end_by = float("inf")
        self._thread = threading.Thread(target=self._run, name=f"pod-{self.name}", daemon=True)
        self._thread.start()

    def end(self, grace_seconds: float) -> None:
        """Ask it to end within so long."""
        self._end_by = min(self._end_by, time.monotonic() + grace_seconds)
        self._ends.set()

    def end_now(self) -> None:
        """End it without asking."""
        self.end(0.0)
        self.kill()

    def join(self, limit_seconds: float) -> None:
        """Wait for its end."""
        self._thread.join(limit_seconds)

    def processes(self) -> list[psutil.Process]:
        """All processes with this pod's id in their environment."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(POD_UID) == self.uid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def kill(self) -> None:
        """Kill them all; some may be born meanwhile."""
        while found := self.processes():
            for process in found:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(_POLL_SECONDS)

    # --- its life ------------------------------------------------------------------------------------

    def _run(self) -> None:
        container = self._found["spec"]["containers"][0]
        image = self._kubelet.images.get(container["image"])
        try:
            if image is None:
                self._tell("Pending", {"waiting": {"reason": "ImagePullBackOff"}})
                self._ends.wait()
            else:
                self._run_container(container, image)
        except (StatusError, OSError, KeyError) as error:
            self._tell("Failed", self._terminated(128, "StartError"), message=str(error))
            self._ends.wait()
        finally:
            self.kill()
            shutil.rmtree(self._directory, ignore_errors=True)
            if self._ends.is_set():
                self._kubelet.objects.remove(PODS, self._namespace, self.name)

    def _run_container(self, container: Json, image: Image) -> None:
        if len(self._found["spec"]["containers"]) > 1 or self._found["spec"].get("initContainers"):
            raise StatusError(422, "Invalid", "this cluster runs one container in a pod")
        mounts = self._mount(container)
        if mounts is None:
            return
        environment = self._environment(container, image, mounts)
        arguments = [mounts.translated(_expanded(each, environment)) for each in container.get("args") or []]
        given = [_expanded(each, environment) for each in container.get("command") or []]
        command = image.command(given, arguments, environment)
        with self.log.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - what the pod names, and no shell
                command,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self._directory,
                start_new_session=True,
            )  # fmt: skip
        self._tell("Running", {"running": {"startedAt": self._started}})
        while process.poll() is None and not self._ends.wait(_POLL_SECONDS):
            pass
        if process.poll() is None:
            self._stop(container, process)
        code = process.wait()
        self.kill()  # what is left in a container ends with its first process
        exit_code = 128 - code if code < 0 else code
        succeeded = exit_code == 0
        reason = "Completed" if succeeded else "Error"
        self._tell("Succeeded" if succeeded else "Failed", self._terminated(exit_code, reason))
        self._ends.wait()

    def _mount(self, container: Json) -> Mounts | None:
        """The volumes, as soon as all that they refer to is there; None if the pod is to end before."""
        while True:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True)
            try:
                return mounted(self._found, container, self._directory, self._claims, self._kubelet.objects)
            except StatusError as error:
                if error.code != NOT_FOUND:
                    raise
                self._tell("Pending", {"waiting": {"reason": "ContainerCreating", "message": error.message}})
            if self._ends.wait(MOUNT_SECONDS):
                return None

    def _stop(self, container: Json, process: subprocess.Popen[bytes]) -> None:
        """The hook first, then a request to end, then the end; the grace period holds for all."""
        hook = ((container.get("lifecycle") or {}).get("preStop") or {}).get("exec", {}).get("command")
        if hook and time.monotonic() < self._end_by:
            if hook == [DECOMMISSION_SCRIPT]:
                process.send_signal(
                    signal.SIGPWR
                )  # what the script in Spark's images does; it waits for the end
            self._wait(process)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            self._wait(process)
        if process.poll() is None:
            self.kill()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None and time.monotonic() < self._end_by:
            time.sleep(_POLL_SECONDS)

    def _environment(self, container: Json, image: Image, mounts: Mounts) -> dict[str, str]:
        temporary = self._directory / "tmp"
        temporary.mkdir()
        environment = {
            **image.environment,
            "HOME": str(self._directory),
            "TMPDIR": str(temporary),
            "JAVA_TOOL_OPTIONS": self._kubelet.names.java_option,
            "HOSTNAME": self._found["spec"].get("hostname", self.name),
            POD_UID: self.uid,
        }
        for each in container.get("env") or []:
            value = self._field(each["valueFrom"]) if "valueFrom" in each else each.get("value", "")
            environment[each["name"]] = mounts.translated(_expanded(value, environment))
        return environment

    def _field(self, source: Json) -> str:
        path = (source.get("fieldRef") or {}).get("fieldPath")
        known: dict[str, str] = {
            "status.podIP": self.address,
            "status.hostIP": "127.0.0.1",
            "metadata.name": self.name,
            "metadata.namespace": self._namespace,
            "spec.nodeName": NODE,
        }
        if path not in known:
            raise StatusError(422, "Invalid", f"no such source of a variable here: {source}")
        return known[path]

    def _terminated(self, code: int, reason: str) -> Json:
        times = {"startedAt": self._started, "finishedAt": now()}
        return {"terminated": {"exitCode": code, "reason": reason, **times}}

    def _tell(self, phase: str, state: Json, message: str = "") -> None:
        container = self._found["spec"]["containers"][0]
        is_ready = "running" in state
        status: dict[str, Any] = {
            "phase": phase,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": "127.0.0.1",
            "startTime": self._started,
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": is_ready,
                    "started": is_ready,
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }
        if message:
            status["message"] = message
        self._kubelet.objects.set_status(self._namespace, self.name, status)


def _expanded(value: str, environment: Mapping[str, str]) -> str:
    """References to variables that were named before."""
    return _REFERENCE.sub(lambda match: environment.get(match[1], match[0]), value)
