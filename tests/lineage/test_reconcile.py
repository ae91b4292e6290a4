"""Algorithm 2 by cases: what a loss requires, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import (
    W,
    at,
    broadcast_to_execute,
    chain,
    collect,
    execute,
    filtered_read,
    join,
    pipeline,
    read,
    snapshot,
)

from wallaby.errors import InternalError
from wallaby.lineage.graph import Link, StageGraph
from wallaby.lineage.names import ChannelName, Edge
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.snapshot import RecoveryPlan, ReRead, Snapshot
from wallaby_lab.invariants.audit import check_smallest
from wallaby_lab.invariants.resumed import resumed

A, B, C = W[:3]
S0, S1, S2, S3 = (ChannelName(stage, 0) for stage in range(4))


def plan_of(graph: StageGraph, before: Snapshot) -> RecoveryPlan:
    """The plan; on the way, that it is the smallest and that it leaves nothing to do."""
    plan = reconcile(graph, before)
    check_smallest(graph, before, plan)
    after = resumed(before, plan)
    assert reconcile(graph, after) == replace(RecoveryPlan(), rereads=after.rereads)
    return plan


# --- who is touched, and who is not -------------------------------------------------------------------------


def test_if_nobody_is_lost_nothing_changes() -> None:
    graph = chain(2)
    before = snapshot(graph, {S0: at(A, 5), S1: at(B, 3), S2: at(A, 1)}, members=(A, B))
    assert plan_of(graph, before) == RecoveryPlan()


def test_edges_that_are_behind_need_nothing_while_their_producer_lives() -> None:
    graph = chain(2)
    before = snapshot(
        graph,
        {S0: at(A, 5), S1: at(B, 3), S2: at(A, 1)},
        members=(A, B),
        delivered={Edge(0, 0, 0): 0, Edge(1, 0, 0): 2},
    )
    assert plan_of(graph, before) == RecoveryPlan()


def test_a_lost_channel_is_rewound_and_needs_all_its_inputs_again() -> None:
    graph = chain(2)
    before = snapshot(graph, {S0: at(A, 5), S1: at(A, 3), S2: at(B, 2)}, members=(A, C))
    plan = plan_of(graph, before)
    assert plan.rewound == (S2,)
    assert plan.hosts == {S2: C}
    assert plan.delivered == {Edge(1, 0, 0): 0}
    assert plan.rereads == ()


def test_inputs_that_had_arrived_unconsumed_are_delivered_again() -> None:
    """H4: the lost channel had committed nothing, so no record names what had arrived at its host."""
    graph = chain(1)
    before = snapshot(graph, {S0: at(A, 5), S1: at(B)}, members=(A, C))
    plan = plan_of(graph, before)
    assert plan.rewound == (S1,)
    assert plan.delivered == {Edge(0, 0, 0): 0}


def test_a_lost_delivery_is_made_again_by_rewinding_its_producer() -> None:
    """s1 has ended, but what it had not delivered to s2 is gone with it."""
    graph = chain(2)
    before = snapshot(
        graph,
        {S0: at(A, 5, final=True), S1: at(B, 3, final=True), S2: at(A, 1)},
        members=(A, C),
        delivered={Edge(1, 0, 0): 2},
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (S1,)
    assert plan.delivered == {Edge(0, 0, 0): 0}


def test_a_finished_channel_that_has_delivered_everything_is_left_alone() -> None:
    graph = chain(2)
    before = snapshot(
        graph, {S0: at(B, 5, final=True), S1: at(B, 3, final=True), S2: at(A, 1)}, members=(A, C)
    )
    assert plan_of(graph, before) == RecoveryPlan()


def test_a_finished_channel_whose_output_is_needed_again_is_rewound() -> None:
    """Its consumer is lost with it and starts empty, so what was delivered counts no more."""
    graph = chain(2)
    before = snapshot(
        graph, {S0: at(A, 5, final=True), S1: at(B, 3, final=True), S2: at(B, 1)}, members=(A, C)
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (S2, S1)
    assert plan.delivered == {Edge(0, 0, 0): 0, Edge(1, 0, 0): 0}


def test_a_live_channel_is_never_rewound_even_if_its_neighbours_are_lost() -> None:
    graph = chain(3)
    before = snapshot(graph, {S0: at(A, 5), S1: at(B, 3), S2: at(A, 2), S3: at(B, 1)}, members=(A, C))
    plan = plan_of(graph, before)
    assert set(plan.rewound) == {S1, S3}
    assert plan.delivered == {Edge(0, 0, 0): 0, Edge(2, 0, 0): 0}


def test_only_the_lost_channels_of_a_stage_are_rewound() -> None:
    graph = pipeline(readers=2, executors=4)
    channels = {(0, c): at(A, 5) for c in range(2)} | {(1, c): at(W[c], 2) for c in range(4)}
    plan = plan_of(graph, snapshot(graph, channels, members=(A, B, W[3])))
    assert plan.rewound == (ChannelName(1, 2),)
    assert plan.delivered == {Edge(0, 0, 2): 0, Edge(0, 1, 2): 0}


def test_a_query_without_members_cannot_be_reconciled() -> None:
    graph = chain(1)
    with pytest.raises(InternalError, match="without members"):
        reconcile(graph, snapshot(graph, {S0: at(A), S1: at(A)}, members=()))


# --- readers -----------------------------------------------------------------------------------------------


def test_a_lost_reader_is_moved_with_its_split_and_nothing_is_read_again_without_need() -> None:
    graph = chain(1)
    before = snapshot(graph, {S0: at(B, 5, split=7), S1: at(A, 2)}, members=(A, C))
    plan = plan_of(graph, before)
    assert plan.rewound == ()
    assert plan.hosts == {S0: C}
    assert plan.bases == {S0: 5}
    assert plan.rereads == ()
    assert resumed(before, plan).channels[S0].split == 7


def test_lost_reads_become_re_reads_of_what_each_edge_is_behind_on() -> None:
    graph = pipeline(executors=3)
    before = snapshot(
        graph,
        {S0: at(B, 6), **{(1, c): at(A, 1) for c in range(3)}},
        members=(A, C),
        delivered={Edge(0, 0, 0): 6, Edge(0, 0, 1): 4, Edge(0, 0, 2): 2},
    )
    plan = plan_of(graph, before)
    assert plan.bases == {S0: 6}
    assert plan.rereads == (
        ReRead(S0, 2, 4, (Edge(0, 0, 2),)),
        ReRead(S0, 4, 6, (Edge(0, 0, 1), Edge(0, 0, 2))),
    )
    assert plan.delivered == {Edge(0, 0, 1): 6, Edge(0, 0, 2): 6}


def test_a_reader_lost_with_its_consumer_is_read_again_from_the_first_output() -> None:
    graph = chain(1)
    plan = plan_of(graph, snapshot(graph, {S0: at(B, 5), S1: at(B, 2)}, members=(A, C)))
    assert plan.rewound == (S1,)
    assert plan.rereads == (ReRead(S0, 0, 5, (Edge(0, 0, 0),)),)
    assert plan.delivered == {}, "5 before, and 5 now: the re-reads bring them"


def test_a_live_reader_is_not_read_again_for_what_it_made_itself() -> None:
    graph = chain(1)
    plan = plan_of(graph, snapshot(graph, {S0: at(A, 5), S1: at(B, 2)}, members=(A, C)))
    assert plan.rereads == ()
    assert plan.delivered == {Edge(0, 0, 0): 0}


def test_below_its_base_a_live_reader_is_read_again_and_above_it_delivers() -> None:
    graph = chain(1)
    plan = plan_of(graph, snapshot(graph, {S0: at(A, 5, base=3), S1: at(B, 2)}, members=(A, C)))
    assert plan.hosts == {S1: C}
    assert plan.rereads == (ReRead(S0, 0, 3, (Edge(0, 0, 0),)),)
    assert plan.delivered == {Edge(0, 0, 0): 3}


def test_a_lost_reader_that_has_ended_is_moved_only_if_it_is_read_again() -> None:
    graph = chain(1)
    ended = {S0: at(B, 5, final=True), S1: at(A, 2)}
    assert plan_of(graph, snapshot(graph, ended, members=(A, C))) == RecoveryPlan()
    behind = snapshot(graph, ended, members=(A, C), delivered={Edge(0, 0, 0): 4})
    plan = plan_of(graph, behind)
    assert plan.hosts == {S0: C}
    assert plan.rereads == (ReRead(S0, 4, 5, (Edge(0, 0, 0),)),)


def test_re_reads_that_are_not_completed_stay_in_the_queue() -> None:
    """Claimed by the lost worker or not: what is not completed is to be done."""
    graph = pipeline(executors=2)
    channels = {S0: at(A, 6, base=6), S1: at(A, 1), (1, 1): at(A, 1)}
    edges = (Edge(0, 0, 0), Edge(0, 0, 1))
    waiting = (ReRead(S0, 2, 3, edges), ReRead(S0, 3, 5, edges))
    plan = plan_of(graph, snapshot(graph, channels, members=(A, C), rereads=waiting))
    assert plan.rereads == (ReRead(S0, 2, 5, edges),)
    assert plan.hosts == {}


def test_re_reads_for_a_consumer_that_starts_empty_are_replaced_by_all_that_it_needs() -> None:
    graph = pipeline(executors=2)
    channels = {S0: at(A, 6, base=6), S1: at(B, 1), (1, 1): at(A, 1)}
    both = (Edge(0, 0, 0), Edge(0, 0, 1))
    before = snapshot(graph, channels, members=(A, C), rereads=(ReRead(S0, 3, 5, both),))
    plan = plan_of(graph, before)
    assert plan.rereads == (
        ReRead(S0, 0, 3, both[:1]),
        ReRead(S0, 3, 5, both),
        ReRead(S0, 5, 6, both[:1]),
    )


def test_re_reads_that_nobody_needs_any_more_are_dropped_and_count_as_not_delivered() -> None:
    graph = chain(1)
    before = snapshot(
        graph,
        {S0: at(A, 6, base=6, closed=True), S1: at(A, 2, final=True)},
        members=(A,),
        rereads=(ReRead(S0, 3, 5, (Edge(0, 0, 0),)),),
    )
    plan = plan_of(graph, before)
    assert plan.rereads == ()
    assert plan.delivered == {Edge(0, 0, 0): 3}


# --- failures during a recovery ----------------------------------------------------------------------------


def test_a_replacement_that_is_lost_in_the_middle_of_its_retrace_is_rewound_again() -> None:
    graph = chain(2)
    channels = {S0: at(A, 5), S1: at(A, 3), S2: at(B, 2)}
    once = resumed(
        snapshot(graph, channels, members=(A, C)), plan_of(graph, snapshot(graph, channels, members=(A, C)))
    )
    assert once.channels[S2].host == C
    again = replace(once, members=(A, W[3]), departed={B: False, C: False}, gate_open=False)
    plan = plan_of(graph, again)
    assert plan.rewound == (S2,)
    assert plan.hosts == {S2: W[3]}


def test_a_final_channel_in_its_retrace_that_loses_its_producer_keeps_its_source() -> None:
    """s2 is final, is being retraced on a live worker because s3 needs it again, and s1 is lost now."""
    graph = chain(3)
    before = snapshot(
        graph,
        {S0: at(A, 5, final=True), S1: at(B, 4, final=True), S2: at(A, 3, final=True), S3: at(A, 1)},
        members=(A, C),
        delivered={Edge(1, 0, 0): 2, Edge(2, 0, 0): 1},
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (S1,)
    assert plan.delivered == {Edge(0, 0, 0): 0}


def test_a_final_channel_whose_retrace_is_over_does_not_need_its_producer_again() -> None:
    graph = chain(3)
    before = snapshot(
        graph,
        {S0: at(A, 5, final=True), S1: at(B, 4, final=True), S2: at(A, 3, final=True), S3: at(A, 1)},
        members=(A, C),
        delivered={Edge(1, 0, 0): 2},
    )
    assert plan_of(graph, before) == RecoveryPlan()


def test_a_second_loss_before_the_resume_is_just_a_larger_loss() -> None:
    graph = chain(3)
    channels = {S0: at(A, 5), S1: at(B, 4), S2: at(C, 3), S3: at(A, 1)}
    one = plan_of(graph, snapshot(graph, channels, members=(A, C)))
    both = plan_of(graph, snapshot(graph, channels, members=(A,)))
    assert one.rewound == (S1,)
    assert both.rewound == (S2, S1)
    assert both.hosts == {S2: A, S1: A}


def test_if_all_but_one_are_lost_the_one_gets_everything() -> None:
    graph = pipeline(readers=3, executors=3)
    channels = {(stage, c): at(W[1 + c], 4) for stage in (0, 1) for c in range(3)}
    plan = plan_of(graph, snapshot(graph, channels, members=(A,)))
    assert set(plan.hosts) == {ChannelName(*name) for name in channels}
    assert set(plan.hosts.values()) == {A}


# --- shapes of graphs --------------------------------------------------------------------------------------


def shared() -> StageGraph:
    """s1 feeds both s2 and s3, which feed the collector."""
    return StageGraph(
        (read(), execute(), execute(), execute(), collect()),
        (Link(0, 1), Link(1, 2), Link(1, 3), Link(2, 4), Link(3, 4)),
    )


def test_a_shared_stage_is_rewound_for_the_one_consumer_that_needs_it_and_not_sent_to_the_other() -> None:
    graph = shared()
    before = snapshot(
        graph,
        {S0: at(A, 5, final=True), S1: at(B, 3, final=True), S2: at(A, 1), S3: at(B, 1)},
        members=(A, C),
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (S3, S1)
    assert Edge(1, 0, 0) not in plan.delivered, "s2 has had everything"
    assert plan.delivered[Edge(2, 0, 0)] == 0


def test_a_live_shared_stage_serves_the_lost_consumer_from_its_backup() -> None:
    graph = shared()
    before = snapshot(graph, {S0: at(A, 5), S1: at(A, 3), S2: at(A, 1), S3: at(B, 1)}, members=(A, C))
    plan = plan_of(graph, before)
    assert plan.rewound == (S3,)
    assert plan.delivered == {Edge(2, 0, 0): 0}


def test_a_broadcast_goes_again_to_the_lost_consumer_alone() -> None:
    graph = broadcast_to_execute()
    before = snapshot(
        graph,
        {S0: at(A, 2, final=True), S1: at(A, 3), (2, 0): at(A, 1), (2, 1): at(B, 1)},
        members=(A, C),
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (ChannelName(2, 1),)
    assert plan.delivered == {Edge(0, 0, 1): 0, Edge(1, 0, 1): 0}


def test_a_lost_broadcast_reader_is_read_again_for_the_lost_consumer_alone() -> None:
    graph = broadcast_to_execute()
    before = snapshot(
        graph,
        {S0: at(B, 2, final=True), S1: at(A, 3), (2, 0): at(A, 1), (2, 1): at(B, 1)},
        members=(A, C),
    )
    plan = plan_of(graph, before)
    assert plan.rereads == (ReRead(S0, 0, 2, (Edge(0, 0, 1),)),)
    assert plan.bases == {S0: 2}


def test_both_sides_of_a_lost_join_are_delivered_again() -> None:
    """The build side had ended long ago; the rewound join begins with it all the same."""
    graph = join()
    before = snapshot(graph, {S0: at(A, 4, final=True), S1: at(A, 9), S2: at(B, 6)}, members=(A, C))
    plan = plan_of(graph, before)
    assert plan.rewound == (S2,)
    assert plan.delivered == {Edge(0, 0, 0): 0, Edge(1, 0, 0): 0}


def test_a_finished_build_side_that_is_lost_with_its_join_is_read_again() -> None:
    graph = join()
    before = snapshot(graph, {S0: at(B, 4, final=True), S1: at(A, 9), S2: at(B, 6)}, members=(A, C))
    plan = plan_of(graph, before)
    assert plan.rereads == (ReRead(S0, 0, 4, (Edge(0, 0, 0),)),)


# --- side inputs of readers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
def test_a_moved_reader_gets_its_side_inputs_again(required: bool) -> None:
    """Its filter's maker is lost too, and long finished: it is rewound for that."""
    graph = filtered_read(required=required)
    before = snapshot(
        graph,
        {S0: at(A, 2, final=True), S1: at(B, 2, final=True), S2: at(B, 3, split=3), S3: at(A, 1)},
        members=(A, C),
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (S1,)
    assert set(plan.hosts) == {S1, S2}
    assert plan.delivered == {Edge(0, 0, 0): 0, Edge(1, 0, 0): 0}


def test_a_reader_on_a_live_worker_needs_its_side_inputs_for_the_re_reads_of_another() -> None:
    """c0 of s2 is live and has ended; it did not get the whole filter, and may have to re-read c1's."""
    graph = filtered_read(required=True, readers=2)
    before = snapshot(
        graph,
        {
            S0: at(A, 2, final=True),
            S1: at(B, 2, final=True),
            (2, 0): at(A, 1, final=True),
            (2, 1): at(B, 3),
            S3: at(A, 1),
        },
        members=(A, C),
        delivered={Edge(1, 0, 0): 1, Edge(2, 1, 0): 2},
    )
    plan = plan_of(graph, before)
    assert plan.rereads == (ReRead(ChannelName(2, 1), 2, 3, (Edge(2, 1, 0),)),)
    assert plan.rewound == (S1,)
    assert plan.delivered[Edge(1, 0, 1)] == 0
    assert Edge(1, 0, 0) not in plan.delivered, "what it holds, it keeps"


def test_a_lost_filter_that_every_reader_has_whole_is_left_alone() -> None:
    graph = filtered_read(required=True, readers=2)
    before = snapshot(
        graph,
        {
            S0: at(A, 2, final=True),
            S1: at(B, 2, final=True),
            (2, 0): at(A, 1),
            (2, 1): at(A, 3),
            S3: at(A, 1),
        },
        members=(A, C),
    )
    assert plan_of(graph, before) == RecoveryPlan()


# --- early end ---------------------------------------------------------------------------------------------


def test_a_closed_channel_that_is_lost_is_left_alone() -> None:
    graph = chain(2)
    before = snapshot(
        graph,
        {S0: at(B, 5, closed=True), S1: at(B, 3, closed=True), S2: at(A, 2, final=True)},
        members=(A, C),
        delivered={Edge(0, 0, 0): 3, Edge(1, 0, 0): 1},
    )
    assert plan_of(graph, before) == RecoveryPlan()


def test_a_channel_that_feeds_only_ended_channels_is_closed() -> None:
    """The worker that was to close them was lost after its last commit."""
    graph = chain(3)
    before = snapshot(
        graph,
        {S0: at(A, 5), S1: at(A, 3), S2: at(C, 2), S3: at(B, 1, final=True)},
        members=(A, C),
    )
    plan = plan_of(graph, before)
    assert plan.closed == (S0, S1, S2)
    assert plan.hosts == {}


def test_a_lost_limit_is_retraced_from_closed_channels_if_its_rows_are_not_delivered() -> None:
    graph = chain(2)
    before = snapshot(
        graph,
        {S0: at(A, 5, closed=True), S1: at(B, 3, closed=True), S2: at(B, 2, final=True)},
        members=(A, C),
        delivered={Edge(2, 0, 0): 1},
    )
    plan = plan_of(graph, before)
    assert plan.rewound == (S2, S1)
    assert plan.losses == {}, "neither has a task outstanding"


def test_a_channel_with_one_open_consumer_is_not_closed() -> None:
    graph = shared()
    before = snapshot(
        graph, {S0: at(A, 5), S1: at(A, 3), S2: at(A, 1, final=True), S3: at(A, 1)}, members=(A,)
    )
    assert plan_of(graph, before).closed == ()
