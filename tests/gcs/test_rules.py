"""Every rule of the control store by name, on the store in memory and the one in Redis alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from wallaby.gcs.interface import Assignment, Commit, CommitReply, Gcs, QueryView, Verdict
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.lineage.graph import Link, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import HEAD, ChannelName, Edge, QueryId, TaskName, WorkerId
from wallaby.lineage.snapshot import ChannelState, RecoveryPlan, ReRead

pytestmark = [pytest.mark.redis, pytest.mark.timeout(60)]

HOUR_MS = 3_600_000
Q = QueryId("q")
A, B, C = WorkerId("a"), WorkerId("b"), WorkerId("c")
R0, R1, X0, X1, SINK = (ChannelName(*name) for name in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0)))
GRAPH = StageGraph(
    (Stage(StageKind.READ, 2, 4), Stage(StageKind.EXECUTE, 2), Stage(StageKind.COLLECT, 1)),
    (Link(0, 1, routing=Routing.HASH), Link(1, 2)),
)
HOSTS = {R0: A, R1: B, X0: A, X1: B, SINK: HEAD}


@pytest.fixture(params=["memory", "redis"])
def gcs(request: pytest.FixtureRequest) -> Iterator[Gcs]:
    if request.param == "memory":
        yield MemoryGcs(MemoryStore(now_ms=lambda: 0))
    else:
        yield request.getfixturevalue("redis_gcs")


@pytest.fixture
def query(gcs: Gcs) -> QueryId:
    assert gcs.submit(Q, GRAPH, HOSTS) is Verdict.DONE
    return Q


def record(channel: ChannelName, seq: int, text: bytes = b"record", *, final: bool = False) -> Commit:
    return Commit(TaskName(*channel, seq), text, final)


def commit(gcs: Gcs, worker: WorkerId, *commits: Commit, epoch: int = 1) -> tuple[CommitReply, ...]:
    return gcs.commit(Q, worker, epoch, commits)


def channel_of(gcs: Gcs, name: ChannelName) -> ChannelState:
    snapshot = gcs.snapshot(Q)
    assert snapshot is not None
    return snapshot.channels[name]


def version_of(gcs: Gcs) -> int:
    snapshot = gcs.snapshot(Q)
    assert snapshot is not None
    return snapshot.version


# --- workers -----------------------------------------------------------------------------------------------


def test_a_lease_runs_until_it_ends_and_can_be_renewed(gcs: Gcs) -> None:
    assert gcs.register(A, "host:1", HOUR_MS)
    assert gcs.register(B, "host:2", -HOUR_MS)
    assert [(w.worker, w.address, w.remaining_ms > 0) for w in gcs.workers()] == [
        (A, "host:1", True),
        (B, "host:2", False),
    ]
    assert gcs.renew(B, HOUR_MS)
    assert gcs.renew(A, -HOUR_MS)
    assert [w.remaining_ms > 0 for w in gcs.workers()] == [False, True]


def test_a_worker_may_register_again_from_its_own_address_only(gcs: Gcs) -> None:
    assert gcs.register(A, "host:1", HOUR_MS)
    assert gcs.register(A, "host:1", HOUR_MS)
    assert not gcs.register(A, "host:2", HOUR_MS)
    assert [w.address for w in gcs.workers()] == ["host:1"]


def test_workers_are_told_in_the_order_of_registration(gcs: Gcs) -> None:
    for worker in (C, A, B, A):
        gcs.register(worker, f"host of {worker}", HOUR_MS)
    assert [w.worker for w in gcs.workers()] == [C, A, B]


def test_an_unknown_worker_has_no_lease_to_renew(gcs: Gcs) -> None:
    assert not gcs.renew(A, HOUR_MS)
    assert gcs.workers() == ()


def test_an_expelled_worker_never_comes_back(gcs: Gcs) -> None:
    gcs.register(A, "host:1", HOUR_MS)
    gcs.expel(A)
    gcs.expel(A)
    assert not gcs.renew(A, HOUR_MS)
    assert not gcs.register(A, "host:1", HOUR_MS)
    assert gcs.workers() == ()


def test_a_worker_expelled_before_it_registered_never_comes(gcs: Gcs) -> None:
    gcs.expel(A)
    assert not gcs.register(A, "host:1", HOUR_MS)


def test_a_worker_that_wants_to_leave_is_marked(gcs: Gcs) -> None:
    gcs.register(A, "host:1", HOUR_MS)
    gcs.ask_to_drain(A)
    gcs.ask_to_drain(B)
    assert [(w.worker, w.draining, w.address) for w in gcs.workers()] == [(A, True, "host:1")]


def test_complaints_stay_until_withdrawn_and_go_with_their_workers(gcs: Gcs) -> None:
    for worker in (A, B, C):
        gcs.register(worker, "host", HOUR_MS)

    def complaints() -> list[list[WorkerId]]:
        return [[who for who, _ in w.complaints] for w in gcs.workers()]

    gcs.complain(B, A, reachable=False)
    gcs.complain(C, A, reachable=False)
    gcs.complain(A, C, reachable=False)
    gcs.complain(A, WorkerId("nobody"), reachable=False)
    gcs.complain(WorkerId("nobody"), A, reachable=False)
    assert complaints() == [[B, C], [], [A]]
    assert all(0 <= for_ms < HOUR_MS for w in gcs.workers() for _, for_ms in w.complaints)
    gcs.complain(B, A, reachable=True)
    assert complaints() == [[C], [], [A]]
    gcs.expel(C)
    assert complaints() == [[], []]


def test_a_complaint_stands_for_its_query_until_it_is_renewed_no_more(gcs: Gcs) -> None:
    for worker in (A, B):
        gcs.register(worker, "host", HOUR_MS)

    def lasted() -> list[tuple[WorkerId, int]]:
        return list(gcs.workers()[0].complaints)

    assert gcs.complain(B, A, False, QueryId("one"))
    assert lasted() == [(B, 0)], "said once, it has lasted no time"
    assert gcs.complain(B, A, False, QueryId("two"))
    assert gcs.complain(B, A, True, QueryId("one"))
    assert [who for who, _ in lasted()] == [B], "the other query's stands"
    assert gcs.complain(B, A, False, QueryId("two"), lasts_ms=-1)
    assert lasted() == [], "it has expired"
    assert gcs.complain(B, A, False, QueryId("two"))
    assert lasted() == [(B, 0)], "and begins anew"
    assert not gcs.complain(B, WorkerId("nobody"), False)


def test_a_commit_of_an_earlier_run_is_refused_although_the_worker_hosts_the_channel(
    gcs: Gcs, query: QueryId
) -> None:
    """It was rewound where it is: what its former attempt made is not what its records will say."""
    gcs.freeze(query, (), ())
    assert gcs.resume(query, RecoveryPlan(hosts={R0: A}), version_of(gcs)) is Verdict.DONE
    assert gcs.look(query, A).assignments[0].since_epoch == 3
    old, new = record(R0, 0), replace(record(R0, 0), since_epoch=3)
    before = gcs.dump(query)
    assert [reply.verdict for reply in gcs.commit(query, A, 3, (old,))] == [Verdict.NOT_HOST]
    assert gcs.dump(query) == before
    assert [reply.verdict for reply in gcs.commit(query, A, 3, (new,))] == [Verdict.DONE]


def test_a_submission_that_comes_after_its_query_was_barred_creates_nothing(gcs: Gcs) -> None:
    hosts = {**dict.fromkeys(GRAPH.channels, A), GRAPH.collector: HEAD}
    late, other = QueryId("late"), QueryId("other")
    gcs.remove(late, barred=True)
    assert gcs.submit(late, GRAPH, hosts) is Verdict.GONE
    assert (gcs.queries(), gcs.dump(late)) == ((), None)
    assert gcs.submit(other, GRAPH, hosts) is Verdict.DONE
    gcs.remove(other)
    assert gcs.submit(other, GRAPH, hosts) is Verdict.DONE, "only what was in doubt is barred"


# --- a query, by the coordinator ---------------------------------------------------------------------------


def test_a_query_begins_open_with_its_hosts_as_members_and_a_split_for_each_reader(
    gcs: Gcs, query: QueryId
) -> None:
    status = gcs.status(query)
    assert (status.epoch, status.gate_open, status.members, status.commits) == (1, True, (A, B), 0)
    assert [channel_of(gcs, name).split for name in (R0, R1, X0)] == [0, 1, None]


def test_a_query_is_created_once(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(R0, 0))
    before = gcs.dump(query)
    assert gcs.submit(query, GRAPH, dict.fromkeys(GRAPH.channels, C)) is Verdict.ALREADY
    assert gcs.dump(query) == before


def test_every_action_on_an_unknown_query_is_gone_and_recreates_nothing(gcs: Gcs) -> None:
    assert gcs.join(Q, A) is Verdict.GONE
    assert gcs.status(Q).verdict is Verdict.GONE
    assert gcs.freeze(Q, (A,), (B,)) is Verdict.GONE
    assert gcs.snapshot(Q) is None
    assert gcs.resume(Q, RecoveryPlan(hosts={R0: A}), 1) is Verdict.GONE
    assert gcs.look(Q, A) == QueryView(Verdict.GONE)
    assert gcs.records(Q, A, 1, R0) == (Verdict.GONE, ())
    assert commit(gcs, A, record(R0, 0), record(R1, 0)) == (CommitReply(Verdict.GONE),) * 2
    assert gcs.acknowledge(Q, A, 1, ((Edge(0, 0, 0), 1),)) is Verdict.GONE
    assert gcs.claim(Q, A, 1, 0, None).verdict is Verdict.GONE
    assert gcs.close_early(Q, A, 1, ((R0, (X0,)),)) is Verdict.GONE
    assert gcs.fail(Q, A, 1, "error") is Verdict.GONE
    gcs.remove(Q)
    assert gcs.dump(Q) is None
    assert gcs.queries() == ()


def test_a_removed_query_is_gone_for_a_late_writer(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(R0, 0))
    gcs.remove(query)
    gcs.remove(query)
    assert commit(gcs, A, record(R0, 1)) == (CommitReply(Verdict.GONE),)
    assert gcs.dump(query) is None
    assert gcs.queries() == ()


def test_queries_do_not_see_each_other(gcs: Gcs, query: QueryId) -> None:
    other = QueryId("q}:query{")
    gcs.submit(other, GRAPH, HOSTS)
    commit(gcs, A, record(R0, 0))
    assert gcs.status(other).commits == 0
    assert gcs.queries() == (query, other)
    gcs.remove(query)
    assert gcs.queries() == (other,)
    gcs.remove(other)


def test_a_worker_joins_once_and_never_after_it_was_lost(gcs: Gcs, query: QueryId) -> None:
    assert gcs.join(query, C) is Verdict.DONE
    assert gcs.join(query, C) is Verdict.ALREADY
    assert gcs.status(query).members == (A, B, C)
    gcs.freeze(query, (C,), ())
    assert gcs.join(query, C) is Verdict.EXPELLED
    assert gcs.status(query).members == (A, B)


def test_a_freeze_expels_closes_the_gate_and_raises_the_epoch(gcs: Gcs, query: QueryId) -> None:
    assert gcs.freeze(query, (A,), (B,)) is Verdict.DONE
    status = gcs.status(query)
    assert (status.epoch, status.gate_open, status.members, status.draining) == (2, False, (), (B,))
    assert commit(gcs, A, record(R0, 0)) == (CommitReply(Verdict.EXPELLED),)
    assert commit(gcs, B, record(R1, 0), epoch=2) == (CommitReply(Verdict.FROZEN),)
    assert gcs.look(query, B) == QueryView(Verdict.FROZEN, 2)
    assert gcs.look(query, A).verdict is Verdict.EXPELLED
    assert gcs.look(query, C).verdict is Verdict.NOT_HOST


def test_the_loss_of_a_draining_worker_was_announced(gcs: Gcs, query: QueryId) -> None:
    gcs.freeze(query, (), (B,))
    gcs.freeze(query, (A, B, C), ())
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert snapshot.departed == {A: False, B: True}
    assert snapshot.epoch == 3


def test_a_plan_applies_only_to_the_version_that_it_was_made_from(gcs: Gcs, query: QueryId) -> None:
    version = version_of(gcs)
    assert gcs.resume(query, RecoveryPlan(), version) is Verdict.CONFLICT  # the gate is open
    gcs.freeze(query, (A,), ())
    assert gcs.resume(query, RecoveryPlan(), version) is Verdict.CONFLICT
    version = version_of(gcs)
    gcs.join(query, C)
    before = gcs.dump(query)
    assert gcs.resume(query, RecoveryPlan(hosts={R0: C}), version) is Verdict.CONFLICT
    assert gcs.dump(query) == before


def test_a_plan_is_applied_whole_and_once(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(R0, 0), record(R0, 1))
    gcs.freeze(query, (A,), ())
    version = version_of(gcs)
    edges = GRAPH.edges_from(R0)
    plan = RecoveryPlan(
        hosts={R0: B, X0: B},
        bases={R0: 2},
        delivered={edges[0]: 1, edges[1]: 0},
        losses={R0: 1},
        closed=(X1,),
        rereads=(ReRead(R0, 0, 2, edges),),
    )
    assert gcs.resume(query, plan, version) is Verdict.DONE
    assert channel_of(gcs, R0) == ChannelState(B, base=2, length=2, split=3, losses=1, since_epoch=3)
    assert channel_of(gcs, X0).host == B
    assert channel_of(gcs, X1).closed
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert (snapshot.epoch, snapshot.gate_open, snapshot.rereads) == (3, True, plan.rereads)
    assert snapshot.delivered[edges[0]] == 1
    assert gcs.resume(query, plan, version) is Verdict.CONFLICT


def test_a_plan_may_lower_what_was_delivered(gcs: Gcs, query: QueryId) -> None:
    edge = GRAPH.edges_from(R0)[0]
    gcs.acknowledge(query, A, 1, ((edge, 7),))
    gcs.freeze(query, (), ())
    gcs.resume(query, RecoveryPlan(delivered={edge: 0}), version_of(gcs))
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert snapshot.delivered[edge] == 0


# --- a query, by a worker ----------------------------------------------------------------------------------


def test_a_look_shows_a_worker_its_channels_all_routes_and_its_deliveries(gcs: Gcs, query: QueryId) -> None:
    gcs.acknowledge(query, A, 1, ((Edge(0, 0, 1), 3),))
    view = gcs.look(query, A)
    assert (view.verdict, view.epoch, view.rereads_waiting) == (Verdict.DONE, 1, False)
    assert view.assignments == (
        Assignment(R0, 0, 0, False, False, 0),
        Assignment(X0, 0, 0, False, False, None),
    )
    assert view.routes == HOSTS
    assert view.delivered == {Edge(0, 0, 0): 0, Edge(0, 0, 1): 3, Edge(1, 0, 0): 0}
    assert [a.channel for a in gcs.look(query, HEAD).assignments] == [SINK]


def test_a_record_is_appended_once_and_its_repetition_claims_no_other_split(gcs: Gcs, query: QueryId) -> None:
    assert commit(gcs, A, record(R0, 0)) == (CommitReply(Verdict.DONE, 2),)
    before = gcs.dump(query)
    assert commit(gcs, A, record(R0, 0)) == (CommitReply(Verdict.ALREADY, 2),)
    assert gcs.dump(query) == before
    assert gcs.status(query).commits == 1


def test_readers_share_the_splits_until_there_are_none(gcs: Gcs, query: QueryId) -> None:
    assert commit(gcs, A, record(R0, 0), record(R0, 1)) == (
        CommitReply(Verdict.DONE, 2),
        CommitReply(Verdict.DONE, 3),
    )
    assert commit(gcs, B, record(R1, 0)) == (CommitReply(Verdict.DONE, None),)


def test_what_is_left_of_a_split_is_what_its_reader_reads_next(gcs: Gcs, query: QueryId) -> None:
    """The number may be large. Nobody else gets it, and no other split is given out for it."""
    left = (1 << 62) + 3
    first = replace(record(R0, 0), next_split=left)
    assert commit(gcs, A, first) == (CommitReply(Verdict.DONE, left),)
    assert commit(gcs, A, first) == (CommitReply(Verdict.ALREADY, left),)
    assert channel_of(gcs, R0).split == left
    assert commit(gcs, A, record(R0, 1)) == (CommitReply(Verdict.DONE, 2),)


def test_the_last_record_of_a_reader_claims_no_split(gcs: Gcs, query: QueryId) -> None:
    assert commit(gcs, A, record(R0, 0, final=True)) == (CommitReply(Verdict.DONE, None),)
    assert commit(gcs, B, record(R1, 0)) == (CommitReply(Verdict.DONE, 2),)


def test_another_record_under_a_committed_name_diverges(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(R0, 0), record(R0, 1))
    before = gcs.dump(query)
    assert commit(gcs, A, record(R0, 0, b"other")) == (CommitReply(Verdict.DIVERGED),)
    assert gcs.dump(query) == before


def test_a_gap_is_refused(gcs: Gcs, query: QueryId) -> None:
    before = gcs.dump(query)
    assert commit(gcs, A, record(R0, 1)) == (CommitReply(Verdict.OUT_OF_ORDER),)
    assert gcs.dump(query) == before


def test_nothing_follows_the_last_record(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(X0, 0, final=True))
    assert commit(gcs, A, record(X0, 1)) == (CommitReply(Verdict.OUT_OF_ORDER),)
    assert commit(gcs, A, record(X0, 0, final=True)) == (CommitReply(Verdict.ALREADY),)
    assert channel_of(gcs, X0).final


def test_a_closed_channel_takes_no_new_record_but_knows_its_old_ones(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(X0, 0))
    assert gcs.close_early(query, HEAD, 1, ((X0, ()),)) is Verdict.DONE
    assert commit(gcs, A, record(X0, 1)) == (CommitReply(Verdict.CLOSED),)
    assert commit(gcs, A, record(X0, 0)) == (CommitReply(Verdict.ALREADY),)


def test_one_refused_commit_does_not_refuse_the_others(gcs: Gcs, query: QueryId) -> None:
    verdicts = [r.verdict for r in commit(gcs, A, record(R1, 0), record(R0, 0), record(X0, 3), record(R0, 0))]
    assert verdicts == [Verdict.NOT_HOST, Verdict.DONE, Verdict.OUT_OF_ORDER, Verdict.ALREADY]


def test_a_record_may_be_any_bytes(gcs: Gcs, query: QueryId) -> None:
    texts = (b"", bytes(range(256)), "-é\r\n".encode())
    commit(gcs, A, *(record(X0, seq, text) for seq, text in enumerate(texts)))
    assert gcs.records(query, A, 1, X0) == (Verdict.DONE, texts)


@pytest.mark.parametrize("epoch", [0, 2, 99])
def test_a_write_of_another_epoch_takes_no_effect(gcs: Gcs, query: QueryId, epoch: int) -> None:
    before = gcs.dump(query)
    assert commit(gcs, A, record(R0, 0), epoch=epoch) == (CommitReply(Verdict.STALE),)
    assert gcs.acknowledge(query, A, epoch, ((Edge(0, 0, 0), 1),)) is Verdict.STALE
    assert gcs.claim(query, A, epoch, 0, None).verdict is Verdict.STALE
    assert gcs.close_early(query, A, epoch, ((R0, ()),)) is Verdict.STALE
    assert gcs.fail(query, A, epoch, "error") is Verdict.STALE
    assert gcs.records(query, A, epoch, R0) == (Verdict.STALE, ())
    assert gcs.dump(query) == before


def test_a_write_of_a_worker_that_is_no_member_takes_no_effect(gcs: Gcs, query: QueryId) -> None:
    before = gcs.dump(query)
    assert commit(gcs, C, record(R0, 0)) == (CommitReply(Verdict.EXPELLED),)
    assert gcs.acknowledge(query, C, 1, ((Edge(0, 0, 0), 1),)) is Verdict.EXPELLED
    assert gcs.claim(query, C, 1, 0, None).verdict is Verdict.EXPELLED
    assert gcs.close_early(query, C, 1, ((R0, ()),)) is Verdict.EXPELLED
    assert gcs.fail(query, C, 1, "error") is Verdict.EXPELLED
    assert gcs.records(query, C, 1, R0) == (Verdict.EXPELLED, ())
    assert gcs.dump(query) == before


def test_only_the_host_reads_a_channels_records(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, A, record(R0, 0, b"one"), record(R0, 1, b"two"))
    assert gcs.records(query, A, 1, R0) == (Verdict.DONE, (b"one", b"two"))
    assert gcs.records(query, B, 1, R0) == (Verdict.NOT_HOST, ())


def test_a_commit_clears_the_count_of_lost_workers(gcs: Gcs, query: QueryId) -> None:
    gcs.freeze(query, (), ())
    gcs.resume(query, RecoveryPlan(losses={R0: 3}), version_of(gcs))
    assert channel_of(gcs, R0).losses == 3
    commit(gcs, A, record(R0, 0), epoch=3)
    assert channel_of(gcs, R0).losses == 0


def test_what_is_delivered_never_falls_within_an_epoch(gcs: Gcs, query: QueryId) -> None:
    edge = Edge(0, 0, 0)
    for count in (2, 10, 9):  # as texts, 10 would be less than 2 and 9
        gcs.acknowledge(query, A, 1, ((edge, count),))
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert snapshot.delivered[edge] == 10
    gcs.commit(query, A, 1, (Commit(TaskName(*R0, 0), b"", False, ((edge, 4),)),))
    gcs.commit(query, A, 1, (Commit(TaskName(*R0, 0), b"", False, ((edge, 12),)),))
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert snapshot.delivered[edge] == 12


def test_an_acknowledgement_for_anothers_channel_is_refused_whole(gcs: Gcs, query: QueryId) -> None:
    before = gcs.dump(query)
    assert gcs.acknowledge(query, A, 1, ((Edge(0, 0, 0), 1), (Edge(0, 1, 0), 1))) is Verdict.NOT_HOST
    assert gcs.dump(query) == before


def with_rereads(gcs: Gcs, *rereads: ReRead) -> int:
    """Three records of R0, then a recovery that queues re-reads; the epoch after it."""
    commit(gcs, A, *(record(R0, seq, b"%d" % seq) for seq in range(3)))
    gcs.freeze(Q, (), ())
    gcs.resume(Q, RecoveryPlan(rereads=rereads), version_of(gcs))
    return gcs.status(Q).epoch


def test_re_reads_are_handed_out_one_by_one_and_held_until_completed(gcs: Gcs, query: QueryId) -> None:
    edges = GRAPH.edges_from(R0)
    epoch = with_rereads(gcs, ReRead(R0, 1, 3, edges))
    assert gcs.look(query, A).rereads_waiting
    first = gcs.claim(query, A, epoch, 0, None)
    assert (first.task, first.record, first.edges) == (TaskName(*R0, 1), b"1", edges)
    assert gcs.claim(query, A, epoch, 0, None) == first
    second = gcs.claim(query, B, epoch, 0, None)
    assert second.task == TaskName(*R0, 2)
    assert not gcs.look(query, A).rereads_waiting
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert snapshot.rereads == (ReRead(R0, 1, 2, edges), ReRead(R0, 2, 3, edges))
    assert gcs.claim(query, A, epoch, 0, first.task).task is None
    assert gcs.claim(query, A, epoch, 0, first.task).task is None
    assert gcs.claim(query, B, epoch, 0, second.task).task is None
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    assert snapshot.rereads == ()


def test_the_slots_of_a_worker_hold_different_re_reads(gcs: Gcs, query: QueryId) -> None:
    epoch = with_rereads(gcs, ReRead(R0, 0, 1, GRAPH.edges_from(R0)), ReRead(R0, 2, 3, GRAPH.edges_from(R0)))
    tasks = [gcs.claim(query, A, epoch, slot, None).task for slot in (0, 1, 0, 1, 2)]
    assert tasks == [TaskName(*R0, 0), TaskName(*R0, 2), TaskName(*R0, 0), TaskName(*R0, 2), None]


def test_a_worker_that_hosts_no_channel_of_the_stage_gets_no_re_read(gcs: Gcs, query: QueryId) -> None:
    epoch = with_rereads(gcs, ReRead(R0, 0, 1, GRAPH.edges_from(R0)))
    gcs.join(query, C)
    assert not gcs.look(query, C).rereads_waiting
    assert gcs.claim(query, C, epoch, 0, None).task is None


def test_a_resume_voids_all_claims(gcs: Gcs, query: QueryId) -> None:
    epoch = with_rereads(gcs, ReRead(R0, 0, 1, GRAPH.edges_from(R0)))
    held = gcs.claim(query, A, epoch, 0, None)
    gcs.freeze(query, (), ())
    snapshot = gcs.snapshot(query)
    assert snapshot is not None
    gcs.resume(query, RecoveryPlan(rereads=snapshot.rereads), snapshot.version)
    resumed = gcs.snapshot(query)
    assert resumed is not None
    assert resumed.rereads == snapshot.rereads == (ReRead(R0, 0, 1, GRAPH.edges_from(R0)),)
    assert gcs.claim(query, B, epoch + 2, 0, None) == held


def test_a_channel_closes_when_all_its_consumers_have_ended(gcs: Gcs, query: QueryId) -> None:
    candidates = GRAPH.closable_above(SINK)
    assert gcs.close_early(query, HEAD, 1, candidates) is Verdict.DONE
    assert not any(channel_of(gcs, name).closed for name in (R0, R1, X0, X1))
    commit(gcs, HEAD, record(SINK, 0, final=True))
    assert gcs.close_early(query, HEAD, 1, candidates) is Verdict.DONE
    assert all(channel_of(gcs, name).closed for name in (R0, R1, X0, X1))


def test_candidates_are_closed_in_their_order(gcs: Gcs, query: QueryId) -> None:
    commit(gcs, HEAD, record(SINK, 0, final=True))
    producers_first = tuple(reversed(GRAPH.closable_above(SINK)))
    gcs.close_early(query, HEAD, 1, producers_first)
    assert [channel_of(gcs, name).closed for name in (R0, R1, X0, X1)] == [False, False, True, True]


def test_the_first_error_stays(gcs: Gcs, query: QueryId) -> None:
    assert gcs.fail(query, A, 1, "division by zero\nin s1.c0.t3") is Verdict.DONE
    assert gcs.fail(query, B, 1, "another") is Verdict.ALREADY
    assert gcs.status(query).error == "division by zero\nin s1.c0.t3"
