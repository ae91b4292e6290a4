"""An inbox that aligns: what is before a barrier is consumed first, and what cannot be aligned is given up."""

from __future__ import annotations

import pytest
from tests.builders import broadcast_to_execute, draw, filtered_read, join, piece, pipeline

from wallaby.lineage.barriers import Aligned, AlignedInbox, Barrier, BesideCut, ChannelCut, Void
from wallaby.lineage.choose import Dynamic, Finish, Static, choose
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, Upstream

TWO = pipeline(readers=2)
X0 = ChannelName(1, 0)
A, B = Edge(0, 0, 0), Edge(0, 1, 0)
JOIN = join()
BUILD, PROBE = Edge(0, 0, 0), Edge(1, 0, 0)


def box_of(graph: StageGraph = TWO, channel: ChannelName = X0) -> AlignedInbox:
    return AlignedInbox(graph, channel, 10**6)


def arrive(box: AlignedInbox, graph: StageGraph, edge: Edge, *bodies: object, first: int = 0) -> None:
    """Outputs on an edge, one after the other: rows, a barrier's number (negative: void), or the end."""
    for seq, body in enumerate(bodies, first):
        sent = Barrier(abs(body), void=body < 0) if isinstance(body, int) else body
        assert box.offer(piece(graph, edge, seq, final=body == "end", body=sent))


def test_nothing_behind_a_barrier_is_drawn_before_the_other_input_has_reached_it() -> None:
    box = box_of()
    arrive(box, TWO, A, "rows", 1, "more")
    assert box.alignment() is None
    assert choose(TWO, X0, box, Dynamic(100), eager=True) == draw(0, c0=1)
    box.take(draw(0, c0=1))
    assert choose(TWO, X0, box, Dynamic(100), eager=True) is None
    arrive(box, TWO, B, 1)
    assert box.alignment() == Aligned(1)
    box.pass_barrier(1)
    assert choose(TWO, X0, box, Dynamic(100), eager=True) == draw(0, c0=1)


def test_a_channel_is_aligned_only_when_it_has_consumed_what_is_before_the_barrier() -> None:
    box = box_of()
    arrive(box, TWO, A, 1)
    arrive(box, TWO, B, "rows", 1)
    assert box.alignment() is None
    box.take(draw(0, c1=1))
    assert box.alignment() == Aligned(1)


def test_an_input_that_has_ended_has_no_barriers_to_wait_for() -> None:
    box = box_of()
    arrive(box, TWO, A, "end")
    arrive(box, TWO, B, 1)
    assert box.alignment() is None
    box.take(draw(0, c0=1))
    assert box.alignment() == Aligned(1)
    assert box.cut(1, "state", None) == ChannelCut("state", ended=(Upstream(0, 0),))


def test_a_fixed_draw_is_smaller_before_a_barrier_than_it_would_wait_to_be() -> None:
    graph = pipeline()
    box = box_of(graph)
    arrive(box, graph, A, "rows", 1, "rows", "rows")
    assert choose(graph, X0, box, Static(2), eager=False) == draw(0, c0=1)
    box.take(draw(0, c0=1))
    box.pass_barrier(1)
    assert choose(graph, X0, box, Static(2), eager=False) == draw(0, c0=2)


def test_a_snapshot_that_an_input_has_skipped_is_given_up_without_waiting() -> None:
    box = box_of()
    arrive(box, TWO, A, 1, 2, "rows")
    arrive(box, TWO, B, 2)
    assert box.alignment() == Aligned(2)
    box.pass_barrier(2)
    assert box.ready(Upstream(0, 0)) == (1,)


def test_a_void_barrier_gives_the_snapshot_up_for_everybody_behind_it() -> None:
    box = box_of()
    arrive(box, TWO, A, -3)
    assert box.alignment() == Void(3)
    box.pass_barrier(3)
    arrive(box, TWO, B, 3, "rows")
    assert box.alignment() is None
    assert box.ready(Upstream(0, 1)) == (1,)


def test_a_join_gives_a_snapshot_up_if_rows_to_probe_with_stand_before_its_barrier() -> None:
    channel = ChannelName(2, 0)
    box = box_of(JOIN, channel)
    arrive(box, JOIN, BUILD, 1, "rows")
    assert box.alignment() is None, "the probe side may still send its barrier first"
    arrive(box, JOIN, PROBE, "rows", 1)
    assert box.alignment() == Void(1)
    other = box_of(JOIN, channel)
    arrive(other, JOIN, PROBE, "rows", 1)
    assert other.alignment() is None, "the build side can still end, and then the rows are consumed"
    arrive(other, JOIN, BUILD, "end")
    other.take(draw(0, c0=1))
    other.take(draw(1, c0=1))
    assert other.alignment() == Aligned(1)


def test_a_broadcast_that_is_still_coming_is_cut_as_far_as_it_has_come() -> None:
    graph, channel = broadcast_to_execute(), ChannelName(2, 0)
    side, main = Edge(0, 0, 0), Edge(1, 0, 0)
    box = box_of(graph, channel)
    arrive(box, graph, side, "first", 1, "second", "end")
    arrive(box, graph, main, 1, "rows")
    assert box.alignment() == Aligned(1)
    (found,) = box.cut(1, None, None).beside
    assert found == (Upstream(0, 0), BesideCut((piece(graph, side, 0, body="first"),), ended=False))
    again = box_of(graph, channel)
    again.go_on_from(box.cut(1, None, None))
    assert not again.is_whole(0)
    arrive(again, graph, side, "second", "end")
    assert again.is_whole(0)
    assert [each.body for each in again.whole(0)] == ["first", "second", "end"]


def test_a_snapshot_whose_barrier_is_in_a_broadcast_is_given_up_when_that_is_used() -> None:
    graph, channel = broadcast_to_execute(), ChannelName(2, 0)
    box = box_of(graph, channel)
    arrive(box, graph, Edge(0, 0, 0), "first", 1, "end")
    arrive(box, graph, Edge(1, 0, 0), "rows", 1)
    assert box.alignment() is None
    assert box.use([0]) == Void(1)
    box.pass_barrier(1)
    box.take(draw(1, c0=1))
    assert box.alignment() is None
    arrive(box, graph, Edge(1, 0, 0), 2, first=2)
    assert box.alignment() == Aligned(2)
    assert box.use([0]) is None, "only the first use gives something up"
    (found,) = box.cut(2, None, None).beside
    assert ([each.body for each in found[1].slices], found[1].ended) == (["first", "end"], True)


@pytest.mark.parametrize("required", [False, True])
def test_a_reader_begins_no_snapshot_while_a_side_input_is_coming(required: bool) -> None:
    graph, reader = filtered_read(required=required), ChannelName(2, 0)
    box = box_of(graph, reader)
    assert not box.may_begin()
    arrive(box, graph, Edge(1, 0, 0), "keys", 4)
    assert not box.may_begin()
    assert box.alignment() == Aligned(4)
    box.pass_barrier(4)
    assert not box.may_begin()
    arrive(box, graph, Edge(1, 0, 0), "end", first=2)
    assert box.may_begin()


def test_an_optional_side_input_that_was_given_up_stays_so_after_a_roll_back() -> None:
    graph, reader = filtered_read(required=False), ChannelName(2, 0)
    box = box_of(graph, reader)
    arrive(box, graph, Edge(1, 0, 0), "keys")
    box.give_up(1)
    assert box.may_begin()
    again = box_of(graph, reader)
    again.go_on_from(box.cut(1, None, 0))
    arrive(again, graph, Edge(1, 0, 0), "end")
    assert not again.is_whole(1)


def test_what_had_ended_at_the_snapshot_sends_nothing_any_more() -> None:
    box = box_of()
    box.go_on_from(ChannelCut(None, ended=(Upstream(0, 0), Upstream(0, 1))))
    assert isinstance(choose(TWO, X0, box, Dynamic(1), eager=False), Finish)
