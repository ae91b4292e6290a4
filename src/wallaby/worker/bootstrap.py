"""The facts that TaskManagers and readers start with, sent in Spark's closures: the user's trust boundary."""

from __future__ import annotations

from dataclasses import dataclass, field

#: The name in the certificate that all data servers of an engine share; their addresses are not in it.
TLS_NAME = "wallaby"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The addresses of the control store and the head, and the limits of one TaskManager."""

    engine: str
    gcs_url: str = field(repr=False)
    gcs_password: str = field(repr=False)
    token: str = field(repr=False)
    #: The incarnation of the control store with which the engine began; a TaskManager that finds another one tells the
    #: head and ends.
    gcs_incarnation: str = ""
    #: A file with the trusted certificates for an external Redis; empty for the system's.
    gcs_tls_ca: str = ""
    head_address: str = ""
    #: The address of the head's lifelines: `host:port`.
    lifeline_address: str = ""
    #: The address to listen on: loopback under local masters; empty for the executor's own address.
    bind: str = "127.0.0.1"
    threads: int = 0
    memory_bytes: int = 0
    #: The allowance on top of that, for code and allocators.
    memory_allowance_bytes: int = 300 << 20
    lease_ms: int = 1250
    local_directory: str = ""
    #: How many TaskManagers of this engine one executor may host; 0: any number.
    per_executor: int = 0
    #: Is the master local? Then there is no other place for the successor of a TaskManager that ended by itself.
    is_local: bool = False
    #: The driver's version of Wallaby, which must be the executors' too.
    version: str = ""
    #: With Spark's encryption: the certificate of all data servers and its key, both PEM.
    tls_certificate: bytes = b""
    tls_key: bytes = field(default=b"", repr=False)
    #: The durable store (whose address may hold credentials), this engine's folder in it, and how often states are
    #: saved.
    durable_store: str = field(default="", repr=False)
    durable_folder: str = ""
    checkpoint_seconds: float = 0.0
    #: The directory of fault orders; empty outside tests of recovery.
    chaos_directory: str = ""


@dataclass(frozen=True, slots=True)
class ReaderAccess:
    """What a Spark task needs to read kept rows: the head's address and the engine's token."""

    head_address: str
    token: str = field(repr=False)
    #: With Spark's encryption on, the certificate of all data servers.
    tls_certificate: bytes = b""
