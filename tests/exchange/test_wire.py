"""The bytes of headers and replies: fixed, and nothing else is read."""

from __future__ import annotations

import pickle  # noqa: TID251 - to show that it is refused
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaby.errors import EncodingError
from wallaby.exchange.wire import (
    HEADER_BYTES_MAX,
    SLICES_MAX,
    BodyHeader,
    PushHeader,
    SliceHeader,
    decode_push,
    decode_reply,
    encode_push,
    encode_reply,
)
from wallaby.lineage.effects import PushReply
from wallaby.lineage.names import Edge, QueryId, TaskName, WorkerId

HEADER = PushHeader(
    QueryId("q"),
    7,
    WorkerId("a"),
    WorkerId("bé"),
    (BodyHeader(2, 1000), BodyHeader(1, 8)),
    (
        SliceHeader(TaskName(2, 1, 7), Edge(3, 1, 0), False, 900, 1),
        SliceHeader(TaskName(2, 1, 7), Edge(3, 1, 1), False, 900, 1),
        SliceHeader(TaskName(2, 1, 8), Edge(3, 1, 0), False, 0, 0),
        SliceHeader(TaskName(2, 1, 9), Edge(3, 1, 0), True, 5, 2),
    ),
)
GOLDEN_HEADER = (
    "574c42590101" "0700000000000000" "010071" "010061" "030062c3a9"
    "02000000" "02000000e803000000000000" "010000000800000000000000"
    "04000000"
    "02000000010000000700000000000000" "030000000100000000000000" "00" "8403000000000000" "01000000"
    "02000000010000000700000000000000" "030000000100000001000000" "00" "8403000000000000" "01000000"
    "02000000010000000800000000000000" "030000000100000000000000" "00" "0000000000000000" "00000000"
    "02000000010000000900000000000000" "030000000100000000000000" "01" "0500000000000000" "02000000"
)  # fmt: skip


def header_with(*slices: SliceHeader, bodies: tuple[BodyHeader, ...] = ()) -> PushHeader:
    return PushHeader(QueryId("q"), 0, WorkerId("a"), WorkerId("b"), bodies, slices)


def empty(body: int = 0) -> SliceHeader:
    return SliceHeader(TaskName(0, 0, 0), Edge(0, 0, 0), False, 0, body)


def test_the_bytes_of_a_header_are_fixed() -> None:
    assert encode_push(HEADER).hex() == GOLDEN_HEADER
    assert decode_push(bytes.fromhex(GOLDEN_HEADER)) == HEADER


@pytest.mark.parametrize(
    ("reply", "golden"),
    [
        (PushReply(False), "574c425901020000000000"),
        (PushReply(True), "574c425901020100000000"),
        (PushReply(True, (True, False, True)), "574c42590102010300000005"),
        (PushReply(True, (True,) * 9), "574c425901020109000000ff01"),
    ],
)
def test_the_bytes_of_a_reply_are_fixed(reply: PushReply, golden: str) -> None:
    assert encode_reply(reply).hex() == golden
    assert decode_reply(bytes.fromhex(golden)) == reply


@given(st.lists(st.booleans(), max_size=200))
def test_every_reply_comes_back(held: list[bool]) -> None:
    reply = PushReply(True, tuple(held))
    assert decode_reply(encode_reply(reply)) == reply


@pytest.mark.parametrize("end", range(len(GOLDEN_HEADER) // 2))
def test_a_header_cut_anywhere_is_refused(end: int) -> None:
    with pytest.raises(EncodingError):
        decode_push(bytes.fromhex(GOLDEN_HEADER)[:end])


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(EncodingError, match="too many"):
        decode_push(encode_push(HEADER) + b"\0")
    with pytest.raises(EncodingError, match="too many"):
        decode_reply(encode_reply(PushReply(True)) + b"\0")


def test_another_version_is_refused() -> None:
    data = bytearray(encode_push(HEADER))
    data[4] += 1
    with pytest.raises(EncodingError, match="version"):
        decode_push(bytes(data))


def test_a_reply_is_no_header_and_a_header_is_no_reply() -> None:
    with pytest.raises(EncodingError):
        decode_push(encode_reply(PushReply(True)))
    with pytest.raises(EncodingError):
        decode_reply(encode_push(HEADER))


@pytest.mark.parametrize(
    "header",
    [
        header_with(empty(1)),
        header_with(empty(2), empty(1), bodies=(BodyHeader(1, 1), BodyHeader(1, 1))),
        header_with(empty(1), bodies=(BodyHeader(0, 1),)),
        header_with(empty(1), bodies=(BodyHeader(1, 0),)),
        header_with(empty(0), bodies=(BodyHeader(1, 1),)),
        header_with(empty(1), bodies=(BodyHeader(1, 1 << 40),)),
        header_with(*[empty()] * (SLICES_MAX + 1)),
        PushHeader(QueryId(""), 0, WorkerId("a"), WorkerId("b"), (), ()),
        PushHeader(QueryId("q" * 5000), 0, WorkerId("a"), WorkerId("b"), (), ()),
    ],
)
def test_an_impossible_header_is_not_written(header: PushHeader) -> None:
    with pytest.raises(EncodingError):
        encode_push(header)


def test_a_header_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(EncodingError, match="more than"):
        decode_push(encode_push(HEADER) + bytes(HEADER_BYTES_MAX))


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    for decode in (decode_push, decode_reply):
        with pytest.raises(EncodingError):
            decode(data)


def test_a_header_with_a_changed_byte_is_refused_or_is_another_valid_one() -> None:
    golden = bytes.fromhex(GOLDEN_HEADER)
    generator = random.Random(1)
    for place in range(len(golden)):
        data = bytearray(golden)
        data[place] ^= generator.randrange(1, 256)
        try:
            header = decode_push(bytes(data))
        except EncodingError:
            continue
        assert encode_push(header) == bytes(data)


def test_a_pickle_is_refused() -> None:
    for decode in (decode_push, decode_reply):
        with pytest.raises(EncodingError):
            decode(pickle.dumps({"query": "q"}))
