"""What `serve` refuses, and what it leaves when it is closed."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.test_ends import until
from tests.spark_sessions import Engines

import wallaby
from wallaby.enabling import is_enabled
from wallaby.errors import AttachError, InvalidArgumentError


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture(autouse=True)
def _engine(engines: Engines) -> None:
    engines.get(workers=2, threads=1, split=1, leaf_minimum=0)


def test_a_port_in_use_is_named(spark: SparkSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AttachError, match=f"Port {port} of 127.0.0.1 is in use") as refused:
            wallaby.serve(spark, port=port)
    assert "0 takes any free one" in refused.value.fix
    assert not is_enabled(spark)


def test_an_application_has_one_server_at_a_time(spark: SparkSession) -> None:
    with wallaby.serve(spark, port=0) as server:
        assert server.token not in repr(server)
        assert server.token in server.url
        assert server.address == f"sc://localhost:{server.port}"
        assert is_enabled(spark)
        with pytest.raises(AttachError, match="already has a Spark Connect server"):
            wallaby.serve(spark, port=0)
    assert not is_enabled(spark)
    until(lambda: not listens(server.port))
    server.close()
    with wallaby.serve(spark, port=0, token="mine") as again:  # closing one makes room for another
        assert again.url.endswith("/;token=mine")


def test_the_token_is_not_found_in_the_settings(spark: SparkSession) -> None:
    with wallaby.serve(spark, port=0) as server:
        jsc: Any = spark.sparkContext._jsc
        assert server.token not in jsc.sc().conf().toDebugString()


@pytest.mark.parametrize("port", [-1, 65536])
def test_only_a_port_is_taken_for_one(spark: SparkSession, port: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Invalid port: {port}"):
        wallaby.serve(spark, port=port)


@pytest.mark.parametrize("token", ["", " ", "a;b", "é"])
def test_a_token_has_to_fit_into_an_address(spark: SparkSession, token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="token"):
        wallaby.serve(spark, port=0, token=token)


@pytest.mark.parametrize(
    ("address", "why"),
    [("0.0.0.0", "all interfaces"), ("::", "all interfaces"), ("here", "not an IP address")],
)
def test_an_address_is_one_of_this_host(spark: SparkSession, address: str, why: str) -> None:
    key = "spark.connect.grpc.binding.address"
    jsc: Any = spark.sparkContext._jsc
    conf = jsc.sc().conf()
    conf.set(key, address)
    try:
        with pytest.raises(AttachError, match=why):
            wallaby.serve(spark, port=0)
    finally:
        conf.remove(key)


def test_only_a_classic_session_can_serve() -> None:
    with pytest.raises(AttachError, match="Cannot attach to str"):
        wallaby.serve("spark")  # type: ignore[arg-type]
