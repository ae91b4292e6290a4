"""The stage graph: its edges, its look-ups, and every graph that it refuses."""

from __future__ import annotations

import pytest
from tests.builders import broadcast_to_execute, chain, collect, execute, filtered_read, pipeline, read, side
from tests.builders import self_join as self_join_graph

from wallaby.errors import InvalidArgumentError
from wallaby.lineage.graph import CHANNELS_MAX, SIDES_MAX, Link, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import ChannelName, Edge, Upstream


def test_every_channel_of_a_hash_link_feeds_every_channel() -> None:
    graph = pipeline(2, 3)
    assert graph.edges_from(ChannelName(0, 1)) == (Edge(0, 1, 0), Edge(0, 1, 1), Edge(0, 1, 2))
    assert graph.edges_into(ChannelName(1, 2)) == (Edge(0, 0, 2), Edge(0, 1, 2))
    assert graph.edges_from(graph.collector) == ()


def test_a_pass_through_link_joins_channels_of_the_same_number() -> None:
    graph = StageGraph(
        (read(2), execute(2), collect()), (Link(0, 1, routing=Routing.PASS_THROUGH), Link(1, 2))
    )
    assert graph.edges_from(ChannelName(0, 1)) == (Edge(0, 1, 1),)
    assert graph.upstreams(ChannelName(1, 1), 0) == (Upstream(0, 1),)


def test_an_edge_knows_the_channels_it_joins() -> None:
    graph = pipeline(2, 3)
    assert graph.producer(Edge(0, 1, 2)) == ChannelName(0, 1)
    assert graph.consumer(Edge(0, 1, 2)) == ChannelName(1, 2)
    assert graph.consumer(Edge(1, 2, 0)) == graph.collector == ChannelName(2, 0)


def test_the_two_links_of_a_self_join_have_edges_of_their_own() -> None:
    graph = self_join_graph()
    assert graph.edges_from(ChannelName(0, 0)) == (Edge(0, 0, 0), Edge(1, 0, 0))
    assert graph.phases(1) == ((0,), (1,))


def test_links_of_one_phase_are_consumed_together_and_phases_in_order() -> None:
    links = (Link(0, 3, phase=2), Link(1, 3), Link(2, 3), Link(3, 4))
    graph = StageGraph((read(), read(), read(), execute(), collect()), links)
    assert graph.phases(3) == ((1, 2), (0,))


def test_side_links_stand_apart_from_main_links() -> None:
    graph = broadcast_to_execute()
    assert graph.sides(2) == (0,)
    assert graph.phases(2) == ((1,),)
    assert graph.required_sides(2) == 1
    assert graph.edges_from(ChannelName(0, 0)) == (Edge(0, 0, 0), Edge(0, 0, 1))


def test_an_optional_side_input_is_not_required() -> None:
    assert filtered_read(required=False).required_sides(2) == 0
    assert filtered_read(required=True).required_sides(2) == 1


def test_what_may_close_above_a_channel_comes_with_all_its_consumers_and_consumers_first() -> None:
    graph = StageGraph(
        (read(), execute(), execute(), execute(), collect()),
        (Link(0, 1), Link(1, 2), Link(1, 3), Link(2, 4), Link(3, 4)),
    )
    s0, s1, s2, s3 = (ChannelName(stage, 0) for stage in range(4))
    assert graph.closable_above(s2) == ((s1, (s2, s3)), (s0, (s1,)))


def test_what_may_close_is_all_the_way_up() -> None:
    assert [name.stage for name, _ in chain(3).closable_above(ChannelName(3, 0))] == [2, 1, 0]


REFUSED: dict[str, tuple[tuple[Stage, ...], tuple[Link, ...], str]] = {
    "nothing that produces": ((collect(),), (), "needs a stage that produces"),
    "no stages": ((), (), "needs a stage that produces"),
    "no channels": ((read(0), collect()), (Link(0, 1),), "stage 0 has 0 channels"),
    "too many channels": ((read(CHANNELS_MAX + 1), collect()), (Link(0, 1),), f"not 1..{CHANNELS_MAX}"),
    "no collector": ((read(), execute()), (Link(0, 1),), "exactly the last stage collects"),
    "a collector in between": ((read(), collect(), collect()), (Link(0, 1), Link(1, 2)), "exactly the last"),
    "a collector of two channels": (
        (read(), Stage(StageKind.COLLECT, 2)),
        (Link(0, 1),),
        "collects and so has one channel",
    ),
    "negative splits": ((read(splits=-1), collect()), (Link(0, 1),), "negative number of splits"),
    "splits without a reader": (
        (read(), Stage(StageKind.EXECUTE, 1, 3), collect()),
        (Link(0, 1), Link(1, 2)),
        "stage 1 reads no splits but has 3",
    ),
    "a reader with a main input": (
        (read(), read(), collect()),
        (Link(0, 1), Link(1, 2)),
        "readers have no main",
    ),
    "nothing to execute on": ((read(), execute(), collect()), (Link(0, 2), Link(1, 2)), "others need one"),
    "only side inputs": ((read(), execute(), collect()), (side(0, 1), Link(1, 2)), "others need one"),
    "too many side inputs": (
        (read(), read(), execute(), collect()),
        (*(side(0, 2) for _ in range(SIDES_MAX + 1)), Link(1, 2), Link(2, 3)),
        f"more than {SIDES_MAX}",
    ),
    "a collector with a side input": (
        (read(), read(), collect()),
        (side(0, 2), Link(1, 2)),
        "collects and so has no side input",
    ),
    "a dead end": ((read(), read(), collect()), (Link(0, 2),), "stage 1 feeds no other stage"),
    "a link backwards": (
        (read(), execute(), execute(), collect()),
        (Link(0, 1), Link(2, 1), Link(1, 2), Link(2, 3), Link(1, 3)),
        "link 1 does not lead to a later stage",
    ),
    "a link to itself": (
        (read(), execute(), collect()),
        (Link(0, 1), Link(1, 1), Link(1, 2)),
        "link 1 does not lead to a later stage",
    ),
    "a link from nowhere": (
        (read(), execute(), collect()),
        (Link(0, 1), Link(-1, 1), Link(1, 2)),
        "link 1 does not lead to a later stage",
    ),
    "a link to nowhere": ((read(), collect()), (Link(0, 1), Link(0, 2)), "link 1 does not lead"),
    "an optional main input": (
        (read(), collect()),
        (Link(0, 1, required=False),),
        "link 0: only a side input",
    ),
    "an optional side input of an executor": (
        (read(), read(), execute(), collect()),
        (side(0, 2, required=False), Link(1, 2), Link(2, 3)),
        "link 0: only a side input of a reader is optional",
    ),
    "a pass-through to fewer channels": (
        (read(2), execute(1), collect()),
        (Link(0, 1, routing=Routing.PASS_THROUGH), Link(1, 2)),
        "link 0 passes through but its stages differ",
    ),
    "a result that stays at readers": (
        (read(), Stage(StageKind.KEEP, 1)),
        (Link(0, 1),),
        "what is kept comes from a stage that executes",
    ),
    "a keeper of two channels": (
        (read(), execute(), Stage(StageKind.KEEP, 2)),
        (Link(0, 1), Link(1, 2)),
        "collects and so has one channel",
    ),
    "a collector that draws in phases": (
        (read(), read(), collect()),
        (Link(0, 2, phase=0), Link(1, 2, phase=1)),
        "collects",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_impossible_graph_is_refused_by_name(case: str) -> None:
    stages, links, why = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match="Impossible stage graph") as caught:
        StageGraph(stages, links)
    assert why in caught.value.what
    assert caught.value.fix


def test_the_largest_stage_is_accepted() -> None:
    graph = StageGraph((read(CHANNELS_MAX), collect()), (Link(0, 1),))
    assert len(graph.channels) == CHANNELS_MAX + 1


def test_graphs_with_the_same_stages_and_links_are_equal() -> None:
    assert pipeline(2, 2) == pipeline(2, 2) != pipeline(2, 3)


def test_what_stays_is_what_leads_to_a_keeper() -> None:
    stages, links = (read(), execute(), execute()), (Link(0, 1), Link(1, 2), Link(1, 3), Link(2, 3))
    keeps = StageGraph((*stages, Stage(StageKind.KEEP, 1)), links)
    assert keeps.keeps
    assert [keeps.stays(edge) for edge in (Edge(0, 0, 0), Edge(1, 0, 0), Edge(2, 0, 0))] == [
        False,
        False,
        True,
    ]
    assert [keeps.is_kept(ChannelName(stage, 0)) for stage in range(3)] == [False, True, True]
    collects = StageGraph((*stages, collect()), links)
    assert not collects.keeps
    assert not any(map(collects.is_kept, collects.channels))
