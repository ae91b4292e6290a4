"""What the head tells the readers of results that stay: where, or why not any more."""

from __future__ import annotations

import pytest
from tests.builders import W, execute, read

from wallaby.coordinator.query import Query
from wallaby.errors import EncodingError, KeptResultError, NoWorkersError
from wallaby.exchange.kept_questions import (
    decode_place,
    decode_question,
    decode_reach,
    encode_place,
    encode_question,
    encode_reach,
)
from wallaby.exchange.kept_stream import encode_sizes
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.kept import GONE_MAX, KeptResults, sizes_of
from wallaby.head.moves import KeptMoves
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.kept import KeptChannel, KeptPlace
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.directory import Directory
from wallaby.node.worker_address import WorkerAddress

GRAPH = StageGraph((read(), execute(2), Stage(StageKind.KEEP, 1)), (Link(0, 1), Link(1, 2)))
X0, X1 = ChannelName(1, 0), ChannelName(1, 1)
QUERY = QueryId("q-1")
A, B = W[:2]


def address(number: int) -> str:
    return WorkerAddress(f"grpc://127.0.0.1:{number}", "here", 1, "").encode()


@pytest.fixture
def gcs() -> MemoryGcs:
    found = MemoryGcs(MemoryStore(lambda: 0))
    for number, worker in enumerate((A, B)):
        assert found.register(worker, address(number + 1), 1_000)
    found.submit(QUERY, GRAPH, {ChannelName(0, 0): A, X0: A, X1: B, GRAPH.collector: HEAD})
    return found


@pytest.fixture
def kept(gcs: MemoryGcs) -> KeptResults:
    found = KeptResults(gcs, Directory(gcs), KeptMoves(lambda *_: None, lambda: 0.0))
    found.add(Query(QUERY, GRAPH))
    return found


def place(kept: KeptResults, channel: ChannelName = X0) -> object:
    answer = kept.answer(encode_question(QUERY, channel))
    return None if answer is None else decode_place(answer)


def test_a_reader_is_told_where_a_channel_is(kept: KeptResults) -> None:
    assert place(kept, X0) == KeptPlace(WorkerId("grpc://127.0.0.1:1"))
    assert place(kept, X1) == KeptPlace(WorkerId("grpc://127.0.0.1:2"))
    assert kept.addresses(QUERY) == {X0: "grpc://127.0.0.1:1", X1: "grpc://127.0.0.1:2"}
    assert kept.queries == (QUERY,)


def test_a_result_that_was_released_says_so_for_long(kept: KeptResults) -> None:
    kept.released(QUERY)
    error = place(kept)
    assert isinstance(error, KeptResultError)
    assert "released" in error.what
    kept.ended(QUERY, None)
    assert "released" in str(place(kept)), "that it has ended since is no news"
    assert kept.queries == ()
    for number in range(GONE_MAX):
        kept.released(QueryId(f"other {number}"))
    assert "kept no rows" in str(place(kept))


def test_a_result_that_was_lost_says_why(kept: KeptResults) -> None:
    kept.ended(QUERY, NoWorkersError("There was no worker for 60 s."))
    error = place(kept)
    assert isinstance(error, KeptResultError)
    assert "There was no worker for 60 s." in error.what


def test_what_is_released_before_it_is_whole_does_not_come_back(gcs: MemoryGcs) -> None:
    kept = KeptResults(gcs, Directory(gcs), KeptMoves(lambda *_: None, lambda: 0.0))
    kept.released(QUERY)
    kept.add(Query(QUERY, GRAPH))
    assert isinstance(place(kept), KeptResultError)


def test_a_store_that_has_forgotten_the_query_is_told_of(kept: KeptResults, gcs: MemoryGcs) -> None:
    gcs.remove(QUERY)
    assert "no longer knows" in str(place(kept))


def test_a_worker_that_does_not_answer_readers_accuses_itself(kept: KeptResults, gcs: MemoryGcs) -> None:
    def complaints() -> list[tuple[str, tuple[tuple[str, int], ...]]]:
        return [(lease.worker, lease.complaints) for lease in gcs.workers()]

    assert kept.note_reach(encode_reach(QUERY, "grpc://127.0.0.1:2", reachable=False)) == b""
    assert complaints() == [(A, ()), (B, ((B, 0),))]
    kept.note_reach(encode_reach(QUERY, "grpc://127.0.0.1:2", reachable=True))
    assert complaints() == [(A, ()), (B, ())]
    assert kept.note_reach(encode_reach(QUERY, "grpc://127.0.0.1:99", reachable=False)) == b"", (
        "nobody is there"
    )


class Peers:
    """Workers that say what they keep, some of them."""

    def __init__(self, **answers: bytes) -> None:
        self._answers = answers

    def ask(self, address: str, action: str, body: bytes, timeout_seconds: float) -> bytes | None:
        assert (action, body) == ("kept sizes", QUERY.encode())
        return self._answers.get("w" + address[-1])


def test_channels_of_workers_that_do_not_tell_have_no_sizes(gcs: MemoryGcs) -> None:
    channels = {X0: KeptChannel(A, 2, True), X1: KeptChannel(B, 3, True)}
    told = encode_sizes({X0: [(1, 8), (2, 16)]})
    directory = Directory(gcs)
    known = {X0: [(1, 8), (2, 16)]}
    assert sizes_of(QUERY, channels, Peers(w1=told), directory) == known
    half = encode_sizes({X1: [(1, 8)]})
    assert sizes_of(QUERY, channels, Peers(w1=told, w2=half), directory) == known, "it makes them again"
    assert sizes_of(QUERY, channels, Peers(w2=b"junk"), directory) == {}


@pytest.mark.parametrize("junk", [b"", b"{}", b"[]", b'{"version":2}', b'{"version":1}', b"\xff"])
def test_what_is_no_question_and_no_answer_is_an_error(junk: bytes) -> None:
    for decode in (decode_question, decode_place, decode_reach):
        with pytest.raises(EncodingError):
            decode(junk)


def test_questions_and_answers_come_back_as_they_were() -> None:
    assert decode_question(encode_question(QUERY, X1)) == (QUERY, X1)
    assert decode_reach(encode_reach(QUERY, "grpc://x:1", reachable=True)) == (QUERY, "grpc://x:1", True)
    there = KeptPlace(WorkerId("grpc://x:1"), 7)
    assert decode_place(encode_place(there)) == there
    error = decode_place(encode_place(KeptResultError("It is gone.", fix="Run it again.")))
    assert isinstance(error, KeptResultError)
    assert (error.what, error.fix) == ("It is gone.", "Run it again.")
