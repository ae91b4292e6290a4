"""The durable store, on a directory and on S3: objects are whole, folders go, and every failure names the store."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from tests.stores import s3, s3_service

from wallaby.errors import ConfigurationError, DurableStoreError
from wallaby.exchange import durable
from wallaby.exchange.durable import DurableStore, without_credentials


@pytest.fixture(params=["directory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableStore]:
    if request.param == "directory":
        yield DurableStore(str(tmp_path / "store"), "wallaby-1")
        return
    with s3() as address:
        yield DurableStore(address, "wallaby-1")


def parts(*texts: bytes) -> list[pa.Buffer]:
    return [pa.py_buffer(text) for text in texts]


def test_what_was_written_can_be_read_whole_or_in_part_until_it_is_removed(store: DurableStore) -> None:
    store.require_writable()
    assert store.write("q1/outputs/a", parts(b"one", b"two")) == 6
    assert store.write("q1/outputs/a", parts(b"onetwo")) == 6, "again, as by a late writer"
    assert store.read("q1/outputs/a").to_pybytes() == b"onetwo"
    assert store.read("q1/outputs/a", 2, 3).to_pybytes() == b"etw"
    store.write("q2/a", parts(b"x"))
    store.remove("q1")
    with pytest.raises(DurableStoreError, match=r"failed to read q1/outputs/a"):
        store.read("q1/outputs/a")
    assert store.read("q2/a").to_pybytes() == b"x"
    store.remove()
    store.remove()
    with pytest.raises(DurableStoreError):
        store.read("q2/a")


def test_an_object_that_is_too_short_is_an_error(store: DurableStore) -> None:
    store.write("q1/a", parts(b"abc"))
    with pytest.raises(DurableStoreError, match="3 bytes"):
        store.read("q1/a", 1, 5)


def test_nothing_unfinished_is_left_in_a_directory(tmp_path: Path) -> None:
    DurableStore(str(tmp_path), "e").write("q/a", parts(b"x"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]


@pytest.mark.parametrize("address", ["relative/path", "nowhere://bucket/x", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="not the address") as error:
        DurableStore(address, "e")
    assert error.value.fields["key"] == "spark.wallaby.faultTolerance.store"


def test_a_store_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        DurableStore(str(tmp_path / "file" / "store"), "e").require_writable()


def test_an_s3_bucket_that_is_not_there_is_refused() -> None:
    with s3() as address, pytest.raises(ConfigurationError, match="cannot be used"):
        DurableStore(address.replace("@wallaby/", "@other/"), "e").require_writable()


def test_an_s3_server_that_says_nothing_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("REQUEST_SECONDS", 0.2), ("CONNECT_SECONDS", 5.0), ("ATTEMPTS", 2)):
        monkeypatch.setattr(durable, f"S3_{limit}", value)
    asked: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    asked.append(stack.enter_context(server.accept()[0]))

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        endpoint = f"endpoint_override=http%3A%2F%2F127.0.0.1%3A{server.getsockname()[1]}"
        store = DurableStore(f"s3://someone:secret@bucket/x?region=us-east-1&{endpoint}", "e")
        with pytest.raises(DurableStoreError, match="failed to read a"):
            store.read("a")
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        assert len(asked) == 2


def test_what_an_s3_address_says_is_kept() -> None:
    store = DurableStore(
        "s3://me:mine@bucket/x?region=eu-west-9&scheme=http&endpoint_override=127.0.0.1%3A1", "e"
    )
    _, (options,) = store._files.__reduce__()
    said = {"access_key": "me", "secret_key": "mine", "region": "eu-west-9", "scheme": "http"}
    limits = {"connect_timeout": 10.0, "request_timeout": 60.0}
    assert {**options, **said, **limits, "endpoint_override": "127.0.0.1:1"} == options


@pytest.mark.parametrize("how", ["denied", "gone", "stopped"])
def test_an_s3_store_that_fails_is_an_error_that_names_it(how: str) -> None:
    with s3_service() as server:
        store = DurableStore(server.store, "wallaby-1")
        store.write("q1/a", parts(b"x"))
        {"denied": server.deny_writes, "gone": server.lose_bucket, "stopped": server.stop}[how]()
        with pytest.raises(DurableStoreError, match=r"durable store s3://wallaby/.* failed to write q1/b"):
            store.write("q1/b", parts(b"x"))
        if how == "denied":
            assert store.read("q1/a").to_pybytes() == b"x"
        else:
            with pytest.raises(DurableStoreError, match="failed to read q1/a"):
                store.read("q1/a")
        store.remove()
        store.remove("q1")


def test_credentials_in_an_address_are_not_shown() -> None:
    assert without_credentials("s3://key:secret@bucket/x?region=eu") == "s3://bucket/x?region=eu"
    assert without_credentials("/srv/a@b") == "/srv/a@b"
