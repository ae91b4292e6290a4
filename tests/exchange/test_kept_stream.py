"""Outputs of a result that stays, over real Flight: what is asked for comes as it was, or what there is of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from tests.exchange.conftest import StartServer
from tests.exchange.parts import BODIES, EDGE, QUERY, numbers

from wallaby.errors import EncodingError, InternalError
from wallaby.exchange.backup import Backup
from wallaby.exchange.body import Body, size_of
from wallaby.exchange.client import PeerClient, new_token
from wallaby.exchange.kept_stream import KeptTicket, decode_sizes, encode_sizes
from wallaby.exchange.memory import ByteBudget
from wallaby.lineage.effects import Slice
from wallaby.lineage.names import ChannelName, Edge, TaskName

pytestmark = pytest.mark.timeout(60)
CHANNEL = ChannelName(2, 1)
TICKET = KeptTicket(QUERY, CHANNEL, EDGE, 0, 99, 1 << 20)


class GivenOutputs:
    """What a worker has of a channel."""

    def __init__(self, *bodies: Body) -> None:
        self.bodies = bodies
        self.asked: list[KeptTicket] = []

    def __call__(self, ticket: KeptTicket) -> tuple[Slice, ...]:
        self.asked.append(ticket)
        found = self.bodies[ticket.first : ticket.end]
        return tuple(
            Slice(TaskName(*CHANNEL, ticket.first + at), EDGE, False, size_of(body), body)
            for at, body in enumerate(found)
        )


def rows(batches: list[pa.RecordBatch]) -> list[object]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", sorted(set(BODIES) - {"no columns"}))
def test_every_kind_of_body_comes_as_it_was(kind: str, client: PeerClient, start: StartServer) -> None:
    server = start(give_out=GivenOutputs(BODIES[kind]))
    found = client.fetch(server.address, TICKET)
    assert found is not None
    count, batches = found
    assert count == 1
    expected = [batch for batch in BODIES[kind] or () if batch.num_rows]
    assert [batch.num_rows for batch in batches] == [batch.num_rows for batch in expected]
    assert str(rows(batches)) == str(rows(expected)), "as text, for which a NaN is a NaN"
    if kind != "dictionaries":
        assert [batch.schema for batch in batches] == [batch.schema for batch in expected]


def test_outputs_without_rows_count_wherever_they_are(client: PeerClient, start: StartServer) -> None:
    outputs = GivenOutputs(
        None, None, (numbers(2),), None, (numbers(1, 2), numbers(0), numbers(1, 3)), None, None
    )
    server = start(give_out=outputs)
    count, batches = client.fetch(server.address, TICKET) or (0, [])
    assert count == 7
    assert rows(batches) == [{"n": n} for n in range(4)]
    assert client.fetch(server.address, replace(TICKET, first=5)) == (2, [])
    assert client.fetch(server.address, replace(TICKET, first=7)) == (0, []), "there is no more of it here"
    assert [ticket.first for ticket in outputs.asked] == [0, 5, 7]


def test_a_stream_ends_where_the_types_change(client: PeerClient, start: StartServer) -> None:
    texts = pa.record_batch({"n": pa.array(["a", "b"])})
    server = start(give_out=GivenOutputs((numbers(1),), None, (texts,), (numbers(1),)))
    first = client.fetch(server.address, TICKET)
    assert first is not None
    assert first[0] == 2
    second = client.fetch(server.address, replace(TICKET, first=2))
    assert second is not None
    assert second[0] == 1
    assert rows(second[1]) == [{"n": "a"}, {"n": "b"}]


def test_dictionaries_come_as_plain_values_whatever_is_in_them(
    client: PeerClient, start: StartServer
) -> None:
    one, other = (
        pa.record_batch({"d": pa.array(values).dictionary_encode()}) for values in (["a", "b"], ["c", None])
    )
    server = start(give_out=GivenOutputs((one,), (other, one), (pa.record_batch({"d": pa.array(["e"])}),)))
    count, batches = client.fetch(server.address, TICKET) or (0, [])
    assert count == 3, "an output that has plain values itself has the same types"
    assert [row["d"] for row in rows(batches)] == ["a", "b", "c", None, "a", "b", "e"]  # type: ignore[index]


def test_what_breaks_off_in_the_middle_has_brought_what_was_whole(
    client: PeerClient, start: StartServer
) -> None:
    broken = numbers(3)

    class Breaking(GivenOutputs):
        def __call__(self, ticket: KeptTicket) -> tuple[Slice, ...]:
            slices = super().__call__(ticket)
            return (*slices[:1], replace(slices[1], body=_Ends((broken,))))

    server = start(give_out=Breaking((numbers(2),), (broken, broken)))
    count, batches = client.fetch(server.address, TICKET) or (0, [])
    assert count == 1
    assert rows(batches) == [{"n": 0}, {"n": 1}]


class _Ends(tuple[pa.RecordBatch, ...]):
    """A body whose last batch cannot be had."""

    __slots__ = ()

    def __getitem__(self, at: object) -> object:  # type: ignore[override]
        if at == -1:
            raise OSError("the disk is gone")
        return super().__getitem__(at)  # type: ignore[call-overload]


def test_nobody_without_the_token_gets_a_row(start: StartServer) -> None:
    server = start(give_out=GivenOutputs((numbers(1),)))
    stranger = PeerClient(new_token(), timeout_seconds=5)
    try:
        assert stranger.fetch(server.address, TICKET) is None
    finally:
        stranger.close()
    bare = fl.FlightClient(server.address)
    with pytest.raises(fl.FlightUnauthenticatedError):
        bare.do_get(fl.Ticket(TICKET.encode())).read_all()
    bare.close()


def test_a_server_that_is_gone_does_not_answer(client: PeerClient, start: StartServer) -> None:
    server = start(give_out=GivenOutputs((numbers(1),)))
    assert server.close(timeout_seconds=10)
    assert client.fetch(server.address, TICKET) is None


@pytest.mark.parametrize(
    "ticket", [b"", b"[]", b"[1,2,3]", b'[2,"q",[0,0,0,0,0,0,1,1]]', b'[1,"q",[0,0,0,0,0,5,1,1]]', b"\xff"]
)
def test_a_ticket_that_makes_no_sense_is_refused(
    ticket: bytes, client: PeerClient, start: StartServer
) -> None:
    with pytest.raises(EncodingError):
        KeptTicket.decode(ticket)

    class Odd(KeptTicket):
        def encode(self) -> bytes:
            return ticket

    server = start(give_out=GivenOutputs((numbers(1),)))
    with pytest.raises(InternalError, match="refused"):
        client.fetch(server.address, Odd(QUERY, CHANNEL, EDGE, 0, 1, 1))


def test_tickets_and_sizes_come_back_as_they_were() -> None:
    odd = KeptTicket(QUERY, ChannelName(3, 7), Edge(5, 7, 0), 11, 13, 17)
    assert KeptTicket.decode(odd.encode()) == odd
    sizes = {ChannelName(1, 0): [(3, 24), (0, 0)], ChannelName(1, 1): []}
    assert decode_sizes(encode_sizes(sizes)) == sizes
    for junk in (b"", b"{}", b"[1,[[1]]]", b"[2,[]]"):
        with pytest.raises(EncodingError):
            decode_sizes(junk)


def test_a_backup_knows_the_sizes_of_what_it_keeps_in_memory_and_on_disk(tmp_path: Path) -> None:
    backup = Backup(ByteBudget(1 << 20), (tmp_path,), 1 << 30)
    tasks = [TaskName(*CHANNEL, seq) for seq in range(3)]
    bodies: list[Body] = [(numbers(3), numbers(2)), None, (numbers(4),)]
    for task, body in zip(tasks, bodies, strict=True):
        assert backup.keep(QUERY, task, {EDGE: body}, final=False)
    expected = [(5, 40), (0, 0), (4, 32)]
    items = [(EDGE, task) for task in tasks]
    assert backup.sizes_of(QUERY, items) == expected
    backup.spill()
    assert backup.sizes_of(QUERY, items) == expected
    backup.close()
