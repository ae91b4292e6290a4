"""How values are written into Redis: the bytes are fixed, and what is not such bytes is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaby.errors import EncodingError
from wallaby.gcs.encoding import (
    decode_channel,
    decode_edge,
    decode_graph,
    decode_reread,
    decode_state,
    encode_channel,
    encode_edge,
    encode_graph,
    encode_reread,
    encode_state,
    to_bytes,
    to_text,
)
from wallaby.gcs.keys import QueryKeys, queries_of
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import ChannelName, Edge, QueryId, WorkerId
from wallaby.lineage.snapshot import ChannelState, ReRead

NUMBERS = st.integers(0, 2**35)
NAMES = st.builds(ChannelName, NUMBERS, NUMBERS)
EDGES = st.builds(Edge, NUMBERS, NUMBERS, NUMBERS)
TEXTS = st.text(st.characters())
STATES = st.builds(
    ChannelState,
    TEXTS.map(WorkerId),
    NUMBERS,
    NUMBERS,
    st.booleans(),
    st.booleans(),
    st.none() | NUMBERS,
    NUMBERS,
)

GRAPH = StageGraph(
    (
        Stage(StageKind.READ, 2, 9),
        Stage(StageKind.READ, 3),
        Stage(StageKind.EXECUTE, 3),
        Stage(StageKind.COLLECT, 1),
    ),
    (
        Link(0, 1, LinkKind.SIDE, required=False, routing=Routing.BROADCAST),
        Link(0, 2),
        Link(1, 2, phase=1, routing=Routing.PASS_THROUGH),
        Link(2, 3),
    ),
)


def test_a_channel_state_has_these_bytes() -> None:
    state = ChannelState(
        WorkerId("worker é 1"), 1, 23, final=True, closed=False, split=None, losses=2, since_epoch=5
    )
    assert encode_state(state) == b"1 23 1 0 - 2 5 worker \xc3\xa9 1"


def test_a_re_read_has_these_bytes() -> None:
    reread = ReRead(ChannelName(0, 12), 3, 7, (Edge(0, 12, 1), Edge(2, 12, 0)))
    assert encode_reread(reread) == b"0.12 3 7 0.12.1 2.12.0"


def test_a_stage_graph_has_these_bytes() -> None:
    assert encode_graph(GRAPH) == (
        b'{"version":1,"stages":[["read",2,9],["read",3,0],["execute",3,0],["collect",1,0]],"links":['
        b'[0,1,"side",0,false,"broadcast"],[0,2,"main",0,true,"hash"],[1,2,"main",1,true,"pass-through"],'
        b'[2,3,"main",0,true,"hash"]]}'
    )


def test_a_stage_graph_comes_back() -> None:
    assert decode_graph(encode_graph(GRAPH)) == GRAPH


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"version":2,"stages":[],"links":[]}',
        b'{"version":1,"stages":[],"links":[]}',
        b'{"version":1,"stages":[["read",1,1],["collect",1]],"links":[]}',
        b'{"version":1,"stages":[["dance",1,1],["collect",1,0]],"links":[[0,1,"main",0,true,"hash"]]}',
    ],
)
def test_what_is_no_stage_graph_is_refused(data: bytes) -> None:
    with pytest.raises(EncodingError):
        decode_graph(data)


@pytest.mark.parametrize("data", [b"", b"1 2 3", b"1 2 0 0 x 0 host", b"a 2 0 0 - 0 host"])
def test_what_is_no_channel_state_is_refused(data: bytes) -> None:
    with pytest.raises(EncodingError):
        decode_state(data)


@pytest.mark.parametrize("data", [b"", b"0.1 2", b"0.1 2 3 4.5", b"0 1 2"])
def test_what_is_no_re_read_is_refused(data: bytes) -> None:
    with pytest.raises(EncodingError):
        decode_reread(data)


@given(STATES)
def test_a_channel_state_comes_back(state: ChannelState) -> None:
    assert decode_state(encode_state(state)) == state


@given(st.builds(ReRead, NAMES, NUMBERS, NUMBERS, st.lists(EDGES, max_size=5).map(tuple)))
def test_a_re_read_comes_back(reread: ReRead) -> None:
    assert decode_reread(encode_reread(reread)) == reread


@given(NAMES, EDGES, TEXTS)
def test_names_and_texts_come_back(name: ChannelName, edge: Edge, text: str) -> None:
    assert decode_channel(encode_channel(name)) == name
    assert decode_edge(encode_edge(edge)) == edge
    assert to_text(to_bytes(text)) == text


@given(st.text(), st.text())
def test_no_query_s_key_is_another_s(one: str, other: str) -> None:
    first, second = QueryKeys.of("e", QueryId(one)), QueryKeys.of("e", QueryId(other))
    assert (first == second) == (one == other)
    assert first.query.count(b"{") == first.query.count(b"}") == 1
    assert queries_of([first.query, second.query]) == tuple(sorted({QueryId(one), QueryId(other)}))
