"""Every check of the audit can fail: each is shown a state that is wrong in one way only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.builders import W, at, chain, draw, join, piece, pipeline, snapshot

from wallaby.gcs.memory import StoredQuery
from wallaby.lineage.attempt import ChannelRun, WorkerContext
from wallaby.lineage.choose import Static
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.lineage import LineageRecord, encode
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.snapshot import RecoveryPlan, ReRead, Snapshot
from wallaby_lab.invariants.audit import Audit, InvariantViolation, check_smallest
from wallaby_lab.invariants.sighting import WorkerState

GRAPH = pipeline()
S0, S1, SINK = GRAPH.channels
IN, OUT = Edge(0, 0, 0), Edge(1, 0, 0)
A, B, C = W[:3]


def expect(number: int, what: str) -> pytest.RaisesExc[InvariantViolation]:
    return pytest.raises(InvariantViolation, match=rf"Invariant {number}: .*{what}")


def store(graph: StageGraph = GRAPH, **records: list[LineageRecord]) -> StoredQuery:
    """A query as the store would hold it, with these records by channel: `s0_c0=[...]`; all on w0."""
    committed = {name: records.get(f"s{name.stage}_c{name.channel}", []) for name in graph.channels}
    channels = {
        name: at(HEAD if name == graph.collector else A, len(of), final=any(r.final for r in of))
        for name, of in committed.items()
    }
    splits = {
        stage: sum(r.split is not None for n, of in committed.items() if n.stage == stage for r in of)
        for stage in range(len(graph.stages))
        if graph.is_reader(stage)
    }
    return StoredQuery(
        graph=graph,
        channels=channels,
        records={name: [encode(record) for record in of] for name, of in committed.items()},
        delivered={edge: 0 for name in graph.channels for edge in graph.edges_from(name)},
        members={A: False, B: False},
        next_split=splits,
        epoch=3,
    )


def reads(count: int, *, final: bool = False) -> list[LineageRecord]:
    return [LineageRecord(seq, split=seq) for seq in range(count)] + [
        LineageRecord(count, final=True)
    ] * final


def drew(*counts: int, link: int = 0, final: bool = False) -> list[LineageRecord]:
    """A channel's records: so many outputs of channel 0 by each."""
    return [LineageRecord(0, draw=draw(link, c0=count)) for count in counts] + [
        LineageRecord(0, final=True)
    ] * final


def audit_of(state: StoredQuery) -> Audit:
    audit = Audit(state.graph)
    audit.check_store(state)
    return audit


# --- what is executed, sent and collected ------------------------------------------------------------------


def test_what_is_committed_in_order_and_always_the_same_passes() -> None:
    audit = audit_of(store(s0_c0=reads(3), s1_c0=drew(2)))
    audit.leaving([piece(GRAPH, IN, 2), piece(GRAPH, IN, 2)])
    audit.executing(TaskName(*S1, 0), [piece(GRAPH, IN, 0), piece(GRAPH, IN, 1)], [])
    audit.executing(TaskName(*S1, 1), [piece(GRAPH, IN, 2)], [])
    audit.made(TaskName(*S0, 1), 1)
    audit.collecting([piece(GRAPH, OUT, 0)])


def test_a_slice_that_leaves_before_its_commit_breaks_invariant_1() -> None:
    audit = audit_of(store(s0_c0=reads(1)))
    with expect(1, r"sends s0\.c0\.t1, which is not committed"):
        audit.leaving([piece(GRAPH, IN, 1)])


def test_a_task_on_an_uncommitted_slice_breaks_invariant_1() -> None:
    audit = audit_of(store(s0_c0=reads(1)))
    with expect(1, "consumes .* not committed"):
        audit.executing(TaskName(*S1, 0), [piece(GRAPH, IN, 1)], [])


def test_a_task_on_an_uncommitted_side_input_breaks_invariant_1() -> None:
    audit = audit_of(store())
    with expect(1, "not committed"):
        audit.executing(TaskName(*S1, 0), [], [piece(GRAPH, IN, 0)])


def test_a_task_that_skips_an_output_breaks_invariant_1() -> None:
    audit = audit_of(store(s0_c0=reads(2)))
    with expect(1, "where output 0 is due"):
        audit.executing(TaskName(*S1, 0), [piece(GRAPH, IN, 1)], [])


def test_a_task_that_consumes_an_output_twice_breaks_invariant_1() -> None:
    audit = audit_of(store(s0_c0=reads(2), s1_c0=drew(1)))
    with expect(1, "where output 1 is due"):
        audit.executing(TaskName(*S1, 1), [piece(GRAPH, IN, 0)], [])


def test_a_task_on_another_channels_slice_breaks_invariant_1() -> None:
    graph = pipeline(executors=2)
    audit = audit_of(store(graph, s0_c0=reads(1)))
    with expect(1, "sent to another channel"):
        audit.executing(TaskName(1, 0, 0), [piece(graph, Edge(0, 0, 1), 0)], [])


def test_a_task_that_runs_before_the_one_before_it_is_committed_breaks_invariant_2() -> None:
    audit = audit_of(store(s0_c0=reads(1)))
    with expect(2, "runs before"):
        audit.executing(TaskName(*S1, 1), [piece(GRAPH, IN, 0)], [])


@pytest.mark.parametrize("other", [{"body": "other rows"}, {"final": True}], ids=["rows", "final"])
def test_a_name_with_two_contents_breaks_invariant_2(other: dict[str, object]) -> None:
    audit = audit_of(store(s0_c0=reads(1)))
    audit.leaving([piece(GRAPH, IN, 0)])
    with expect(2, "with other content than before"):
        audit.leaving([replace(piece(GRAPH, IN, 0), **other)])  # type: ignore[arg-type]


def test_an_output_made_again_with_another_checksum_breaks_invariant_4() -> None:
    audit = audit_of(store(s0_c0=reads(2)))
    with expect(4, r"s0\.c0\.t1"):
        audit.made(TaskName(*S0, 1), 99)


def test_a_row_that_is_given_to_the_client_twice_breaks_invariant_7() -> None:
    audit = audit_of(store(s0_c0=reads(2), s1_c0=drew(1, 1)))
    audit.collecting([piece(GRAPH, OUT, 0)])
    with expect(7, "where output 1 is due"):
        audit.collecting([piece(GRAPH, OUT, 0)])


def test_a_row_that_the_client_never_gets_breaks_invariant_7() -> None:
    audit = audit_of(store(s0_c0=reads(2), s1_c0=drew(1, 1)))
    with expect(7, "where output 0 is due"):
        audit.collecting([piece(GRAPH, OUT, 1)])


def test_a_row_that_the_client_is_given_before_its_commit_breaks_invariant_1() -> None:
    with expect(1, "the client is given"):
        audit_of(store()).collecting([piece(GRAPH, OUT, 0)])


# --- the store ---------------------------------------------------------------------------------------------


def test_a_record_that_is_changed_breaks_invariant_2() -> None:
    state = store(s0_c0=reads(2))
    audit = audit_of(state)
    state.records[S0][0] = encode(LineageRecord(99, split=0))
    with expect(2, "changed or have a gap"):
        audit.check_store(state)


def test_a_record_that_is_taken_back_breaks_invariant_2() -> None:
    state = store(s0_c0=reads(2))
    audit = audit_of(state)
    with expect(2, "changed or have a gap"):
        audit.check_store(store(s0_c0=reads(1)))


def test_a_length_that_its_records_do_not_have_breaks_invariant_2() -> None:
    state = store(s0_c0=reads(2))
    state.channels[S0] = replace(state.channels[S0], length=3)
    with expect(2, "changed or have a gap"):
        audit_of(state)


def test_a_record_after_the_final_one_breaks_invariant_2() -> None:
    with expect(2, "after its final one"):
        audit_of(store(s0_c0=[*reads(1, final=True), LineageRecord(0, split=1)]))


def test_a_channel_marked_final_without_a_final_record_breaks_invariant_2() -> None:
    state = store(s0_c0=reads(1))
    state.channels[S0] = replace(state.channels[S0], final=True)
    with expect(2, "marked final=True"):
        audit_of(state)


def test_a_final_mark_that_is_taken_back_breaks_invariant_2() -> None:
    state = store(s0_c0=reads(1, final=True))
    audit = audit_of(state)
    state.channels[S0] = replace(state.channels[S0], final=False)
    with expect(2, "marked final=False"):
        audit.check_store(state)


def test_a_split_that_is_read_twice_breaks_invariant_2() -> None:
    with expect(2, r"splits \[0, 0\]"):
        audit_of(store(s0_c0=[LineageRecord(0, split=0), LineageRecord(1, split=0)]))


def test_a_split_that_is_lost_with_a_reply_breaks_invariant_2() -> None:
    state = store(s0_c0=reads(1))
    state.next_split[0] = 2
    with expect(2, "2 given out"):
        audit_of(state)
    state.channels[S0] = replace(state.channels[S0], split=1)
    audit_of(state)


def test_a_draw_beyond_what_is_committed_breaks_invariant_3() -> None:
    with expect(3, r"the watermark of s1\.c0 is beyond"):
        audit_of(store(s0_c0=reads(2), s1_c0=drew(2, 1)))


@pytest.mark.parametrize("count", [-1, 3])
def test_more_or_less_delivered_than_there_is_breaks_invariant_3(count: int) -> None:
    state = store(s0_c0=reads(2))
    state.delivered[IN] = count
    with expect(3, f"{count} delivered of 2"):
        audit_of(state)


@pytest.mark.parametrize(
    ("build", "taken"), [(reads(2), 2), (reads(2, final=True), 2)], ids=["not ended", "not consumed"]
)
def test_a_probe_before_the_end_of_its_build_side_breaks_invariant_1(
    build: list[LineageRecord], taken: int
) -> None:
    with expect(1, "before its build side is consumed"):
        audit_of(store(join(), s0_c0=build, s1_c0=reads(1), s2_c0=[*drew(taken), *drew(1, link=1)]))


def test_a_probe_after_its_build_side_passes() -> None:
    build = reads(2, final=True)
    audit_of(store(join(), s0_c0=build, s1_c0=reads(1), s2_c0=[*drew(3), *drew(1, link=1)]))


def test_a_channel_assigned_to_a_worker_that_is_no_member_breaks_invariant_5() -> None:
    state = store(s0_c0=reads(1))
    state.channels[S1] = replace(state.channels[S1], host=C)
    with expect(5, "assigned to w2, which is no member"):
        audit_of(state)
    state.gate_open = False
    audit_of(state)


def test_a_gate_that_opens_or_closes_without_a_new_epoch_breaks_invariant_6() -> None:
    state = store()
    audit = audit_of(state)
    state.gate_open = False
    with expect(6, "without a new epoch"):
        audit.check_store(state)
    state.epoch += 1
    audit.check_store(state)


def test_an_epoch_that_falls_breaks_invariant_6() -> None:
    state = store()
    audit = audit_of(state)
    state.epoch -= 1
    with expect(6, "without a new epoch"):
        audit.check_store(state)


def test_a_claim_of_a_worker_that_is_no_member_breaks_invariant_5() -> None:
    state = store(s0_c0=reads(1))
    state.claims[C, 0] = ReRead(S0, 0, 1, (IN,))
    with expect(5, "w2, which is no member, holds the claim"):
        audit_of(state)


def test_a_record_after_a_channel_was_closed_breaks_invariant_2() -> None:
    closed, longer = store(s0_c0=reads(1)), store(s0_c0=reads(2))
    closed.channels[S0] = replace(closed.channels[S0], closed=True)
    audit = audit_of(closed)
    with expect(2, "a record after it was closed"):
        audit.check_store(longer)


# --- the workers -------------------------------------------------------------------------------------------


@dataclass
class Scene:
    """A healthy query: s0, with two outputs, and s1, which has drawn the first, on w0; the collector idle."""

    state: StoredQuery
    worker: WorkerState
    head: WorkerState

    def channel_run(self, name: ChannelName) -> ChannelRun:
        return self.worker.runs[name]

    def check(self) -> None:
        audit = audit_of(self.state)
        audit.check_worker(self.state, A, self.worker)
        audit.check_reachable(self.state, {A: self.worker, HEAD: self.head})


def worker_state(names: tuple[ChannelName, ...], backups: set[TaskName]) -> WorkerState:
    outbox = Outbox(GRAPH)
    routes = {name: HEAD if name == SINK else A for name in GRAPH.channels}
    outbox.begin_epoch({e: 0 for name in names for e in GRAPH.edges_from(name)}, routes, names)
    host = WorkerContext(GRAPH, Static(1), outbox, epoch=3)
    runs = {name: ChannelRun(host, name, Inbox(GRAPH, name, 100), 0, 0) for name in names}
    for name in names:
        outbox.start(name, 0)
    return WorkerState(3, runs, outbox, backups)


def scene() -> Scene:
    state = store(s0_c0=reads(2), s1_c0=drew(1))
    worker = worker_state((S0, S1), {TaskName(*S0, 0), TaskName(*S0, 1), TaskName(*S1, 0)})
    made = Scene(state, worker, worker_state((SINK,), set()))
    for name, seq in ((S0, 0), (S0, 1), (S1, 0)):
        worker.outbox.publish(TaskName(*name, seq), ended=False)
    made.channel_run(S1).inbox.offer(piece(GRAPH, IN, 0))
    made.channel_run(S1).inbox.take(draw(0, c0=1))
    made.channel_run(S0).seq, made.channel_run(S1).seq = 2, 1
    return made


def test_a_healthy_query_passes() -> None:
    scene().check()


def spoil_consumed(s: Scene) -> None:
    s.channel_run(S1).inbox.offer(piece(GRAPH, IN, 1))
    s.channel_run(S1).inbox.take(draw(0, c0=1))


def spoil_host(s: Scene) -> None:
    s.state.channels[S1] = replace(s.state.channels[S1], host=B)


def spoil_delivered(s: Scene) -> None:
    s.state.delivered[IN] = 2


def spoil_outbox(s: Scene) -> None:
    s.worker.outbox.confirm(((IN, TaskName(*S0, 0)), (IN, TaskName(*S0, 1))), (True, True))


def spoil_producer(s: Scene) -> None:
    s.state.channels[S0] = replace(s.state.channels[S0], host=C, closed=True)
    s.worker.runs = {S1: s.channel_run(S1)}


def spoil_producers_run(s: Scene) -> None:
    s.worker.runs = {S1: s.channel_run(S1)}
    s.state.channels[S0] = replace(s.state.channels[S0], closed=True)


def spoil_own_run(s: Scene) -> None:
    s.worker.runs = {S0: s.channel_run(S0)}


def spoil_backup(s: Scene) -> None:
    s.worker.backups = {TaskName(*S0, 0), TaskName(*S1, 0)}


def spoil_publication(s: Scene) -> None:
    s.worker.outbox.start(S0, 0)


SPOILED: dict[str, tuple[Callable[[Scene], None], int, str]] = {
    "a worker that has consumed what its records do not say": (spoil_consumed, 3, "has consumed 2"),
    "a worker that runs what is not its own": (spoil_host, 6, "belongs to w1"),
    "an input that counts as delivered and is not there": (spoil_delivered, 5, "counts as delivered"),
    "an input that its sender alone takes as delivered": (spoil_outbox, 3, "takes it as delivered"),
    "an input whose producer's host is gone": (spoil_producer, 5, "host w2 is no member"),
    "an input whose producer nobody runs": (spoil_producers_run, 5, r"does not run s0\.c0"),
    "a channel that its host does not run": (spoil_own_run, 5, r"does not run s1\.c0"),
    "an input that is published without a backup": (spoil_backup, 5, "not backed up"),
    "an input that was passed without being published": (spoil_publication, 5, "without publishing"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_worker_that_is_wrong_in_one_way_is_found_out(case: str) -> None:
    spoil, number, what = SPOILED[case]
    wrong = scene()
    spoil(wrong)
    with expect(number, what):
        wrong.check()


def test_what_a_re_read_is_going_to_bring_does_not_lack_a_source() -> None:
    s = scene()
    spoil_delivered(s)
    s.state.rereads.append(ReRead(S0, 1, 2, (IN,)))
    s.check()


def test_what_the_attempt_in_flight_has_drawn_is_not_missing() -> None:
    s = scene()
    spoil_consumed(s)
    s.channel_run(S1).drawing = draw(0, c0=1)
    s.check()


def test_a_closed_gate_and_an_older_epoch_excuse_a_worker() -> None:
    for spoil in (spoil_consumed, spoil_host):
        s = scene()
        spoil(s)
        s.state.gate_open = False
        s.check()
        s = scene()
        spoil(s)
        s.worker.epoch = 2
        audit_of(s.state).check_worker(s.state, A, s.worker)


# --- plans -------------------------------------------------------------------------------------------------


def two_stages() -> tuple[StageGraph, Snapshot]:
    """s1 and the reader s0 are lost, s0's outputs are needed again; s2 lives."""
    graph = chain(2)
    before = snapshot(graph, {(0, 0): at(B, 4), (1, 0): at(B, 2), (2, 0): at(A, 1)}, members=(A, C))
    return graph, before


WRONG_PLANS: dict[str, Callable[[RecoveryPlan], RecoveryPlan]] = {
    "one rewound too many": lambda p: replace(
        p, hosts={**p.hosts, ChannelName(2, 0): C}, rewound=(*p.rewound, ChannelName(2, 0))
    ),
    "one too few": lambda p: replace(p, hosts={ChannelName(0, 0): C}, rewound=()),
    "one moved that should be rewound": lambda p: replace(p, rewound=()),
    "a re-read too few": lambda p: replace(p, rereads=()),
    "a re-read too short": lambda p: replace(p, rereads=(replace(p.rereads[0], first=1),)),
    "a re-read too many": lambda p: replace(
        p, rereads=(*p.rereads, ReRead(ChannelName(0, 0), 4, 5, p.rereads[0].edges))
    ),
}


@pytest.mark.parametrize("case", WRONG_PLANS)
def test_a_plan_that_rewinds_or_reads_more_or_less_than_needed_breaks_invariant_8(case: str) -> None:
    graph, before = two_stages()
    plan = reconcile(graph, before)
    check_smallest(graph, before, plan)
    with expect(8, "rewound or moved"):
        check_smallest(graph, before, WRONG_PLANS[case](plan))


def test_a_plan_that_its_own_result_would_change_again_breaks_invariant_9() -> None:
    """It leaves a channel with the worker that is gone, so the next reconcile would move it once more."""
    graph = chain(1)
    before = snapshot(graph, {(0, 0): at(A, 4), (1, 0): at(B, 2)}, members=(A, C))
    plan = replace(reconcile(graph, before), hosts={ChannelName(1, 0): B})
    with expect(9, "still changes something"):
        Audit(graph).planned(before, plan)


def test_a_violation_tells_its_number() -> None:
    assert InvariantViolation(6, "somebody wrote").number == 6
    assert InvariantViolation(6, "somebody wrote").what == "Invariant 6: somebody wrote."
