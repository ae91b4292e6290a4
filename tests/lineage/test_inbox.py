"""The inbox: in order and once for each upstream channel, whatever comes; a window for each edge alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import broadcast_to_execute, draw, join, piece, pipeline

from wallaby.lineage.effects import Slice
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.names import ChannelName, Edge, Upstream

GRAPH = pipeline(readers=2)
X0 = ChannelName(1, 0)
FROM_0, FROM_1 = Edge(0, 0, 0), Edge(0, 1, 0)
UP_0, UP_1 = Upstream(0, 0), Upstream(0, 1)


def inbox(window_bytes: int = 100, reserve: int = 1) -> Inbox:
    return Inbox(GRAPH, X0, window_bytes, reserve)


def slices(edge: Edge, *seqs: int, size_bytes: int = 10) -> list[Slice]:
    return [piece(GRAPH, edge, seq, size_bytes) for seq in seqs]


def offer(box: Inbox, *pieces: Slice) -> list[bool]:
    return [box.offer(one) for one in pieces]


def test_slices_are_handed_out_in_order_for_each_upstream_channel() -> None:
    box = inbox()
    offer(box, *slices(FROM_1, 0), *slices(FROM_0, 0, 1))
    taken = box.take(draw(0, c0=2, c1=1))
    assert taken == (*slices(FROM_0, 0, 1), *slices(FROM_1, 0))
    assert (box.consumed(UP_0), box.consumed(UP_1)) == (2, 1)


def test_slices_that_arrive_out_of_order_wait_for_those_before_them() -> None:
    box = inbox()
    assert offer(box, *slices(FROM_0, 2, 1)) == [True, True]
    assert box.ready(UP_0) == ()
    offer(box, *slices(FROM_0, 0))
    assert box.ready(UP_0) == (10, 10, 10)
    assert [one.task.seq for one in box.take(draw(0, c0=3))] == [0, 1, 2]


def test_it_is_short_of_what_has_neither_arrived_nor_is_known_to_be_all() -> None:
    box = inbox()
    assert box.is_short_of(0, 1, 9)
    offer(box, *slices(FROM_0, 0, 1), *slices(FROM_1, 0))
    assert box.is_short_of(0, 31, 9)
    assert not box.is_short_of(0, 30, 9)
    assert not box.is_short_of(0, 31, 2), "more than two"
    box.take(draw(0, c0=2))
    assert box.is_short_of(0, 11, 1)
    offer(box, *slices(FROM_1, 1))
    box.go_on({UP_1: 1}, {UP_0: 2})
    assert box.is_short_of(0, 11, 1), "one was consumed, of the other channel more will come"
    assert not box.is_short_of(0, 10, 1)
    offer(box, piece(GRAPH, FROM_1, 2, 10, final=True))
    assert not box.is_short_of(0, 99, 9), "there will not be more"


def test_a_slice_that_is_held_is_answered_held_and_kept_once() -> None:
    box = inbox()
    assert offer(box, *slices(FROM_0, 0, 0)) == [True, True]
    assert box.ready(UP_0) == (10,)


def test_a_slice_that_was_consumed_is_answered_held_and_dropped() -> None:
    box = inbox()
    offer(box, *slices(FROM_0, 0))
    box.take(draw(0, c0=1))
    assert offer(box, *slices(FROM_0, 0)) == [True]
    assert box.ready(UP_0) == ()
    assert box.holds(UP_0) == (1, 0, None)


def test_the_copy_that_came_first_is_the_one_that_is_kept() -> None:
    box = inbox()
    first = piece(GRAPH, FROM_0, 0, 10, body="first")
    offer(box, first, piece(GRAPH, FROM_0, 0, 10, body="second"))
    assert box.take(draw(0, c0=1)) == (first,)


@given(st.data())
def test_every_output_is_drawn_exactly_once_and_in_order_however_it_arrives(data: st.DataObject) -> None:
    """Pushes are repeated and reordered; draws of any size come in between."""
    outputs = 6
    box = inbox(window_bytes=25)
    drawn: list[int] = []
    for _ in range(200):
        if len(drawn) == outputs:
            break
        seq = data.draw(st.integers(0, outputs - 1), label="offer") if _ < 60 else len(drawn)
        box.offer(piece(GRAPH, FROM_0, seq, 10, final=seq == outputs - 1))
        if ready := len(box.ready(UP_0)):
            count = data.draw(st.integers(0, ready), label="draw") if _ < 60 else ready
            drawn += [one.task.seq for one in box.take(draw(0, c0=count))] if count else []
    assert drawn == list(range(outputs))
    assert box.is_ending(UP_0)


# --- ends --------------------------------------------------------------------------------------------------


def test_a_channel_is_ending_only_once_everything_up_to_its_final_output_is_there() -> None:
    box = inbox()
    offer(box, *slices(FROM_0, 0), piece(GRAPH, FROM_0, 2, final=True))
    assert not box.is_ending(UP_0)
    offer(box, *slices(FROM_0, 1))
    assert box.is_ending(UP_0)
    assert not box.is_ending(UP_1)


def test_a_link_is_exhausted_once_all_its_channels_are_drawn_to_their_final_output() -> None:
    box = inbox()
    offer(box, piece(GRAPH, FROM_0, 0, final=True), piece(GRAPH, FROM_1, 0, final=True))
    box.take(draw(0, c0=1))
    assert not box.is_exhausted(0)
    box.take(draw(0, c1=1))
    assert box.is_exhausted(0)


def test_a_channel_that_sent_nothing_yet_has_not_ended() -> None:
    assert not inbox().is_ending(UP_0)
    assert not inbox().is_exhausted(0)


# --- windows -----------------------------------------------------------------------------------------------


def test_what_fits_the_window_is_taken_and_more_is_refused() -> None:
    box = inbox(window_bytes=30)
    assert offer(box, *slices(FROM_0, 0, 1, 2, 3)) == [True, True, True, False]


def test_drawing_makes_room_again() -> None:
    box = inbox(window_bytes=20)
    assert offer(box, *slices(FROM_0, 0, 1, 2)) == [True, True, False]
    box.take(draw(0, c0=1))
    assert offer(box, *slices(FROM_0, 2)) == [True]


def test_a_full_edge_does_not_close_another() -> None:
    box = inbox(window_bytes=20)
    assert offer(box, *slices(FROM_0, 0, 1, 2)) == [True, True, False]
    assert offer(box, *slices(FROM_1, 0, 1, 2)) == [True, True, False]


def test_a_window_is_never_smaller_than_the_next_output() -> None:
    box = inbox(window_bytes=10)
    assert offer(box, *slices(FROM_0, 0, size_bytes=1000)) == [True]
    box.take(draw(0, c0=1))
    assert offer(box, *slices(FROM_0, 1, size_bytes=1000)) == [True]


def test_the_next_output_is_taken_even_if_later_ones_fill_the_window() -> None:
    """Re-reads come from several workers: the window may be full of what cannot be consumed yet."""
    box = inbox(window_bytes=20)
    assert offer(box, *slices(FROM_0, 1, 2, 3)) == [True, True, False]
    assert offer(box, *slices(FROM_0, 0)) == [True]
    assert box.ready(UP_0) == (10, 10, 10)


def test_a_window_is_never_smaller_than_a_static_draw() -> None:
    box = inbox(window_bytes=10, reserve=3)
    assert offer(box, *slices(FROM_0, 0, 1, 2, 3)) == [True, True, True, False]
    box.take(draw(0, c0=3))
    assert offer(box, *slices(FROM_0, 3, 4, 5, 6)) == [True, True, True, False]


def test_a_window_is_never_smaller_than_the_draw_that_a_retrace_wants() -> None:
    box = inbox(window_bytes=10)
    wanted = draw(0, c0=3, c1=1)
    assert not box.want(wanted)
    assert offer(box, *slices(FROM_0, 0, 1, 2, 3)) == [True, True, True, False]
    assert not box.want(wanted)
    offer(box, *slices(FROM_1, 0))
    assert box.want(wanted)
    assert len(box.take(wanted)) == 4


def test_what_a_retrace_wants_counts_from_what_it_has_consumed() -> None:
    box = inbox(window_bytes=10)
    offer(box, *slices(FROM_0, 0))
    box.take(draw(0, c0=1))
    assert not box.want(draw(0, c0=2))
    assert offer(box, *slices(FROM_0, 1, 2, 3)) == [True, True, False]


def test_empty_slices_pass_a_full_window() -> None:
    box = inbox(window_bytes=10)
    offer(box, *slices(FROM_0, 0))
    assert offer(box, piece(GRAPH, FROM_0, 1, 0, body=None)) == [True]


def test_the_two_links_of_a_join_have_windows_of_their_own() -> None:
    graph = join()
    box = Inbox(graph, ChannelName(2, 0), 10)
    build, probe = Edge(0, 0, 0), Edge(1, 0, 0)
    assert offer(box, piece(graph, probe, 0, 10), piece(graph, probe, 1, 10)) == [True, False]
    assert offer(box, piece(graph, build, 0, 10)) == [True]


# --- side inputs -------------------------------------------------------------------------------------------


def test_side_inputs_have_no_window_and_stay_whole() -> None:
    graph = broadcast_to_execute()
    box = Inbox(graph, ChannelName(2, 1), 10)
    pieces = [piece(graph, Edge(0, 0, 1), seq, 100, final=seq == 2) for seq in range(3)]
    assert offer(box, pieces[2], pieces[0]) == [True, True]
    assert not box.is_whole(0)
    assert offer(box, pieces[1]) == [True]
    assert box.is_whole(0)
    assert box.whole(0) == tuple(pieces) == box.whole(0)


def test_a_side_link_is_whole_only_if_every_output_of_every_channel_is_there() -> None:
    graph = pipeline(readers=2)
    box = Inbox(graph, X0, 100)
    offer(box, piece(graph, FROM_0, 0, final=True))
    assert not box.is_whole(0)
    offer(box, piece(graph, FROM_1, 0, final=True))
    assert box.is_whole(0)


# --- the end, and what checks ask ---------------------------------------------------------------------------


def test_an_ended_channel_takes_everything_and_keeps_nothing() -> None:
    box = inbox(window_bytes=10)
    offer(box, *slices(FROM_0, 0))
    box.discard()
    assert offer(box, *slices(FROM_0, 0, 1, 2, 3)) == [True] * 4
    assert box.ready(UP_0) == ()
    assert box.holds(UP_0) == (0, 0, None)


def test_an_inbox_can_say_what_it_lacks() -> None:
    box = inbox()
    offer(box, *slices(FROM_0, 0, 1, 3))
    box.take(draw(0, c0=1))
    assert box.lacks(UP_0, 6) == (2, 4, 5)
    assert box.lacks(UP_0, 2) == ()


def test_an_inbox_counts_what_is_new_and_nothing_else() -> None:
    box = inbox(window_bytes=10)
    offer(box, *slices(FROM_0, 0, 0, 1))
    assert box.arrived == 1, "one twice, one refused"
    box.take(draw(0, c0=1))
    offer(box, *slices(FROM_0, 0, 1))
    assert box.arrived == 2
    box.discard()
    offer(box, *slices(FROM_0, 2))
    assert box.arrived == 2


def test_what_would_be_held_is_what_is_held_and_nothing_is_taken_by_asking() -> None:
    box = inbox()
    offer(box, *slices(FROM_0, 0, 1))
    box.take(draw(0, c0=1))
    asked = slices(FROM_0, 0, 1, 2, 3, size_bytes=60)
    assert [box.would_hold(one) for one in asked] == [True, True, True, True]
    assert [box.would_hold(one, promised_bytes=60) for one in asked] == [True, True, False, False]
    assert [box.added_bytes(one) for one in asked] == [0, 0, 60, 60], "the first two are known"
    assert box.arrived == 2
    assert box.ready(UP_0) == (10,)
    assert offer(box, *asked) == [True, True, True, False]


def test_the_next_output_would_be_held_whatever_the_window_says() -> None:
    assert inbox(window_bytes=1).would_hold(slices(FROM_0, 0)[0], promised_bytes=1000)
