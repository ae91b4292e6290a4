"""The outbox: what is due where, in order for each edge, and what the store is told about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.builders import W, pipeline

from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.tolerance import POLICIES

#: Two readers, r0 and r1, feed three channels: x0 and x1 on w1, x2 on w2.
GRAPH = pipeline(readers=2, executors=3)
R0, R1, X0, X1, X2 = (ChannelName(*name) for name in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2)))
ROUTES = {R0: W[0], R1: W[0], X0: W[1], X1: W[1], X2: W[2], GRAPH.collector: HEAD}
TO_X0, TO_X1, TO_X2 = (Edge(0, 0, consumer) for consumer in range(3))
FROM_R1 = Edge(0, 1, 0)
Items = tuple[tuple[Edge, TaskName], ...]


def nothing_delivered(*channels: ChannelName) -> dict[Edge, int]:
    return {edge: 0 for name in channels for edge in GRAPH.edges_from(name)}


def outbox(
    *mine: ChannelName,
    delivered: Mapping[Edge, int] | None = None,
    routes: Mapping[ChannelName, WorkerId] = ROUTES,
    base: int = 0,
) -> Outbox:
    box = Outbox(GRAPH)
    box.begin_epoch({**nothing_delivered(*mine), **(delivered or {})}, routes, mine)
    for name in mine:
        box.start(name, base)
    return box


def publish(box: Outbox, channel: ChannelName, seqs: Iterable[int], *, ended: bool = False) -> None:
    for seq in seqs:
        box.publish(TaskName(*channel, seq), ended=ended)


def due(box: Outbox, target: WorkerId, outputs_max: int = 99) -> list[tuple[Edge, int]]:
    return [(edge, task.seq) for edge, task in box.due(target, outputs_max)]


def hold(box: Outbox, target: WorkerId, outputs_max: int = 99) -> Items:
    """Deliver all that is due to one worker."""
    items = box.due(target, outputs_max)
    box.confirm(items, (True,) * len(items))
    return items


def test_nothing_is_due_before_it_is_published() -> None:
    box = outbox(R0)
    assert box.targets() == ()
    assert box.due(W[1], 99) == ()
    publish(box, R0, [0])
    assert due(box, W[1]) == [(TO_X0, 0), (TO_X1, 0)], "though it was asked for in vain"


def test_a_staged_channel_that_had_nothing_due_has_when_it_ends() -> None:
    box = Outbox(GRAPH, POLICIES["stagewise"])
    box.begin_epoch(nothing_delivered(R0), ROUTES, (R0,))
    box.start(R0, 0)
    publish(box, R0, [0])
    assert due(box, W[1]) == []
    box.end(R0)
    assert due(box, W[1]) == [(TO_X0, 0), (TO_X1, 0)]


def test_a_published_output_is_due_on_every_edge_until_it_is_held() -> None:
    box = outbox(R0)
    publish(box, R0, [0])
    assert box.targets() == (W[1], W[2])
    assert due(box, W[1]) == [(TO_X0, 0), (TO_X1, 0)]
    assert due(box, W[2]) == [(TO_X2, 0)]
    hold(box, W[1])
    assert box.targets() == (W[2],)


def test_an_item_names_the_output_by_its_task() -> None:
    box = outbox(R0)
    publish(box, R0, [0])
    assert box.due(W[2], 1) == ((TO_X2, TaskName(0, 0, 0)),)


def test_outputs_are_due_in_order_on_each_edge_and_the_edges_take_turns() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1, 2])
    assert due(box, W[1]) == [(TO_X0, 0), (TO_X1, 0), (TO_X0, 1), (TO_X1, 1), (TO_X0, 2), (TO_X1, 2)]


def test_no_more_is_due_at_once_than_asked_for() -> None:
    box = outbox(R0)
    publish(box, R0, range(100))
    assert due(box, W[1], 3) == [(TO_X0, 0), (TO_X1, 0), (TO_X0, 1)]


def test_asking_what_is_due_changes_nothing() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1])
    assert box.due(W[1], 3) == box.due(W[1], 3)


def test_what_was_refused_is_due_again() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1])
    assert box.confirm(box.due(W[2], 99), (True, False))
    assert due(box, W[2]) == [(TO_X2, 1)]


def test_nothing_counts_behind_a_gap() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1, 2])
    assert not box.confirm(box.due(W[2], 99), (False, True, True))
    assert box.delivered()[TO_X2] == 0
    assert due(box, W[2]) == [(TO_X2, 0)]


def test_an_edge_that_was_refused_is_tried_with_one_output_until_it_is_taken() -> None:
    """What a full window refuses has crossed the wire for nothing."""
    box = outbox(R0)
    publish(box, R0, range(3))
    box.confirm(box.due(W[1], 2), (True, False))
    assert due(box, W[1]) == [(TO_X0, 1), (TO_X1, 0), (TO_X0, 2)]
    assert box.due(W[1], 99, probing=False) == tuple((TO_X0, TaskName(0, 0, seq)) for seq in (1, 2))
    box.confirm(((TO_X1, TaskName(0, 0, 0)),), (True,))
    assert [task.seq for edge, task in box.due(W[1], 99, probing=False) if edge == TO_X1] == [1, 2]


def test_a_new_epoch_forgets_refusals() -> None:
    box = outbox(R0)
    publish(box, R0, range(2))
    box.confirm(box.due(W[2], 99), (False, False))
    assert box.due(W[2], 99, probing=False) == ()
    box.begin_epoch(dict(box.delivered()), ROUTES, (R0,))
    assert [task.seq for _, task in box.due(W[2], 99, probing=False)] == [0, 1]


def test_a_repeated_confirmation_counts_once() -> None:
    box = outbox(R0)
    publish(box, R0, [0])
    items = hold(box, W[2])
    assert not box.confirm(items, (True,))
    assert box.delivered()[TO_X2] == 1


def test_an_edge_that_was_refused_lets_the_others_go_first() -> None:
    """A push that is full of a closed edge's outputs would hold up the open ones."""
    box = outbox(R0)
    publish(box, R0, range(10))
    assert due(box, W[1], 1) == [(TO_X0, 0)]
    box.confirm(box.due(W[1], 1), (False,))
    assert due(box, W[1], 1) == [(TO_X1, 0)]
    box.confirm(box.due(W[1], 1), (False,))
    assert due(box, W[1], 1) == [(TO_X0, 0)]


def test_an_edge_whose_output_was_not_sent_goes_before_those_that_were_refused() -> None:
    """What has no room may wait for just that: a push that is cut after it must not begin with it again."""
    box = outbox(R0)
    publish(box, R0, range(2))
    items = box.due(W[1], 99)
    assert not box.confirm(items, (False,)), "only the first of four was sent"
    assert due(box, W[1]) == [(TO_X1, 0), (TO_X0, 0), (TO_X1, 1)]
    assert [edge for edge, _ in box.due(W[1], 99, probing=False)] == [TO_X1, TO_X1], "it was not refused"


def test_every_edge_that_is_refused_gets_to_be_the_first_of_a_push() -> None:
    box = outbox(R0, R1)
    publish(box, R0, [0])
    publish(box, R1, [0])
    edges = [edge for edge, _ in box.due(W[1], 99)]
    firsts = []
    for _ in edges:
        items = box.due(W[1], 99)
        firsts.append(items[0][0])
        assert not box.confirm(items, (False,) * len(items))
    assert sorted(firsts) == sorted(edges)
    assert len(edges) == 4


# --- epochs ------------------------------------------------------------------------------------------------


def test_a_new_epoch_starts_from_what_the_store_says() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1])
    hold(box, W[1])
    hold(box, W[2])
    box.begin_epoch({TO_X0: 0, TO_X1: 1, TO_X2: 2}, ROUTES, (R0,))
    assert due(box, W[1]) == [(TO_X0, 0), (TO_X1, 1), (TO_X0, 1)]
    assert due(box, W[2]) == []


def test_a_new_epoch_sends_to_the_new_host_of_a_consumer() -> None:
    box = outbox(R0)
    publish(box, R0, [0])
    box.begin_epoch(nothing_delivered(R0), {**ROUTES, X0: W[3]}, (R0,))
    assert box.targets() == (W[1], W[2], W[3])
    assert due(box, W[3]) == [(TO_X0, 0)]
    assert due(box, W[1]) == [(TO_X1, 0)]


def test_a_channel_that_went_to_another_host_is_forgotten() -> None:
    box = outbox(R0, R1)
    publish(box, R0, [0])
    publish(box, R1, [0], ended=True)
    box.begin_epoch(nothing_delivered(R0), ROUTES, (R0,))
    assert [task.of for _, task in box.due(W[1], 99)] == [R0, R0]
    assert box.published(R1) == 0
    assert box.report(R1) == ()


def test_a_channel_that_comes_back_has_nothing_published() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1], ended=True)
    box.begin_epoch({}, ROUTES, ())
    box.begin_epoch(nothing_delivered(R0), ROUTES, (R0,))
    box.start(R0, 0)
    assert box.targets() == ()
    publish(box, R0, [0])
    hold(box, W[1])
    hold(box, W[2])
    assert box.report_ended() == ()


def test_a_consumer_without_a_host_gets_nothing() -> None:
    routes = {name: worker for name, worker in ROUTES.items() if name != X2}
    box = outbox(R0, routes=routes)
    publish(box, R0, [0])
    assert box.targets() == (W[1],)


def test_a_moved_reader_sends_nothing_from_below_its_base() -> None:
    box = outbox(R0, delivered={TO_X0: 5, TO_X1: 2, TO_X2: 5}, base=5)
    assert box.targets() == ()
    publish(box, R0, [5])
    assert due(box, W[1]) == [(TO_X0, 5)]
    assert due(box, W[2]) == [(TO_X2, 5)]


# --- reports -----------------------------------------------------------------------------------------------


def test_deliveries_go_with_the_channels_next_commit_until_the_store_has_them() -> None:
    box = outbox(R0, R1)
    publish(box, R0, [0, 1])
    publish(box, R1, [0])
    hold(box, W[1])
    news = ((TO_X0, 2), (TO_X1, 2))
    assert box.report(R0) == news
    assert box.report(R0) == news, "not before the store has them"
    assert box.report(R1) == ((FROM_R1, 1), (Edge(0, 1, 1), 1))
    box.reported(news)
    assert box.report(R0) == ()


def test_only_what_the_store_does_not_know_is_reported() -> None:
    box = outbox(R0, delivered={TO_X0: 1, TO_X1: 1, TO_X2: 1})
    publish(box, R0, [0, 1])
    hold(box, W[2])
    assert box.report(R0) == ((TO_X2, 2),)


def test_a_late_report_never_takes_a_later_one_back() -> None:
    box = outbox(R0)
    publish(box, R0, [0, 1])
    hold(box, W[2])
    box.reported(((TO_X2, 2),))
    box.reported(((TO_X2, 1),))
    assert box.report(R0) == ()


def test_a_channel_that_goes_on_is_not_reported_as_ended() -> None:
    box = outbox(R0)
    publish(box, R0, [0])
    hold(box, W[1])
    hold(box, W[2])
    assert box.report_ended() == ()


def test_an_ended_channel_is_reported_once_it_has_nothing_more_to_send() -> None:
    box = outbox(R0, R1)
    publish(box, R0, [0])
    publish(box, R0, [1], ended=True)
    publish(box, R1, [0])
    hold(box, W[1])
    assert box.report_ended() == ()
    hold(box, W[2])
    assert box.report_ended() == ((TO_X0, 2), (TO_X1, 2), (TO_X2, 2))


def test_a_channel_that_was_closed_early_is_reported_like_one_that_is_final() -> None:
    box = outbox(R0)
    publish(box, R0, [0])
    hold(box, W[1])
    hold(box, W[2])
    box.end(R0)
    assert box.report_ended() == ((TO_X0, 1), (TO_X1, 1), (TO_X2, 1))


def test_a_consumer_without_a_host_does_not_hold_up_the_report() -> None:
    routes = {name: worker for name, worker in ROUTES.items() if name != X2}
    box = outbox(R0, routes=routes)
    publish(box, R0, [0], ended=True)
    hold(box, W[1])
    assert box.report_ended() == ((TO_X0, 1), (TO_X1, 1))


def test_an_outbox_has_news_whenever_there_may_be_more_to_send() -> None:
    box = outbox(R0)
    seen = [box.news]
    publish(box, R0, [0])
    seen.append(box.news)
    hold(box, W[1])
    box.report(R0)
    assert box.news == seen[-1]
    box.begin_epoch(nothing_delivered(R0), ROUTES, (R0,))
    seen.append(box.news)
    assert seen == sorted(set(seen))


def test_an_ended_channel_that_publishes_again_has_something_to_send_and_report_again() -> None:
    box = outbox(R0)
    publish(box, R0, [0], ended=True)
    for target in (W[1], W[2]):
        assert box.report_ended() == ()
        hold(box, target)
    news = box.report_ended()
    assert dict(news) == {TO_X0: 1, TO_X1: 1, TO_X2: 1}
    assert box.report_ended() == news, "until the store has them"
    box.reported(news)
    assert box.report_ended() == ()
    publish(box, R0, [1], ended=True)
    assert box.report_ended() == ()
    hold(box, W[1])
    hold(box, W[2])
    assert dict(box.report_ended()) == {TO_X0: 2, TO_X1: 2, TO_X2: 2}
