"""Algorithm 2 and the members: draining, spreading, counting losses; and that plans are small and final."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import (
    W,
    at,
    chain,
    collect,
    execute,
    filtered_read,
    join,
    pipeline,
    read,
    self_join,
    snapshot,
)

from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import HEAD, ChannelName, Edge, WorkerId
from wallaby.lineage.reconcile import drained, reconcile
from wallaby.lineage.snapshot import ChannelState, RecoveryPlan, ReRead, Snapshot
from wallaby_lab.invariants.audit import Audit
from wallaby_lab.invariants.resumed import resumed

A, B, C = W[:3]
S0, S1, S2 = (ChannelName(stage, 0) for stage in range(3))


# --- draining ----------------------------------------------------------------------------------------------


def test_the_unfinished_channels_of_a_draining_worker_move_while_it_still_serves() -> None:
    graph = chain(2)
    before = snapshot(graph, {S0: at(A, 5), S1: at(B, 3), S2: at(A, 1)}, members=(A, C), draining=(B,))
    plan = reconcile(graph, before)
    assert plan.rewound == (S1,)
    assert plan.hosts == {S1: C}
    assert plan.losses == {}, "nobody was lost"


def test_a_draining_worker_keeps_its_ended_channels_and_delivers_from_them() -> None:
    graph = chain(2)
    before = snapshot(
        graph,
        {S0: at(A, 5, final=True), S1: at(B, 3, final=True), S2: at(A, 1)},
        members=(A, C),
        draining=(B,),
        delivered={Edge(1, 0, 0): 0},
    )
    assert reconcile(graph, before) == RecoveryPlan()


def test_nothing_is_given_to_a_draining_worker() -> None:
    graph = pipeline(readers=4, executors=4)
    channels = {(stage, c): at(W[3]) for stage in (0, 1) for c in range(4)}
    plan = reconcile(graph, snapshot(graph, channels, members=(A, B), draining=(C,)))
    assert set(plan.hosts.values()) == {A, B}


def test_a_draining_worker_may_go_once_nobody_needs_what_it_keeps() -> None:
    graph = chain(2)
    channels = {S0: at(A, 5, final=True), S1: at(B, 3, final=True), S2: at(A, 1)}
    behind = snapshot(graph, channels, members=(A,), draining=(B,), delivered={Edge(1, 0, 0): 2})
    served = snapshot(graph, channels, members=(A,), draining=(B,))
    assert not drained(graph, behind, B)
    assert drained(graph, served, B)


def test_a_draining_worker_may_not_go_while_it_has_an_unfinished_channel() -> None:
    graph = chain(1)
    before = snapshot(graph, {S0: at(A, 5), S1: at(B, 3)}, members=(A,), draining=(B,))
    assert not drained(graph, before, B)


def test_a_draining_worker_may_not_go_while_its_reads_are_needed() -> None:
    graph = chain(1)
    channels = {S0: at(B, 5, final=True), S1: at(A, 3)}
    assert not drained(
        graph, snapshot(graph, channels, members=(A,), draining=(B,), delivered={Edge(0, 0, 0): 4}), B
    )
    assert drained(graph, snapshot(graph, channels, members=(A,), draining=(B,)), B)


def test_one_draining_worker_does_not_hold_up_another() -> None:
    graph = chain(2)
    channels = {S0: at(C, 5, final=True), S1: at(B, 3, final=True), S2: at(A, 1)}
    before = snapshot(graph, channels, members=(A,), draining=(B, C), delivered={Edge(1, 0, 0): 2})
    assert not drained(graph, before, B)
    assert drained(graph, before, C)


def test_without_members_nobody_may_go() -> None:
    graph = chain(1)
    assert not drained(graph, snapshot(graph, {S0: at(B), S1: at(B)}, members=(), draining=(B,)), B)


# --- spreading ---------------------------------------------------------------------------------------------


def test_the_lost_channels_of_one_stage_go_to_different_workers() -> None:
    graph = pipeline(readers=4, executors=8)
    channels = {(0, c): at(W[c]) for c in range(4)} | {
        (1, c): at(W[4] if c < 4 else W[c - 4], 9) for c in range(8)
    }
    plan = reconcile(graph, snapshot(graph, channels, members=W[:4]))
    assert sorted(plan.hosts.values()) == list(W[:4])


def test_the_lost_channels_of_different_stages_go_to_different_workers() -> None:
    graph = chain(4)
    channels = {(stage, 0): at(W[9], 5) for stage in range(5)}
    plan = reconcile(graph, snapshot(graph, channels, members=W[:5]))
    assert sorted(plan.hosts.values()) == list(W[:5])


def test_of_32_workers_the_31_others_share_the_work_of_a_lost_one() -> None:
    """With three stages and 31 channels of each a worker; in the paper three workers could help."""
    graph = StageGraph(
        (read(32 * 31), execute(32 * 31), execute(32 * 31), collect()),
        (*(Link(n, n + 1, routing=Routing.PASS_THROUGH) for n in range(2)), Link(2, 3)),
    )
    channels = {(stage, c): at(W[c % 32], 4) for stage in range(3) for c in range(32 * 31)}
    plan = reconcile(graph, snapshot(graph, channels, members=W[:31]))
    assert len(plan.hosts) == 3 * 31
    for stage in range(3):
        hosts = [host for name, host in plan.hosts.items() if name.stage == stage]
        assert sorted(hosts) == sorted(W[:31])


def test_the_longest_retraces_are_kept_apart() -> None:
    graph = StageGraph((read(1), execute(2), execute(2), collect()), (Link(0, 1), Link(1, 2), Link(2, 3)))
    lengths = {(1, 0): 100, (1, 1): 1, (2, 0): 90, (2, 1): 2}
    channels = {S0: at(A)} | {name: at(W[9], length) for name, length in lengths.items()}
    plan = reconcile(graph, snapshot(graph, channels, members=(A, B)))
    work = Counter[WorkerId]()
    for name, host in plan.hosts.items():
        work[host] += lengths[name.stage, name.channel]
    assert sorted(work.values()) == [91, 102]


def test_channels_of_one_stage_are_kept_apart_even_if_the_workers_are_not_equally_busy() -> None:
    graph = pipeline(readers=3, executors=2)
    channels = {(0, c): at(B) for c in range(3)} | {(1, c): at(W[9], 2) for c in range(2)}
    plan = reconcile(graph, snapshot(graph, channels, members=(A, B)))
    assert sorted(plan.hosts.values()) == [A, B]


def test_work_counts_before_the_number_of_channels() -> None:
    graph = chain(3)
    lengths = {1: 100, 2: 3, 3: 2}
    channels = {(0, 0): at(A)} | {(stage, 0): at(W[9], length) for stage, length in lengths.items()}
    hosts = reconcile(graph, snapshot(graph, channels, members=(A, B))).hosts
    assert hosts[S2] == hosts[ChannelName(3, 0)] != hosts[S1]


def test_with_equal_work_a_channel_goes_to_the_worker_that_has_fewest() -> None:
    graph = pipeline(readers=3, executors=2)
    channels = {(0, 0): at(A), (0, 1): at(A), (0, 2): at(B), (1, 0): at(C), (1, 1): at(B)}
    plan = reconcile(graph, snapshot(graph, channels, members=(A, B, W[3])))
    assert plan.hosts == {ChannelName(1, 0): W[3]}


def test_placement_does_not_depend_on_the_order_of_a_dictionary() -> None:
    graph = pipeline(readers=4, executors=4)
    channels = {(stage, c): at(W[9], c) for stage in (0, 1) for c in range(4)}
    before = snapshot(graph, channels, members=W[:3])
    turned = replace(
        before,
        channels=dict(reversed([*before.channels.items()])),
        delivered=dict(reversed([*before.delivered.items()])),
    )
    assert reconcile(graph, before) == reconcile(graph, turned)


# --- counting losses ---------------------------------------------------------------------------------------


def test_an_outstanding_task_counts_its_worker_if_it_was_lost_unannounced() -> None:
    graph = chain(2)
    channels = {S0: at(B, 5, final=True), S1: at(B, 3, losses=2), S2: at(B, 1)}
    lost = snapshot(graph, channels, members=(A,))
    assert reconcile(graph, lost).losses == {S1: 3, S2: 1}, "s0 is moved, but has no task outstanding"
    announced = snapshot(graph, channels, members=(A,), announced=(B,))
    assert reconcile(graph, announced).losses == {}


# --- small and final ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [chain(3, 2), join(2), self_join(2)], ids=["chain", "join", "self join"])
def test_a_plan_does_not_grow_with_the_work_done(graph: StageGraph) -> None:
    def size_after(outputs: int) -> int:
        channels: dict[tuple[int, int], ChannelState] = {
            name: at(W[name.channel], outputs) for name in graph.channels if name != graph.collector
        }
        behind = {e: outputs // 2 for name in graph.channels for e in graph.edges_from(name)}
        plan = reconcile(graph, snapshot(graph, channels, members=(A, C), delivered=behind))
        assert plan.rereads
        parts = (plan.hosts, plan.bases, plan.delivered), (plan.rereads, plan.rewound, plan.closed)
        return sum(len(part) for part in parts[0]) + sum(len(part) for part in parts[1])

    assert size_after(10) == size_after(10_000)


GRAPHS = {
    "chain": chain(3, 2),
    "join": join(2),
    "self join": self_join(2),
    "filter": filtered_read(required=False, readers=2),
    "broadcast build": filtered_read(required=True, readers=3),
    "union": StageGraph(
        (read(2), read(1), execute(2), execute(1), collect()),
        (Link(0, 2), Link(1, 2), Link(2, 3), Link(3, 4)),
    ),
    "shared": StageGraph(
        (read(2), execute(2), execute(2), execute(1), collect()),
        (Link(0, 1), Link(1, 2, routing=Routing.PASS_THROUGH), Link(1, 3), Link(2, 3, phase=1), Link(3, 4)),
    ),
}


@st.composite
def random_graphs(draw: st.DrawFn) -> StageGraph:
    """Any small graph that is valid: readers with side inputs, joins, shared stages."""
    stages: list[Stage] = []
    links: list[Link] = []
    count = draw(st.integers(2, 5))
    for stage in range(count):
        channels = draw(st.integers(1, 2))
        if stage == 0 or draw(st.booleans()):
            stages.append(Stage(StageKind.READ, channels, 4))
            if stage and draw(st.booleans()):
                required = draw(st.booleans())
                links.append(Link(draw(st.integers(0, stage - 1)), stage, LinkKind.SIDE, 0, required))
        else:
            stages.append(Stage(StageKind.EXECUTE, channels))
            producers = draw(st.lists(st.integers(0, stage - 1), min_size=1, max_size=2))
            links += [Link(producer, stage, phase=phase) for phase, producer in enumerate(producers)]
            if draw(st.booleans()):
                links.append(Link(draw(st.integers(0, stage - 1)), stage, LinkKind.SIDE))
    fed = {link.producer for link in links}
    links += [Link(stage, count, phase=0) for stage in range(count) if stage not in fed]
    return StageGraph((*stages, collect()), tuple(links))


class Life:
    """A query that makes progress, loses workers and is reconciled, as far as a snapshot can tell."""

    def __init__(self, graph: StageGraph, data: st.DataObject) -> None:
        self.graph, self._data, self._born = graph, data, 4
        hosts = {n: HEAD if n == graph.collector else W[n.channel % 3] for n in graph.channels}
        channels: dict[tuple[int, int], ChannelState] = {n: at(host) for n, host in hosts.items()}
        self.now = snapshot(graph, channels, members=W[:4])

    def _choose(self, strategy: st.SearchStrategy[int]) -> int:
        return self._data.draw(strategy)

    def progress(self) -> None:
        """Commits, deliveries, completed re-reads, early ends: any that the protocol allows."""
        channels = dict(self.now.channels)
        for name in self.graph.channels[:-1]:
            old = channels[name]
            if not old.ended:
                length = old.length + self._choose(st.integers(0, 3))
                channels[name] = replace(
                    old, length=length, final=length > 0 and not self._choose(st.integers(0, 2))
                )
        done = self._choose(st.integers(0, len(self.now.rereads)))
        rereads = tuple(r for at, r in enumerate(self.now.rereads) if at >= done)
        if rereads and rereads[0].end - rereads[0].first > 1:
            rereads = (replace(rereads[0], first=rereads[0].first + 1), *rereads[1:])
        delivered = {
            edge: max(count, self._choose(st.integers(0, channels[self.graph.producer(edge)].length)))
            for edge, count in self.now.delivered.items()
        }
        self.now = replace(self.now, channels=channels, delivered=delivered, rereads=rereads)

    def lose(self) -> None:
        """Some workers are lost, one may be draining, one may join; at least one member stays."""
        lost = {w for w in self.now.members[1:] if not self._choose(st.integers(0, 1))}
        gone = lost | {w for w in self.now.draining if self._choose(st.integers(0, 1))}
        members = tuple(w for w in self.now.members if w not in lost)
        draining = tuple(w for w in self.now.draining if w not in gone)
        if len(members) > 1 and not self._choose(st.integers(0, 2)):
            members, draining = members[:-1], (*draining, members[-1])
        if self._choose(st.integers(0, 1)) or not members:
            members, self._born = (*members, W[self._born]), self._born + 1
        departed = {**self.now.departed, **{w: w in self.now.draining for w in sorted(gone)}}
        self.now = replace(self.now, members=members, draining=draining, departed=departed, gate_open=False)


def check(life: Life) -> None:
    """Reconcile, checked independently: the smallest plan (8), whose own result needs no other (9)."""
    before = life.now
    plan = reconcile(life.graph, before)
    Audit(life.graph).planned(before, plan)
    assert set(plan.hosts.values()) <= set(before.members)
    assert not any(before.channels[n].host in before.members for n in plan.hosts), "the living are left alone"
    life.now = resumed(before, plan)
    assert_every_lack_has_a_source(life.graph, life.now)


def assert_every_lack_has_a_source(graph: StageGraph, after: Snapshot) -> None:
    """Invariant 5 as the store sees it: whoever goes on is on a worker that is there, and so are its sources."""
    there = {*after.members, *after.draining, HEAD}
    coming = {(edge, seq) for r in after.rereads for edge in r.edges for seq in range(r.first, r.end)}
    for name, channel in after.channels.items():
        if channel.ended:
            continue
        assert channel.host in there
        for edge in graph.edges_into(name):
            producer = after.channels[graph.producer(edge)]
            lacking = range(after.delivered[edge], producer.length)
            sends = producer.host in there
            assert all((edge, s) in coming or (sends and s >= producer.base) for s in lacking)
    for r in after.rereads:
        assert any(c.host in there for n, c in after.channels.items() if n.stage == r.channel.stage)


@given(st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_whatever_is_lost_the_plan_is_the_smallest_and_its_own_result_needs_no_other(
    data: st.DataObject,
) -> None:
    graph = data.draw(st.sampled_from(list(GRAPHS.values())) | random_graphs())
    life = Life(graph, data)
    for _ in range(data.draw(st.integers(1, 3))):
        life.progress()
        life.lose()
        check(life)


def test_re_reads_print_what_is_read_again_for_whom() -> None:
    assert str(ReRead(S0, 2, 5, (Edge(0, 0, 0), Edge(0, 0, 1)))) == "s0.c0.t2..4 for l0:0>0 l0:0>1"
