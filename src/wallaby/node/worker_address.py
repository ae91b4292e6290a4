"""Where a TaskManager is: the address of its data server, and the host and process that it lives in.

It stands as one text in the store: `grpc://10.0.0.7:43121?host=node7&pid=4711&executor=3`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode

from wallaby.gcs.interface import WorkerLease


@dataclass(frozen=True, slots=True)
class Place:
    """One TaskManager's whereabouts."""

    endpoint: str
    host: str
    pid: int
    #: Spark's id of its executor; empty under `local[n]`.
    executor: str = ""

    def encode(self) -> str:
        """As it stands in the store."""
        fields = {
            "host": self.host,
            "pid": self.pid,
            **({"executor": self.executor} if self.executor else {}),
        }
        return f"{self.endpoint}?{urlencode(fields)}"

    @staticmethod
    def decode(text: str) -> Place:
        """From the store."""
        endpoint, _, more = text.partition("?")
        fields = parse_qs(more)
        return Place(
            endpoint,
            fields.get("host", [""])[0],
            int(fields.get("pid", ["0"])[0]),
            fields.get("executor", [""])[0],
        )


def described(lease: WorkerLease) -> dict[str, Any]:
    """A TaskManager as users are told of it: id, host, pid, address and state."""
    place = Place.decode(lease.address)
    state = "draining" if lease.draining else "live" if lease.remaining_ms > 0 else "silent"
    return {
        "id": lease.worker,
        "host": place.host,
        "pid": place.pid,
        "address": place.endpoint,
        "state": state,
    }
