"""The address of a TaskManager: that of its data server, and its host and process.

In the store it is one text: `grpc://10.0.0.7:43121?host=node7&pid=4711&executor=3`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs, urlencode

from wallaby.gcs.interface import WorkerLease


@dataclass(frozen=True, slots=True)
class WorkerAddress:
    """The address of one TaskManager."""

    endpoint: str
    host: str
    pid: int
    #: Spark's id of its executor; empty under `local[n]`.
    executor: str = ""

    def encode(self) -> str:
        """Encode it for the store."""
        fields = {
            "host": self.host,
            "pid": self.pid,
            **({"executor": self.executor} if self.executor else {}),
        }
        return f"{self.endpoint}?{urlencode(fields)}"

    @staticmethod
    def decode(text: str) -> WorkerAddress:
        """Decode it from the store."""
        endpoint, _, more = text.partition("?")
        fields = parse_qs(more)
        return WorkerAddress(
            endpoint,
            fields.get("host", [""])[0],
            int(fields.get("pid", ["0"])[0]),
            fields.get("executor", [""])[0],
        )


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A TaskManager as users see it.

    `state` is `live`, `draining` (it hands its work to others and leaves), or `silent` (it may be lost).
    """

    id: str
    host: str
    pid: int
    address: str
    state: Literal["live", "draining", "silent"]

    @property
    def is_live(self) -> bool:
        """Does it take part in queries?"""
        return self.state == "live"


def worker_info(lease: WorkerLease) -> WorkerInfo:
    """Describe a TaskManager for users."""
    place = WorkerAddress.decode(lease.address)
    state: Literal["live", "draining", "silent"] = "live" if lease.remaining_ms > 0 else "silent"
    return WorkerInfo(
        lease.worker, place.host, place.pid, place.endpoint, "draining" if lease.draining else state
    )
