"""A durable store for tests: S3 as moto's server speaks it, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer
from pyarrow import fs

BUCKET = "wallaby"


@contextmanager
def s3() -> Iterator[str]:
    """The address of an empty directory on an S3 server that runs as long as this does."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        bucket = f"s3://someone:secret@{BUCKET}"
        options = f"endpoint_override=http%3A%2F%2F{host}%3A{port}&region=us-east-1"
        files, _ = fs.FileSystem.from_uri(f"{bucket}?{options}&allow_bucket_creation=true")
        files.create_dir(BUCKET)
        yield f"{bucket}/store?{options}"
    finally:
        server.stop()
