"""Lineage records: their bytes, fixed; their size, bounded; and nothing else is taken for one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import draw

from wallaby.errors import EncodingError
from wallaby.lineage.graph import CHANNELS_MAX, SIDES_MAX
from wallaby.lineage.lineage import (
    COUNT_MAX,
    LINKS_MAX,
    SPLITS_MAX,
    Draw,
    LineageRecord,
    advance,
    decode,
    encode,
    fold,
)
from wallaby.lineage.names import Upstream

CHECKSUM = 0x1122334455667788
HEADER = "8877665544332211"

GOLDEN = {
    "the end of a channel": (LineageRecord(CHECKSUM, final=True), f"0101{HEADER}"),
    "a read": (LineageRecord(CHECKSUM, split=5), f"0102{HEADER}05"),
    "a read of a high split": (LineageRecord(CHECKSUM, split=300), f"0102{HEADER}ac02"),
    "a filtered read": (LineageRecord(CHECKSUM, split=5, sides=0b101), f"0106{HEADER}0505"),
    "the end of a filtered reader": (LineageRecord(CHECKSUM, sides=1, final=True), f"0105{HEADER}01"),
    "a draw from one channel": (LineageRecord(CHECKSUM, draw=draw(2, c3=4)), f"0108{HEADER}02010304"),
    "a draw after which the state was saved": (
        LineageRecord(CHECKSUM, draw=draw(2, c3=4), saved=True),
        f"0118{HEADER}02010304",
    ),
    "a draw from several": (
        LineageRecord(CHECKSUM, draw=draw(2, c3=4, c5=200)),
        f"0108{HEADER}0202030402c801",
    ),
    "a draw that satisfies a limit": (
        LineageRecord(CHECKSUM, draw=draw(0, c0=1), sides=1, final=True),
        f"010d{HEADER}0100010001",
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_the_encoding_of_version_1_never_changes(case: str) -> None:
    record, golden = GOLDEN[case]
    assert encode(record).hex() == golden
    assert decode(bytes.fromhex(golden)) == record


draws = st.builds(
    lambda link, counts: Draw(link, tuple(sorted(counts.items()))),
    st.integers(0, LINKS_MAX - 1),
    st.dictionaries(st.integers(0, CHANNELS_MAX - 1), st.integers(1, COUNT_MAX), min_size=1, max_size=20),
)
records = st.builds(
    LineageRecord,
    st.integers(0, (1 << 64) - 1),
    st.none() | st.integers(0, SPLITS_MAX - 1),
    st.none() | draws,
    st.integers(0, (1 << SIDES_MAX) - 1),
    st.booleans(),
)


@given(records)
def test_a_record_comes_back_as_it_was(record: LineageRecord) -> None:
    assert decode(encode(record)) == record


@given(records)
def test_no_record_is_larger_than_its_bound(record: LineageRecord) -> None:
    """A task reads or draws, never both."""
    record = record if record.draw is None else replace(record, split=None)
    assert len(encode(record)) <= 24 + 4 * (len(record.draw.counts) if record.draw else 0)


@given(records, records)
def test_different_records_have_different_bytes(one: LineageRecord, other: LineageRecord) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@pytest.mark.parametrize("n", [1, 2, 100, CHANNELS_MAX])
def test_the_largest_draw_from_n_channels_takes_at_most_24_plus_4n_bytes(n: int) -> None:
    counts = tuple((channel, COUNT_MAX) for channel in range(CHANNELS_MAX - n, CHANNELS_MAX))
    record = LineageRecord((1 << 64) - 1, None, Draw(LINKS_MAX - 1, counts), (1 << SIDES_MAX) - 1, True)
    assert len(encode(record)) <= 24 + 4 * n
    assert decode(encode(record)) == record


def test_a_usual_record_is_far_below_64_bytes_on_average() -> None:
    """As drawn in a stage of 16 upstream channels, a few outputs of each, and by its readers."""
    drawn = [
        LineageRecord(CHECKSUM + n, draw=Draw(3, tuple((c, 1 + n % 5) for c in range(16)))) for n in range(50)
    ]
    reads = [LineageRecord(CHECKSUM + n, split=1000 + n) for n in range(50)]
    sizes = [len(encode(record)) for record in drawn + reads]
    assert sum(sizes) / len(sizes) <= 64
    assert max(sizes) <= 24 + 4 * 16


MALFORMED = {
    "nothing": "",
    "a header cut short": f"0101{HEADER[:-2]}",
    "an unknown version": f"0201{HEADER}",
    "version zero": f"0001{HEADER}",
    "an unknown flag": f"0120{HEADER}",
    "the highest flag": f"0180{HEADER}",
    "a split that is missing": f"0102{HEADER}",
    "a split that goes on past the end": f"0102{HEADER}80",
    "a split in a longer form than needed": f"0102{HEADER}8500",
    "a split out of range": f"0102{HEADER}80808080808080808001",
    "a number without an end": f"0102{HEADER}{'ff' * 12}",
    "sides that are marked and zero": f"0106{HEADER}0500",
    "sides beyond the most that a stage can have": f"0106{HEADER}05808001",
    "a draw without a link": f"0108{HEADER}",
    "a draw from no channel": f"0108{HEADER}0200",
    "a draw that is cut short": f"0108{HEADER}02020304",
    "a draw without its count": f"0108{HEADER}020103",
    "a draw of no output": f"0108{HEADER}02010300",
    "a draw of too many outputs": f"0108{HEADER}020103808001",
    "the same channel twice": f"0108{HEADER}020203040004",
    "a channel out of range": f"0108{HEADER}0201808001" + "04",
    "a link out of range": f"0108{HEADER}808001010304",
    "more channels than there can be": f"0108{HEADER}02818001",
    "a byte too many": f"0101{HEADER}00",
    "a split where none is marked": f"0100{HEADER}05",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_bytes_are_refused(case: str) -> None:
    with pytest.raises(EncodingError):
        decode(bytes.fromhex(MALFORMED[case]))


def bytes_like_a_record() -> st.SearchStrategy[bytes]:
    """Any bytes behind a valid version, so that most get past the first check."""
    return st.builds(lambda flags, rest: bytes((1, flags)) + rest, st.integers(0, 15), st.binary(max_size=40))


@given(st.binary(max_size=64) | bytes_like_a_record())
def test_any_bytes_are_a_record_in_its_one_form_or_refused(data: bytes) -> None:
    try:
        record = decode(data)
    except EncodingError:
        return
    assert encode(record) == data


@given(records, st.data())
def test_a_record_cut_short_is_refused(record: LineageRecord, data: st.DataObject) -> None:
    whole = encode(record)
    with pytest.raises(EncodingError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize(
    "record",
    [
        LineageRecord(-1),
        LineageRecord(1 << 64),
        LineageRecord(0, split=-1),
        LineageRecord(0, split=SPLITS_MAX),
        LineageRecord(0, sides=-1),
        LineageRecord(0, sides=1 << SIDES_MAX),
    ],
    ids=str,
)
def test_a_record_out_of_range_is_not_written(record: LineageRecord) -> None:
    with pytest.raises(EncodingError):
        encode(record)


@pytest.mark.parametrize(
    ("link", "counts"),
    [
        (0, ()),
        (0, ((1, 1), (0, 1))),
        (0, ((1, 1), (1, 1))),
        (-1, ((0, 1),)),
        (LINKS_MAX, ((0, 1),)),
        (0, ((-1, 1),)),
        (0, ((CHANNELS_MAX, 1),)),
        (0, ((0, 0),)),
        (0, ((0, -1),)),
        (0, ((0, COUNT_MAX + 1),)),
    ],
    ids=str,
)
def test_an_impossible_draw_cannot_be_made(link: int, counts: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(EncodingError):
        Draw(link, counts)


def test_a_watermark_is_the_sum_of_the_draws() -> None:
    taken = [
        LineageRecord(0, draw=draw(0, c0=2, c1=1)),
        LineageRecord(0, split=3),
        LineageRecord(0, draw=draw(0, c1=4)),
        LineageRecord(0, draw=draw(1, c1=1)),
        LineageRecord(0, final=True),
    ]
    assert fold(taken) == {Upstream(0, 0): 2, Upstream(0, 1): 5, Upstream(1, 1): 1}
    assert fold([]) == {}


def test_a_watermark_moves_by_one_draw_at_a_time() -> None:
    watermark = {Upstream(0, 0): 2}
    advance(watermark, None)
    advance(watermark, draw(0, c0=3))
    assert watermark == {Upstream(0, 0): 5}


def test_records_and_draws_print_what_was_consumed() -> None:
    assert str(draw(2, c3=4, c5=1)) == "l2[c3+4 c5+1]"
    assert str(LineageRecord(0, split=5, sides=2)) == "split 5 sides 10"
    assert str(LineageRecord(0, final=True)) == "final"
    assert str(LineageRecord(0)) == "nothing"
