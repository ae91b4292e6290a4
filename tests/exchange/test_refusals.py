"""What a server must refuse: calls without its token, and bytes that are not a push. Nothing is executed."""

from __future__ import annotations

import logging
import pickle  # noqa: TID251 - to show that it is refused
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from tests.exchange.parts import QUERY, SENDER, TARGET, Receiver, numbers, piece

from wallaby.errors import InvalidArgumentError
from wallaby.exchange.client import PeerClient, _carry, _PushPart, new_token
from wallaby.exchange.incoming import CARRIER
from wallaby.exchange.server import FlightDataServer, bearer
from wallaby.exchange.wire import encode_push
from wallaby.lineage.effects import PushReply

pytestmark = pytest.mark.timeout(60)

Put = Callable[[fl.FlightDescriptor, list[pa.RecordBatch]], bytes | None]
PART = _PushPart(QUERY, 1, SENDER, TARGET, (piece((numbers(20), numbers(1))), piece(None, 1)))
HEADER = encode_push(PART.header)
BODY = next(PART.chunks()).column(0)[0].as_py()


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path(self.path),)  # type: ignore[return-value]


def command(data: bytes) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(data)


def _close(call: tuple[Any, Any]) -> None:
    call[0].close()


def chunk(data: bytes) -> pa.RecordBatch:
    return _carry(pa.py_buffer(data))


@pytest.fixture
def raw(server: FlightDataServer) -> Iterator[fl.FlightClient]:
    with fl.FlightClient(server.address) as client:
        yield client


@pytest.fixture
def put(raw: fl.FlightClient, token: str) -> Put:
    """Sends any stream with the right token: the reply, None if it was refused."""

    def send(descriptor: fl.FlightDescriptor, batches: list[pa.RecordBatch]) -> bytes | None:
        schema = batches[0].schema if batches else CARRIER
        options = fl.FlightCallOptions(timeout=10, headers=[(b"authorization", bearer(token))])
        try:
            writer, reader = raw.do_put(descriptor, schema, options)
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                writer.done_writing()
                answer = reader.read()
        except (fl.FlightError, pa.ArrowException):
            return None
        return answer.to_pybytes() if answer is not None else None

    return send


def test_the_same_stream_unchanged_is_taken(put: Put, receiver: Receiver) -> None:
    assert put(command(HEADER), [chunk(BODY)]) is not None
    assert len(receiver.slices) == 2


# --- tokens ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", ["w" * 43, "", "Bearer ", "x" * 100_000], ids=["other", "no", "odd", "long"]
)
def test_a_wrong_token_is_no_answer(wrong: str, server: FlightDataServer, receiver: Receiver) -> None:
    client = PeerClient(wrong)
    assert client.ping(server.address, 5) is None
    assert client.push(server.address, QUERY, 1, SENDER, TARGET, (piece(None),)) is None
    assert not receiver.calls
    client.close()


@pytest.mark.parametrize("twice", [False, True])
def test_a_missing_or_doubled_token_is_refused_on_every_call(
    twice: bool, raw: fl.FlightClient, token: str, receiver: Receiver
) -> None:
    headers = [(b"authorization", bearer(token))] * 2 if twice else []
    options = fl.FlightCallOptions(timeout=10, headers=headers)
    calls: list[Callable[[], object]] = [
        lambda: list(raw.do_action(fl.Action("ping", b""), options)),
        lambda: list(raw.list_actions(options)),
        lambda: list(raw.list_flights(options=options)),
        lambda: raw.get_flight_info(command(HEADER), options),
        lambda: raw.get_schema(command(HEADER), options),
        lambda: raw.do_get(fl.Ticket(b""), options).read_all(),
        lambda: _close(raw.do_put(command(HEADER), CARRIER, options)),
        lambda: _close(raw.do_exchange(command(HEADER), options)),
    ]
    for call in calls:
        with pytest.raises((fl.FlightUnauthenticatedError, OSError), match="token is missing or wrong"):
            call()
    assert not receiver.calls


def test_no_token_is_logged_or_told(
    raw: fl.FlightClient, token: str, caplog: pytest.LogCaptureFixture, server: FlightDataServer
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(fl.FlightUnauthenticatedError) as caught:
        list(raw.do_action(fl.Action("ping", b""), fl.FlightCallOptions(timeout=10)))
    with PeerContext(new_token()) as stranger:
        assert stranger.ping(server.address, 5) is None
    assert token not in str(caught.value) + caplog.text


def test_a_short_token_is_not_accepted_at_the_start() -> None:
    with pytest.raises(InvalidArgumentError):
        FlightDataServer("127.0.0.1", "short", TARGET, Receiver())


class PeerContext:
    """A client that ends with its block."""

    def __init__(self, token: str) -> None:
        self._client = PeerClient(token)

    def __enter__(self) -> PeerClient:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


# --- calls and bytes ---------------------------------------------------------------------------------


def test_every_other_call_is_refused(raw: fl.FlightClient, token: str, receiver: Receiver) -> None:
    options = fl.FlightCallOptions(timeout=10, headers=[(b"authorization", bearer(token))])
    calls: list[Callable[[], object]] = [
        lambda: list(raw.do_action(fl.Action("shutdown", b""), options)),
        lambda: list(raw.do_action(fl.Action("ping", pickle.dumps(1)), options)),
        lambda: list(raw.list_actions(options)),
        lambda: list(raw.list_flights(options=options)),
        lambda: raw.get_flight_info(command(HEADER), options),
        lambda: raw.get_schema(command(HEADER), options),
        lambda: raw.do_get(fl.Ticket(b""), options).read_all(),
        lambda: _close(raw.do_exchange(command(HEADER), options)),
    ]
    for call in calls:
        with pytest.raises((fl.FlightError, pa.ArrowException)):
            call()
    assert not receiver.calls


def test_streams_that_are_no_push_are_refused(put: Put, receiver: Receiver) -> None:
    missing = pa.record_batch([pa.array([None], pa.large_binary())], ["chunk"])
    empty_schema = pa.record_batch([pa.nulls(1)], ["x"]).select([])
    attempts = [
        (fl.FlightDescriptor.for_path("a", "b"), [chunk(BODY)]),
        (command(b""), [chunk(BODY)]),
        (command(HEADER[:-1]), [chunk(BODY)]),
        (command(HEADER + b"\0"), [chunk(BODY)]),
        (command(HEADER + bytes(2 << 20)), [chunk(BODY)]),
        (command(HEADER), []),
        (command(HEADER), [chunk(BODY[:-1])]),
        (command(HEADER), [chunk(BODY + b"\0")]),
        (command(HEADER), [chunk(bytes(len(BODY)))]),
        (command(HEADER), [numbers(3)]),
        (command(HEADER), [missing]),
        (command(HEADER), [missing.cast(CARRIER) if missing.schema == CARRIER else empty_schema]),
        (
            command(HEADER),
            [pa.RecordBatch.from_arrays([pa.array([b"", b""], pa.large_binary())], schema=CARRIER)],
        ),
    ]
    for descriptor, batches in attempts:
        assert put(descriptor, batches) is None
    assert not receiver.calls


def test_fuzzed_headers_and_bodies_are_refused_or_are_data(
    put: Put, receiver: Receiver, client: PeerClient, server: FlightDataServer
) -> None:
    generator = random.Random(7)
    for _ in range(150):
        header, body = bytearray(HEADER), bytearray(BODY)
        for _ in range(generator.randrange(1, 4)):
            target = header if generator.random() < 0.4 else body
            target[generator.randrange(len(target))] ^= 1 << generator.randrange(8)
        put(command(bytes(header)), [chunk(bytes(body))])
    for _ in range(50):
        assert put(command(generator.randbytes(generator.randrange(200))), [chunk(BODY)]) is None
        assert put(command(HEADER), [chunk(generator.randbytes(len(BODY)))]) is None
    assert client.push(server.address, QUERY, 1, SENDER, TARGET, (piece(None),)) == PushReply(True, (True,))


def test_pickles_are_refused_and_never_executed(put: Put, tmp_path: Path, receiver: Receiver) -> None:
    trap = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(trap))
    assert put(command(bomb), [chunk(BODY)]) is None
    assert put(command(HEADER), [chunk(bomb)]) is None
    assert put(command(HEADER), [chunk(bomb.ljust(len(BODY), b"\0"))]) is None
    assert not receiver.calls
    assert not trap.exists()
    pickle.loads(bomb)
    assert trap.exists()  # the bomb was a real one


def test_a_pickle_hidden_in_an_extension_type_is_data(
    put: Put, tmp_path: Path, client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    trap = tmp_path / "executed"
    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Bomb(trap)),
    }
    schema = pa.schema([pa.field("n", pa.int64(), metadata=metadata)])
    body = (pa.RecordBatch.from_arrays([pa.array([1])], schema=schema),)
    client.push(server.address, QUERY, 1, SENDER, TARGET, (piece(body),))
    for received in receiver.slices:
        assert isinstance(received.body, tuple)
        assert received.body[0].column(0).to_pylist() == [1]
    assert not trap.exists()


def test_a_connection_that_speaks_something_else_does_no_harm(
    server: FlightDataServer, client: PeerClient
) -> None:
    generator = random.Random(3)
    for data in (b"GET / HTTP/1.1\r\n\r\n", generator.randbytes(5000), pickle.dumps([1]), b""):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
            connection.sendall(data)
    assert client.ping(server.address, 10) == TARGET
