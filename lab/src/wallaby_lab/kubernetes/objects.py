"""The objects of the API server, with their versions, and the changes that watches are told of.

Every change gets the next resource version, one count for all objects. A pod is deleted in two steps: the request marks
it, and the kubelet removes it once its processes have ended. What an object owns is deleted with it.
"""

from __future__ import annotations

import copy
import datetime
import threading
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from wallaby_lab.kubernetes.selectors import Selection
from wallaby_lab.kubernetes.status import StatusError

Json = dict[str, Any]
#: How many changes are kept for watches that come back.
CHANGES_MAX: Final = 10_000
GRACE_SECONDS: Final = 30
EVERYTHING: Final = Selection()


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of objects, as its path names it."""

    group: str
    plural: str
    name: str

    @property
    def version(self) -> str:
        """What objects of this kind call their API version."""
        return f"{self.group}/v1" if self.group else "v1"


PODS: Final = ObjectKind("", "pods", "Pod")
CONFIG_MAPS: Final = ObjectKind("", "configmaps", "ConfigMap")
KINDS: Final = (
    PODS,
    CONFIG_MAPS,
    ObjectKind("", "services", "Service"),
    ObjectKind("", "secrets", "Secret"),
    ObjectKind("", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ObjectKind("networking.k8s.io", "networkpolicies", "NetworkPolicy"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object; None before it was there, and after it has gone."""

    version: int
    kind: ObjectKind
    namespace: str
    before: Json | None
    after: Json | None

    def event(self, selection: Selection) -> Json | None:
        """What a watch is told. An object that matches no longer has gone for it, and the other way round."""
        was = self.before is not None and selection.matches(self.before)
        is_now = self.after is not None and selection.matches(self.after)
        if is_now:
            return {"type": "MODIFIED" if was else "ADDED", "object": self.after}
        if not was:
            return None
        gone = copy.deepcopy(self.after or self.before or {})
        gone["metadata"]["resourceVersion"] = str(self.version)
        return {"type": "DELETED", "object": gone}


class ObjectStore:
    """All objects. What it hands out is never changed afterwards, and belongs to nobody."""

    def __init__(self) -> None:
        self._objects: dict[tuple[ObjectKind, str, str], Json] = {}
        self._changes: deque[Change] = deque(maxlen=CHANGES_MAX)
        self._version = 1
        self._changed = threading.Condition()
        self._closed = False

    # --- requests ------------------------------------------------------------------------------------

    def create(self, kind: ObjectKind, namespace: str, given: Json) -> Json:
        """Add an object."""
        made = copy.deepcopy(given)
        metadata = made.setdefault("metadata", {})
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{uuid.uuid4().hex[:5]}"
        with self._changed:
            if (kind, namespace, name) in self._objects:
                raise StatusError(409, "AlreadyExists", f'{kind.plural} "{name}" already exists')
            made |= {"kind": kind.name, "apiVersion": kind.version}
            metadata |= {"name": name, "namespace": namespace, "uid": str(uuid.uuid4())}
            metadata["creationTimestamp"] = now()
            if kind is PODS:
                made["spec"].setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
                made["status"] = {"phase": "Pending"}
            return self._put(kind, namespace, name, made)

    def get(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """One object.

        Raises:
            StatusError: 404, if it is not there.
        """
        with self._changed:
            found = self._objects.get((kind, namespace, name))
        if found is None:
            raise StatusError(404, "NotFound", f'{kind.plural} "{name}" not found')
        return found

    def has(self, kind: ObjectKind, namespace: str, name: str) -> bool:
        """Is there such an object?"""
        with self._changed:
            return (kind, namespace, name) in self._objects

    def select(
        self, kind: ObjectKind, namespace: str = "", selection: Selection = EVERYTHING
    ) -> tuple[list[Json], int]:
        """All objects of a kind that are selected, and the version of all."""
        with self._changed:
            found = [
                each
                for (of, there, _), each in sorted(self._objects.items(), key=lambda item: item[0][1:])
                if of == kind and namespace in ("", there) and selection.matches(each)
            ]
            return found, self._version

    def replace(self, kind: ObjectKind, namespace: str, name: str, changed: Json) -> Json:
        """Put another object in the place of one. Whoever names a version must name the present one.

        Raises:
            StatusError: 404 or 409.
        """
        with self._changed:
            found = self.get(kind, namespace, name)
            asked = changed.get("metadata", {}).get("resourceVersion")
            if asked and asked != found["metadata"]["resourceVersion"]:
                raise StatusError(
                    409, "Conflict", f'{kind.plural} "{name}": the object has been modified meanwhile'
                )
            made = copy.deepcopy(changed)
            kept = {key: found["metadata"][key] for key in ("name", "namespace", "uid", "creationTimestamp")}
            made["metadata"] = {**made.get("metadata", {}), **kept}
            return self._put(kind, namespace, name, made)

    def delete(self, kind: ObjectKind, namespace: str, name: str, grace_seconds: int | None = None) -> Json:
        """Delete an object; of a pod, ask the kubelet to end it. With a grace of 0, the pod is gone at once."""
        with self._changed:
            found = self.get(kind, namespace, name)
            if kind is PODS:
                grace = (
                    found["spec"]["terminationGracePeriodSeconds"] if grace_seconds is None else grace_seconds
                )
                if "deletionTimestamp" not in found["metadata"] or grace == 0:
                    marked = copy.deepcopy(found)
                    marked["metadata"]["deletionTimestamp"] = now()
                    marked["metadata"]["deletionGracePeriodSeconds"] = grace
                    found = self._put(kind, namespace, name, marked)
                if grace:
                    return found
            self.remove(kind, namespace, name)
            return found

    def remove(self, kind: ObjectKind, namespace: str, name: str) -> None:
        """Take an object away, and ask for the deletion of what it owns. Nothing happens if it has gone."""
        with self._changed:
            found = self._objects.pop((kind, namespace, name), None)
            if found is None:
                return
            self._version += 1
            self._note(kind, namespace, found, None)
            uid = found["metadata"]["uid"]
            owned = [key for key, each in self._objects.items() if _is_owned(each, uid)]
            for key in owned:
                self.delete(*key)

    def set_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        """Tell the state of a pod, as the kubelet does. Nothing happens if it has gone."""
        with self._changed:
            found = self._objects.get((PODS, namespace, name))
            if found is not None:
                made = copy.deepcopy(found)
                made["status"] = dict(status)
                self._put(PODS, namespace, name, made)

    # --- watches -------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the latest change."""
        with self._changed:
            return self._version

    def changes(self, after: int, limit_seconds: float) -> list[Change]:
        """The changes after a version, as soon as there is one; none when the time is over or the store is closed.

        Raises:
            StatusError: 410, if they are no longer known.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._version > after, limit_seconds)
            if self._changes and after < self._changes[0].version - 1 and len(self._changes) == CHANGES_MAX:
                raise StatusError(410, "Expired", f"too old resource version: {after}")
            return [change for change in self._changes if change.version > after]

    @property
    def is_closed(self) -> bool:
        """Has the cluster ended, so that no more changes come?"""
        return self._closed

    def close(self) -> None:
        """End all waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _put(self, kind: ObjectKind, namespace: str, name: str, made: Json) -> Json:
        before = self._objects.get((kind, namespace, name))
        self._version += 1
        made["metadata"]["resourceVersion"] = str(self._version)
        self._objects[kind, namespace, name] = made
        self._note(kind, namespace, before, made)
        return made

    def _note(self, kind: ObjectKind, namespace: str, before: Json | None, after: Json | None) -> None:
        self._changes.append(Change(self._version, kind, namespace, before, after))
        self._changed.notify_all()


def _is_owned(found: Json, uid: str) -> bool:
    owners = found["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == uid for owner in owners)


def now() -> str:
    """The time, as objects tell it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
