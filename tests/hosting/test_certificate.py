"""The certificate of an engine: its servers are trusted, others are not. Made by Java's keytool."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from wallaby.errors import AttachError
from wallaby.exchange.client import PeerClient, new_token
from wallaby.exchange.server import FlightDataServer
from wallaby.lineage.effects import PushReply
from wallaby.lineage.names import WorkerId
from wallaby.spark.certificate import make_certificate
from wallaby.worker.main import peer_client

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def context() -> Iterator[SparkContext]:
    """A JVM without a Spark application in it."""
    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call] # PySpark does not type it
    yield cast(SparkContext, SimpleNamespace(_gateway=gateway, _jvm=gateway.jvm))
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)


def test_only_servers_with_the_engines_certificate_are_trusted(context: SparkContext) -> None:
    ours, another = make_certificate(context), make_certificate(context)
    token = new_token()
    with FlightDataServer(
        "127.0.0.1", token, WorkerId("w0-a"), lambda *_: PushReply(accepted=False), tls=ours
    ) as server:
        assert server.address.startswith("grpc+tls://127.0.0.1:")
        trusting, strange, plain = peer_client(token, ours), peer_client(token, another), PeerClient(token)
        assert trusting.ping(server.address, 10.0) == "w0-a"
        assert strange.ping(server.address, 2.0) is None
        assert plain.ping(server.address.replace("grpc+tls", "grpc"), 2.0) is None
        for client in (trusting, strange, plain):
            client.close()


def test_a_java_without_keytool_is_a_clear_refusal() -> None:
    system = SimpleNamespace(getProperty=lambda _: "/nowhere")
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    with pytest.raises(AttachError, match="keytool"):
        make_certificate(cast(SparkContext, SimpleNamespace(_jvm=jvm)))
