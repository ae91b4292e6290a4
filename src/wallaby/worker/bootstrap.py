"""What a TaskManager is told when it starts. It travels in Spark's task closure, the user's own trust boundary."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Where the store and the head are, and the limits of one TaskManager."""

    engine: str
    gcs_url: str
    gcs_password: str = field(repr=False)
    token: str = field(repr=False)
    head_address: str = ""
    #: The address to listen on: loopback under local masters, else empty for the executor's own.
    bind: str = "127.0.0.1"
    threads: int = 0
    memory_bytes: int = 0
    lease_ms: int = 1500
    local_directory: str = ""
