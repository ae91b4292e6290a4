"""Storage for tests: S3 as moto's server speaks it, on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer
from pyarrow import fs

BUCKET = "wallaby"


def no_writes(bucket: str) -> dict[str, object]:
    """A policy that lets nobody write to a bucket."""
    denied = {"Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", **denied}]}


class S3Server:
    """A server with one bucket, to which anything may happen."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        self._is_running = True
        host, port = self._server.get_host_and_port()
        #: Host and port.
        self.address = f"{host}:{port}"
        self.lose_bucket()  # the servers of a process have the same buckets, one after the other
        self.make_bucket()

    @property
    def store(self) -> str:
        """The address of a directory in the bucket."""
        endpoint = self.address.replace(":", "%3A")
        options = f"endpoint_override=http%3A%2F%2F{endpoint}&region=us-east-1"
        return f"s3://someone:secret@{self.bucket}/store?{options}"

    def make_bucket(self) -> None:
        files = fs.S3FileSystem(
            access_key="someone",
            secret_key="secret",
            endpoint_override=self.address,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        files.create_dir(self.bucket)

    def lose_bucket(self) -> None:
        """With all that is in it."""
        self._ask("POST", "moto-api/reset")

    def deny_writes(self) -> None:
        self._ask("PUT", f"{self.bucket}?policy", json.dumps(no_writes(self.bucket)).encode())

    def allow_writes(self) -> None:
        self._ask("DELETE", f"{self.bucket}?policy")

    def _ask(self, method: str, path: str, body: bytes = b"") -> None:
        headers = {"Content-Type": "application/json"}  # else it is taken for a form
        with urlopen(Request(f"http://{self.address}/{path}", body, headers, method=method), timeout=60):
            pass

    def stop(self) -> None:
        if self._is_running:
            self._is_running = False
            self._server.stop()


@contextmanager
def s3_service(bucket: str = BUCKET) -> Iterator[S3Server]:
    """A server that runs as long as this does, unless it is stopped."""
    server = S3Server(bucket)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def s3_server() -> Iterator[str]:
    """Host and port of an S3 server, with an empty bucket, that runs as long as this does."""
    with s3_service() as server:
        yield server.address


@contextmanager
def s3() -> Iterator[str]:
    """The address of an empty directory on an S3 server that runs as long as this does."""
    with s3_service() as server:
        yield server.store
