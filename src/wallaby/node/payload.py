"""The payload of a query for the workers: its physical plan and the constants of its execution.

Batch boundaries, byte targets and memory limits change the bytes that kernels produce, so they are constants of the
query, equal on every worker, and travel with its plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from wallaby.errors import EncodingError
from wallaby.lineage.barriers import Start
from wallaby.lineage.choose import DrawPolicy, Dynamic, Static
from wallaby.lineage.names import QueryId, Upstream
from wallaby.lineage.tolerance import LINEAGE, Tolerance
from wallaby.node.session import QuerySessionSettings
from wallaby.plan.physical import PhysicalPlan
from wallaby.plan.serialize import from_bytes, to_bytes
from wallaby.relations.storage import HdfsStorage, S3Storage, Storage

VERSION = 3
#: Side inputs may take as much as a kernel; they are estimated to take a small part of that.
SIDES_PARTS = 1


@dataclass(frozen=True, slots=True)
class QueryPayload:
    """A plan and the constants of its execution."""

    plan: PhysicalPlan
    window_bytes: int
    task_target_bytes: int
    kernel_memory_bytes: int
    #: Do workers send events to the head? See `observe`.
    observed: bool = False
    #: The fault-tolerance policy: what is recorded, and where, to survive a lost worker.
    tolerance: Tolerance = LINEAGE
    #: How many outputs a task takes; None: whatever has arrived, up to the target.
    static_outputs: int | None = None
    #: May one task take outputs of several upstream channels?
    several: bool = True
    #: How to reach remote files, including credentials, so it must not be shown.
    storages: Mapping[str, Storage] = field(default_factory=dict, repr=False)
    #: The snapshot from which it goes on after a roll-back.
    start: Start | None = None

    def session_settings(self) -> QuerySessionSettings:
        """The settings for sessions."""
        policy: DrawPolicy = Dynamic(self.task_target_bytes, self.several)
        if self.static_outputs is not None:
            policy = Static(self.static_outputs, self.several)
        sides_bytes = SIDES_PARTS * self.kernel_memory_bytes
        return QuerySessionSettings(
            policy, self.window_bytes, self.tolerance, sides_bytes=sides_bytes, start=self.start
        )

    def encode(self) -> bytes:
        """Encode the payload for the store: a line of JSON, then the plan."""
        head = {
            "version": VERSION,
            "window_bytes": self.window_bytes,
            "task_target_bytes": self.task_target_bytes,
            "kernel_memory_bytes": self.kernel_memory_bytes,
            "observed": self.observed,
            "tolerance": asdict(self.tolerance),
            "static_outputs": self.static_outputs,
            "several": self.several,
            "storages": {name: _written(storage) for name, storage in self.storages.items()},
            "start": None if self.start is None else asdict(self.start),
        }
        return json.dumps(head).encode() + b"\n" + to_bytes(self.plan)

    @staticmethod
    def decode(data: bytes) -> QueryPayload:
        """Decode a payload."""
        line, _, plan = data.partition(b"\n")
        try:
            head = json.loads(line)
            if head["version"] != VERSION:
                raise EncodingError(
                    f"A query of version {head['version']} cannot be run by version {VERSION}."
                )
            return QueryPayload(
                from_bytes(plan),
                int(head["window_bytes"]),
                int(head["task_target_bytes"]),
                int(head["kernel_memory_bytes"]),
                bool(head.get("observed", False)),
                Tolerance(**{part: bool(chosen) for part, chosen in head["tolerance"].items()}),
                None if head["static_outputs"] is None else int(head["static_outputs"]),
                bool(head["several"]),
                {str(name): _read_storage(written) for name, written in head["storages"].items()},
                _read_start(head.get("start")),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise EncodingError(f"A query's description cannot be read: {error}.") from error


def _written(storage: Storage) -> dict[str, Any]:
    return {"is": type(storage).__name__, **asdict(storage)}


def _read_start(written: dict[str, Any] | None) -> Start | None:
    if written is None:
        return None
    ended = tuple(Upstream(int(link), int(channel)) for link, channel in written["ended"])
    return Start(QueryId(written["query"]), int(written["number"]), ended)


def _read_storage(written: dict[str, Any]) -> Storage:
    fields = {name: value for name, value in written.items() if name != "is"}
    if written["is"] == S3Storage.__name__:
        return S3Storage(**fields)
    if written["is"] != HdfsStorage.__name__:
        raise ValueError(f"there is no storage {written['is']!r}")
    settings = tuple((str(key), str(value)) for key, value in fields.pop("settings"))
    return HdfsStorage(**fields, settings=settings)
