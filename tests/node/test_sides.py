"""Side inputs have to be at a worker whole: those that there is no room for are refused, or given up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.builders import filtered_read, piece
from tests.hand import ME, Hand, assigned, held, view

from wallaby.lineage.effects import Slice
from wallaby.lineage.names import ChannelName, Edge
from wallaby.node.session import QuerySession


def beside(*, required: bool, limit: int | None = 100) -> tuple[QuerySession, ChannelName]:
    """A session that hosts a reader with a side input."""
    graph = filtered_read(required=required)
    reader = ChannelName(2, 0)
    hand = Hand(graph, sides_bytes=limit)
    hand.look(view(assigned(reader, split=0), graph=graph, routes=dict.fromkeys(graph.channels, ME)))
    return hand.session, reader


def side_pieces(session: QuerySession, sizes: Sequence[int]) -> tuple[Slice, ...]:
    edge = Edge(1, 0, 0)
    last = len(sizes) - 1
    return tuple(piece(session.graph, edge, seq, size, final=seq == last) for seq, size in enumerate(sizes))


@pytest.mark.parametrize(("sizes", "refused"), [((60, 40), False), ((60, 41), True)])
def test_build_sides_that_have_no_room_end_the_query_once(sizes: tuple[int, int], *, refused: bool) -> None:
    session, _ = beside(required=True)
    session.receive(3, ME, side_pieces(session, sizes))
    error = session.too_much_beside()
    assert (error is not None) == refused
    assert session.too_much_beside() is None
    if error is not None:
        assert "spark.wallaby.broadcast" in str(error)


def test_a_filter_that_has_no_room_is_given_up() -> None:
    session, reader = beside(required=False)
    first, second, last = side_pieces(session, (60, 50, 10))
    session.receive(3, ME, (first, second))
    assert session.too_much_beside() is None
    inbox = session.runs[reader].inbox
    assert inbox.held_bytes == 0
    assert session.receive(3, ME, (last, first)) == held(True, True)
    assert (inbox.held_bytes, inbox.is_whole(1)) == (0, False)


def test_side_inputs_have_no_limit_if_none_is_said() -> None:
    session, reader = beside(required=True, limit=None)
    session.receive(3, ME, side_pieces(session, (1000, 1000)))
    assert session.too_much_beside() is None
    assert session.runs[reader].inbox.is_whole(1)
