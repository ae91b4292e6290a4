"""Input choice: what each policy takes of what has arrived, and what it waits for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import broadcast_to_execute, draw, filtered_read, join, piece, pipeline, self_join

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.choose import DrawPolicy, Dynamic, Finish, Static, choose, sides_ready, whole_sides
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.lineage import COUNT_MAX, Draw
from wallaby.lineage.names import ChannelName, Edge, Upstream

GRAPH = pipeline(readers=3)
X0 = ChannelName(1, 0)


def inbox(
    *lanes: list[int], ended: bool = False, graph: StageGraph = GRAPH, channel: ChannelName = X0
) -> Inbox:
    """What has arrived over link 0: the sizes of the slices of each upstream channel."""
    box = Inbox(graph, channel, 10**9)
    for producer, sizes in enumerate(lanes):
        fill(box, graph, Edge(0, producer, channel.channel), sizes, ended=ended)
    return box


def fill(box: Inbox, graph: StageGraph, edge: Edge, sizes: list[int], *, ended: bool = False) -> None:
    for seq, size_bytes in enumerate(sizes):
        assert box.offer(piece(graph, edge, seq, size_bytes, final=ended and seq == len(sizes) - 1))


def chosen(box: Inbox, policy: DrawPolicy, *, eager: bool = False) -> Draw | Finish | None:
    choice = choose(GRAPH, X0, box, policy, eager=eager)
    assert choose(GRAPH, X0, box, policy, eager=eager) == choice, "choosing changes nothing"
    return choice


# --- dynamic -----------------------------------------------------------------------------------------------


def test_dynamic_takes_all_that_fits_its_target_from_several_channels() -> None:
    assert chosen(inbox([40, 40], [20], [50]), Dynamic(100)) == draw(0, c0=2, c1=1)


def test_dynamic_passes_over_a_channel_whose_next_slice_does_not_fit() -> None:
    assert chosen(inbox([40], [80], [60]), Dynamic(100)) == draw(0, c0=1, c2=1)


def test_dynamic_never_passes_over_a_slice_within_a_channel() -> None:
    assert chosen(inbox([40, 80, 60]), Dynamic(100), eager=True) == draw(0, c0=1)


def test_dynamic_takes_a_slice_that_is_larger_than_its_target() -> None:
    assert chosen(inbox([500, 500]), Dynamic(100)) == draw(0, c0=1)


def test_dynamic_waits_for_more_while_that_may_come() -> None:
    assert chosen(inbox([40], [20]), Dynamic(100)) is None


def test_dynamic_takes_less_than_its_target_if_there_is_nothing_better_to_do() -> None:
    assert chosen(inbox([40], [20]), Dynamic(100), eager=True) == draw(0, c0=1, c1=1)


def test_dynamic_takes_less_than_its_target_at_the_end() -> None:
    assert chosen(inbox([40], [20], [1], ended=True), Dynamic(100)) == draw(0, c0=1, c1=1, c2=1)


def test_dynamic_does_not_wait_for_what_would_not_fit_anyway() -> None:
    """Slices of 60 and 60 never add up to 100: waiting cannot make this draw any larger."""
    assert chosen(inbox([60, 60], [60], [60]), Dynamic(100)) == draw(0, c0=1)


def test_dynamic_waits_although_one_of_several_channels_has_ended() -> None:
    box = inbox([40], [20])
    fill(box, GRAPH, Edge(0, 2, 0), [1], ended=True)
    assert chosen(box, Dynamic(100)) is None


def test_dynamic_of_one_channel_takes_the_channel_that_has_most() -> None:
    assert chosen(inbox([10, 20], [90, 20], [40]), Dynamic(100, several=False), eager=True) == draw(0, c1=1)


def test_dynamic_of_one_channel_waits_until_one_has_enough() -> None:
    one = Dynamic(100, several=False)
    assert chosen(inbox([60], [60], [60]), one) is None
    assert chosen(inbox([60], [60, 40], [60]), one) == draw(0, c1=2)


def test_dynamic_of_one_channel_takes_the_rest_of_one_that_has_ended() -> None:
    box = inbox([60])
    fill(box, GRAPH, Edge(0, 2, 0), [10], ended=True)
    assert chosen(box, Dynamic(100, several=False)) == draw(0, c2=1)


def test_dynamic_draws_no_more_outputs_than_a_record_can_count() -> None:
    box = inbox([0] * (COUNT_MAX + 5))
    assert choose(GRAPH, X0, box, Dynamic(100), eager=True) == draw(0, c0=COUNT_MAX)


# --- static ------------------------------------------------------------------------------------------------


def test_static_takes_exactly_its_number_of_outputs_from_several_channels() -> None:
    assert chosen(inbox([9, 9], [9, 9], [9]), Static(3)) == draw(0, c0=2, c1=1)


def test_static_waits_for_its_number_whoever_is_eager() -> None:
    assert chosen(inbox([9, 9]), Static(3), eager=True) is None


def test_static_takes_fewer_only_at_the_end_of_all_channels() -> None:
    box = inbox([9], [9], ended=True)
    assert chosen(box, Static(3)) is None
    fill(box, GRAPH, Edge(0, 2, 0), [9], ended=True)
    assert chosen(box, Static(5)) == draw(0, c0=1, c1=1, c2=1)


def test_static_of_one_channel_takes_its_number_from_one() -> None:
    one = Static(2, several=False)
    assert chosen(inbox([9], [9], [9]), one) is None
    assert chosen(inbox([9], [9, 9, 9], [9]), one) == draw(0, c1=2)


def test_static_of_one_channel_takes_the_rest_of_one_that_has_ended() -> None:
    box = inbox([9])
    fill(box, GRAPH, Edge(0, 1, 0), [9], ended=True)
    assert chosen(box, Static(2, several=False)) == draw(0, c1=1)


# --- for every policy --------------------------------------------------------------------------------------

POLICIES = [Dynamic(100), Dynamic(100, several=False), Static(2), Static(2, several=False)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_nothing_is_chosen_where_nothing_has_arrived(policy: DrawPolicy) -> None:
    assert chosen(inbox(), policy, eager=True) is None


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_empty_slices_are_drawn_and_counted_like_others(policy: DrawPolicy) -> None:
    box = inbox([0, 0], [0, 0], [0, 0], ended=True)
    taken = 0
    while isinstance(choice := chosen(box, policy), Draw):
        taken += len(box.take(choice))
    assert taken == 6
    assert choice == Finish()


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_channel_finishes_only_when_all_upstream_channels_are_drawn_to_their_end(
    policy: DrawPolicy,
) -> None:
    box = inbox([9], [9], ended=True)
    while isinstance(choice := chosen(box, policy, eager=True), Draw):
        box.take(choice)
    assert choice is None, "channel 2 has not ended"
    fill(box, GRAPH, Edge(0, 2, 0), [9], ended=True)
    last = chosen(box, policy, eager=True)
    assert isinstance(last, Draw)
    box.take(last)
    if isinstance(choice := chosen(box, policy), Draw):
        box.take(choice)
    assert chosen(box, policy) == Finish()


@given(
    st.lists(st.lists(st.integers(0, 150), max_size=5), min_size=3, max_size=3),
    st.sampled_from(POLICIES),
    st.booleans(),
    st.booleans(),
)
def test_a_draw_is_always_of_what_has_arrived_and_within_its_limit(
    lanes: list[list[int]], policy: DrawPolicy, ended: bool, eager: bool
) -> None:
    box = inbox(*lanes, ended=ended)
    choice = chosen(box, policy, eager=eager)
    if not isinstance(choice, Draw):
        return
    assert policy.several or len(choice.counts) == 1
    taken = [lanes[channel][:count] for channel, count in choice.counts]
    assert all(len(sizes) == count for sizes, (_, count) in zip(taken, choice.counts, strict=True))
    sizes = [size for of_channel in taken for size in of_channel]
    if isinstance(policy, Static):
        assert len(sizes) <= policy.outputs
    else:
        assert sum(sizes) <= policy.target_bytes or len([size for size in sizes if size]) == 1


# --- phases and side inputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("graph", [join(), self_join()], ids=["join", "self join"])
def test_the_build_side_is_drawn_to_its_end_before_the_probe_side_begins(
    graph: StageGraph, policy: DrawPolicy
) -> None:
    channel = ChannelName(len(graph.stages) - 2, 0)
    box = Inbox(graph, channel, 10**9)
    build, probe = Edge(0, 0, 0), Edge(1, 0, 0)
    fill(box, graph, probe, [100, 100, 100], ended=True)
    assert choose(graph, channel, box, policy, eager=True) is None, "the build side has not begun"
    fill(box, graph, build, [100])
    order: list[int] = []
    while isinstance(choice := choose(graph, channel, box, policy, eager=True), Draw):
        order += [one.edge.link for one in box.take(choice)]
    assert 1 not in order, "the build side has not ended"
    assert box.offer(piece(graph, build, 1, 100, final=True))
    while isinstance(choice := choose(graph, channel, box, policy, eager=True), Draw):
        order += [one.edge.link for one in box.take(choice)]
    assert order == [0, 0, 1, 1, 1]
    assert choice == Finish()


def test_links_of_one_phase_are_drawn_as_they_come() -> None:
    stages = (Stage(StageKind.READ, 1, 1),) * 2 + (Stage(StageKind.EXECUTE, 1), Stage(StageKind.COLLECT, 1))
    union = StageGraph(stages, (Link(0, 2), Link(1, 2), Link(2, 3)))
    box = Inbox(union, ChannelName(2, 0), 10**9)
    fill(box, union, Edge(1, 0, 0), [100])
    assert choose(union, ChannelName(2, 0), box, Dynamic(100), eager=False) == draw(1, c0=1)


def test_no_task_is_chosen_before_its_required_side_inputs_are_whole() -> None:
    graph, channel = broadcast_to_execute(), ChannelName(2, 0)
    box = Inbox(graph, channel, 10**9)
    fill(box, graph, Edge(1, 0, 0), [100])
    fill(box, graph, Edge(0, 0, 0), [1])
    assert choose(graph, channel, box, Dynamic(100), eager=True) is None
    box.offer(piece(graph, Edge(0, 0, 0), 1, final=True))
    assert choose(graph, channel, box, Dynamic(100), eager=True) == draw(1, c0=1)
    assert box.consumed(Upstream(0, 0)) == 0, "side inputs are used, not drawn"


def test_a_read_waits_for_a_required_side_input_and_names_it() -> None:
    graph, reader = filtered_read(required=True), ChannelName(2, 0)
    box = Inbox(graph, reader, 10**9)
    assert not sides_ready(graph, 2, box)
    box.offer(piece(graph, Edge(1, 0, 0), 0, final=True))
    assert sides_ready(graph, 2, box)
    assert whole_sides(graph, 2, box) == 1


def test_a_read_does_not_wait_for_an_optional_side_input_but_names_it_once_it_is_whole() -> None:
    graph, reader = filtered_read(required=False), ChannelName(2, 0)
    box = Inbox(graph, reader, 10**9)
    assert sides_ready(graph, 2, box)
    assert whole_sides(graph, 2, box) == 0
    box.offer(piece(graph, Edge(1, 0, 0), 0))
    assert whole_sides(graph, 2, box) == 0
    box.offer(piece(graph, Edge(1, 0, 0), 1, final=True))
    assert whole_sides(graph, 2, box) == 1


# --- bad policies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target_bytes", [0, -1])
def test_a_byte_target_must_be_positive(target_bytes: int) -> None:
    with pytest.raises(InvalidArgumentError, match="byte target"):
        Dynamic(target_bytes)


@pytest.mark.parametrize("outputs", [0, -1, COUNT_MAX + 1])
def test_a_static_draw_must_fit_a_record(outputs: int) -> None:
    with pytest.raises(InvalidArgumentError, match="static draw"):
        Static(outputs)
