"""Pushes over real Flight: what is sent arrives as it was, or not at all."""

from __future__ import annotations

import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from tests.exchange.conftest import StartServer, listening
from tests.exchange.parts import (
    BODIES,
    QUERY,
    SENDER,
    TARGET,
    Receiver,
    assert_same,
    large,
    numbers,
    piece,
)

from wallaby.errors import InternalError
from wallaby.exchange.client import ASK_BYTES, CALL_BYTES, PeerClient, _PushPart
from wallaby.exchange.incoming import CARRIER, ServerLimits
from wallaby.exchange.lazy_body import LazyBody
from wallaby.exchange.server import FlightDataServer, ServerTls, bearer
from wallaby.exchange.wire import encode_push
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import Edge, QueryId, WorkerId

pytestmark = pytest.mark.timeout(60)


def push(client: PeerClient, server: FlightDataServer, *slices: Slice, epoch: int = 3) -> PushReply | None:
    return client.push(server.address, QUERY, epoch, SENDER, TARGET, slices)


# --- round trips -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BODIES)
def test_every_kind_of_body_arrives_as_it_was(
    kind: str, client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    sent = piece(BODIES[kind], 4, final=True)
    assert push(client, server, sent) == PushReply(True, (True,))
    assert_same(receiver.slices, (sent,))
    assert [call[:4] for call in receiver.calls] == [(QUERY, 3, SENDER, TARGET)]


def test_slices_of_different_schemas_go_in_one_push_in_order(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    sent = tuple(
        piece(body, seq, edge=Edge(link, 0, link % 2))
        for seq in range(3)
        for link, body in enumerate(BODIES.values())
    )
    assert push(client, server, *sent) == PushReply(True, (True,) * len(sent))
    assert_same(receiver.slices, sent)


def test_a_push_of_thousands_of_slices_takes_more_calls_than_one_and_gives_one_answer(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    body = (numbers(2),)
    sent = tuple(piece(body if seq % 2 else None, seq) for seq in range(5000))
    assert push(client, server, *sent) == PushReply(True, (True,) * 5000)
    assert [s.task.seq for s in receiver.slices] == list(range(5000))


def test_a_push_of_nothing_is_answered(client: PeerClient, server: FlightDataServer) -> None:
    assert push(client, server) == PushReply(True)


def test_a_broadcast_body_travels_once(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    body = (large(1 << 20),)
    sent = tuple(piece(body, edge=Edge(0, 0, consumer)) for consumer in range(8))
    assert len(_PushPart(QUERY, 1, SENDER, TARGET, sent).header.bodies) == 1
    assert push(client, server, *sent) == PushReply(True, (True,) * 8)
    assert_same(receiver.slices, sent)
    assert len({id(s.body) for s in receiver.slices}) == 1


def test_slices_are_handed_over_while_the_push_goes_on(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    server = start(limits=ServerLimits(offer_bytes=1 << 20))
    sent = tuple(piece((large(2 << 20, seq),), seq) for seq in range(4))
    assert push(client, server, *sent) == PushReply(True, (True,) * 4)
    assert len(receiver.calls) >= 4
    assert_same(receiver.slices, sent)


def test_pushes_at_the_same_time_do_not_mix(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    receiver.waits_for = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        sent = [piece((large(2 << 20, c), numbers(c)), edge=Edge(0, c, 0)) for c in range(4)]
        replies = list(pool.map(lambda one: push(client, server, one), sent))
    assert replies == [PushReply(True, (True,))] * 4
    assert_same(tuple(sorted(receiver.slices, key=lambda s: s.edge)), tuple(sent))


# --- answers -----------------------------------------------------------------------------------------


def test_the_answer_says_which_slices_found_no_room(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    receiver.full = {Edge(0, 1, 0)}
    sent = [piece((numbers(1),), edge=Edge(0, producer, 0)) for producer in range(3)]
    assert push(client, server, *sent) == PushReply(True, (True, False, True))


def test_a_refusal_in_the_middle_of_a_push_refuses_it_and_the_rest_is_dropped(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    server = start(limits=ServerLimits(offer_bytes=1))
    receiver.accepts = False
    sent = [piece((large(2 << 20),), seq) for seq in range(8)]
    assert push(client, server, *sent) == PushReply(False)
    assert len(receiver.calls) == 1


def test_what_the_incoming_budget_cannot_take_is_not_held_but_a_large_body_gets_its_turn(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    server = start(limits=ServerLimits(incoming_bytes=1000, offer_bytes=1 << 30))
    sent = [piece((large(1 << 20),), seq) for seq in range(2)] + [piece(None, 2)]
    assert push(client, server, *sent) == PushReply(True, (True, False, True))
    assert [s.task.seq for s in receiver.slices] == [0, 2]


def test_what_there_is_no_room_for_is_not_sent(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    """The header of a large push is shown first; only the bodies of what is wanted follow."""
    asked: list[tuple[Slice, ...]] = []

    def preview(
        query: QueryId, epoch: int, sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> PushReply:
        assert (query, epoch, sender, target) == (QUERY, 3, SENDER, TARGET)
        asked.append(slices)
        return PushReply(True, tuple(s.task.seq in wanted for s in slices))

    server = start(preview=preview)
    sent = [piece((large(ASK_BYTES),), seq) for seq in range(3)]
    wanted = {0, 2}
    assert push(client, server, *sent) == PushReply(True, (True, False, True))
    assert [s.task.seq for s in receiver.slices] == [0, 2]
    assert [(s.task, s.edge, s.size_bytes) for s in asked[0]] == [
        (s.task, s.edge, s.size_bytes) for s in sent
    ]
    wanted = set()
    assert push(client, server, *sent) == PushReply(True, (False, False, False))
    assert len(receiver.slices) == 2, "nothing was wanted, and something was sent"
    assert push(client, server, piece((numbers(1),), 3)) == PushReply(True, (True,))
    assert len(asked) == 2, "it was asked about a push that is as small as the question"


def test_only_what_is_wanted_is_read(client: PeerClient, start: StartServer, receiver: Receiver) -> None:
    read: list[int] = []

    def shelved(seq: int) -> Slice:
        body = (large(ASK_BYTES, seq),)

        def fetch() -> tuple[pa.RecordBatch, ...]:
            read.append(seq)
            return body

        return replace(piece(body, seq), body=LazyBody(fetch))

    server = start(preview=lambda *call: PushReply(True, tuple(s.task.seq == 1 for s in call[-1])))
    assert push(client, server, *map(shelved, range(3))) == PushReply(True, (False, True, False))
    assert read == [1]
    assert_same(receiver.slices, (piece((large(ASK_BYTES, 1),), 1),))


def test_what_is_read_once_is_sent_once(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    read: list[int] = []
    body = (large(1000),)

    def fetch() -> tuple[pa.RecordBatch, ...]:
        read.append(1)
        return body

    handle = LazyBody(fetch)
    edges = [Edge(0, 0, consumer) for consumer in range(3)]
    sent = [piece(body, 0, edge=edge) for edge in edges]
    assert push(client, server, *(replace(one, body=handle) for one in sent)) == PushReply(True, 3 * (True,))
    assert read == [1]
    assert_same(receiver.slices, tuple(sent))


def test_a_push_that_would_be_refused_as_a_whole_is_not_sent(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    server = start(preview=lambda *_: PushReply(accepted=False))
    assert push(client, server, piece((large(ASK_BYTES),), 0)) == PushReply(accepted=False)
    assert not receiver.slices


def test_a_large_push_is_held_up_to_the_first_call_that_is_not_answered(
    client: PeerClient, token: str, receiver: Receiver
) -> None:
    """Later calls would be answered: what they hold must not be taken for what the silent one carried."""
    body = (large(CALL_BYTES // 2 + 8),)
    broken_seq = 2

    def receive(
        query: QueryId, epoch: int, sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> PushReply:
        if any(s.task.seq == broken_seq for s in slices):
            raise RuntimeError("broken")
        return receiver(query, epoch, sender, target, slices)

    with closing(FlightDataServer("127.0.0.1", token, TARGET, receive)) as server:
        slices = piece(body, 0), piece((numbers(1),), 1), piece(body, 2), piece(None, 3), piece(body, 4)
        reply = push(client, server, *slices)
    assert reply == PushReply(True, (True, True)), "nothing is said of what was not answered"
    assert [s.task.seq for s in receiver.slices] == [0, 1]


# --- no answer ---------------------------------------------------------------------------------------


def test_a_server_that_is_gone_is_no_answer(client: PeerClient, start: StartServer) -> None:
    server = start()
    assert push(client, server, piece(None)) is not None
    server.close()
    assert push(client, server, piece((numbers(1),))) is None
    assert client.ping(server.address, 5) is None


def test_an_address_where_nobody_speaks_is_no_answer_in_time(token: str) -> None:
    client = PeerClient(token, timeout_seconds=0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"grpc://127.0.0.1:{silent.getsockname()[1]}"
        assert client.ping(address, 0.3) is None
        assert client.push(address, QUERY, 1, SENDER, TARGET, (piece((large(8 << 20),)),)) is None
    client.close()


def test_a_receiver_that_hangs_is_no_answer_in_time(
    token: str, server: FlightDataServer, receiver: Receiver
) -> None:
    receiver.waits_for = threading.Event()
    client = PeerClient(token, timeout_seconds=0.3)
    assert push(client, server, piece((numbers(1),))) is None
    receiver.waits_for.set()
    client.close()


def test_a_receiver_that_breaks_is_no_answer_and_the_server_goes_on(
    client: PeerClient, server: FlightDataServer, receiver: Receiver
) -> None:
    for error in (RuntimeError("broken"), ValueError("broken"), KeyError("broken")):
        receiver.error = error
        assert push(client, server, piece((numbers(1),))) is None
    receiver.error = None
    assert push(client, server, piece((numbers(1),))) == PushReply(True, (True,))


def test_a_client_that_is_closed_or_forgets_an_address(client: PeerClient, server: FlightDataServer) -> None:
    assert client.ping(server.address, 5) == TARGET
    client.forget(server.address)
    assert client.ping(server.address, 5) == TARGET
    client.close()
    assert client.ping(server.address, 5) is None
    assert push(client, server, piece(None)) is None


def test_more_streams_than_allowed_get_no_answer(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    server = start(limits=ServerLimits(streams=0))
    assert push(client, server, piece(None)) is None
    assert not receiver.calls


@pytest.mark.parametrize("chunks", range(4))
def test_a_stream_that_is_cut_delivers_whole_slices_only(
    chunks: int, token: str, start: StartServer, receiver: Receiver
) -> None:
    server = start(limits=ServerLimits(offer_bytes=1))
    sent = (piece((large((3 << 20) // 2, 1),), 0), piece((large((3 << 20) // 2, 2),), 1))
    part = _PushPart(QUERY, 1, SENDER, TARGET, sent)
    with fl.FlightClient(server.address) as raw:
        options = fl.FlightCallOptions(timeout=10, headers=[(b"authorization", bearer(token))])
        descriptor = fl.FlightDescriptor.for_command(encode_push(part.header))
        writer, reader = raw.do_put(descriptor, CARRIER, options)
        for _, chunk in zip(range(chunks), part.chunks(), strict=False):
            writer.write_batch(chunk)
        writer.done_writing()
        assert reader.read() is None
        with pytest.raises(fl.FlightError, match="ended after"):
            writer.close()
    assert_same(receiver.slices, sent[: chunks // 2])


# --- where it listens --------------------------------------------------------------------------------


def test_a_server_listens_on_its_one_address_only(start: StartServer) -> None:
    before = listening()
    server = start()
    assert listening() - before == {("127.0.0.1", server.port)}
    assert server.address == f"grpc://127.0.0.1:{server.port}"


def test_a_server_with_tls_is_reached_by_who_trusts_it(
    tmp_path: Path, token: str, start: StartServer, receiver: Receiver
) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=w"
    extra = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run([*command.split(), *extra], cwd=tmp_path, check=True, capture_output=True, timeout=30)
    certificate = (tmp_path / "certificate.pem").read_bytes()
    server = start(tls=ServerTls(certificate, (tmp_path / "key.pem").read_bytes()))
    assert server.address.startswith("grpc+tls://")
    trusting = PeerClient(token, tls_roots=certificate)
    assert push(trusting, server, piece((numbers(3),))) == PushReply(True, (True,))
    trusting.close()
    for address in (server.address, server.address.replace("+tls", "")):
        client = PeerClient(token, timeout_seconds=2)
        assert client.push(address, QUERY, 1, SENDER, TARGET, (piece(None),)) is None
        client.close()
    assert len(receiver.calls) == 1


def test_a_refused_push_is_an_error_that_names_the_address(
    client: PeerClient, start: StartServer, receiver: Receiver
) -> None:
    server = start(limits=ServerLimits(chunk_bytes=10))
    with pytest.raises(InternalError, match="refused") as caught:
        push(client, server, piece((numbers(1),)))
    assert caught.value.fields["address"] == server.address
    assert not receiver.calls
