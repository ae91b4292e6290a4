"""The address of a TaskManager: that of its data server, and its host and process.

In the store it is one text: `grpc://10.0.0.7:43121?host=node7&pid=4711&executor=3`.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode


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
