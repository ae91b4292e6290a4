"""The volumes of a pod: directories of this machine, and how paths in the container become paths in them."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaby_lab.kubernetes.objects import CONFIG_MAPS, KINDS, Json, ObjectStore
from wallaby_lab.kubernetes.status import StatusError

_SECRETS = next(kind for kind in KINDS if kind.name == "Secret")
_CLAIMS = next(kind for kind in KINDS if kind.name == "PersistentVolumeClaim")


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where the volumes of a container are: pairs of a path in the container and one of this machine."""

    pairs: tuple[tuple[str, Path], ...]

    def translated(self, text: str) -> str:
        """A value of an environment or an argument, with the paths of this machine in it."""
        for inside, outside in self.pairs:
            whole = rf"(?<![\w./-]){re.escape(inside)}(?![\w.-])"
            text = str(outside).join(re.split(whole, text))
        return text


def mounted(pod: Json, container: Json, directory: Path, claims: Path, objects: ObjectStore) -> Mounts:
    """Make what a container mounts, below the directory of its pod; claims outlive pods.

    Raises:
        StatusError: 422, for a kind of volume that this cluster does not have; 404, for one that refers to nothing.
    """
    namespace = pod["metadata"]["namespace"]
    places: dict[str, Path] = {}
    for volume in pod["spec"].get("volumes") or []:
        places[volume["name"]] = _made(
            volume, directory / "volumes" / volume["name"], claims, namespace, objects
        )
    pairs = [
        (mount["mountPath"].rstrip("/"), places[mount["name"]] / mount.get("subPath", ""))
        for mount in container.get("volumeMounts") or []
    ]
    return Mounts(tuple(sorted(pairs, key=lambda pair: -len(pair[0]))))


def _made(volume: Json, place: Path, claims: Path, namespace: str, objects: ObjectStore) -> Path:
    match volume:
        case {"emptyDir": _}:
            place.mkdir(parents=True)
        case {"hostPath": {"path": path}}:
            return Path(path)
        case {"persistentVolumeClaim": {"claimName": claim}}:
            objects.get(_CLAIMS, namespace, claim)
            place = claims / f"{namespace}-{claim}"
            place.mkdir(parents=True, exist_ok=True)
        case {"configMap": of}:
            held = objects.get(CONFIG_MAPS, namespace, of["name"])
            _write(place, of, {key: text.encode() for key, text in (held.get("data") or {}).items()})
        case {"secret": of}:
            held = objects.get(_SECRETS, namespace, of["secretName"])
            _write(place, of, {key: base64.b64decode(text) for key, text in (held.get("data") or {}).items()})
        case _:
            raise StatusError(422, "Invalid", f"no such volumes here: {sorted(volume.keys() - {'name'})}")
    return place


def _write(place: Path, of: Any, contents: dict[str, bytes]) -> None:
    place.mkdir(parents=True)
    items = of.get("items") or [{"key": key, "path": key} for key in contents]
    for item in items:
        (place / item["path"]).write_bytes(contents[item["key"]])
