"""Storage for tests: S3 as moto's server speaks it, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer
from pyarrow import fs

BUCKET = "wallaby"


@contextmanager
def s3_server() -> Iterator[str]:
    """Host and port of an S3 server, with an empty bucket, that runs as long as this does."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"{host}:{port}"
        files = fs.S3FileSystem(
            access_key="someone",
            secret_key="secret",
            endpoint_override=address,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        files.create_dir(BUCKET)
        yield address
    finally:
        server.stop()


@contextmanager
def s3() -> Iterator[str]:
    """The address of an empty directory on an S3 server that runs as long as this does."""
    with s3_server() as address:
        endpoint = address.replace(":", "%3A")
        options = f"endpoint_override=http%3A%2F%2F{endpoint}&region=us-east-1"
        yield f"s3://someone:secret@{BUCKET}/store?{options}"
