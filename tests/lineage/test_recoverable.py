"""What outlives a worker: states that records tell of, where a lost channel goes on, and outputs nobody makes again."""

from __future__ import annotations

from tests.builders import at, chain, draw, snapshot

from wallaby.lineage.lineage import LineageRecord, decode, encode, key_of
from wallaby.lineage.names import HEAD, ChannelName, Edge, Upstream, WorkerId
from wallaby.lineage.reconcile import reconcile
from wallaby.lineage.recoverable import INITIAL, Checkpoint, Recoverable, checkpoints, recoverable
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.tolerance import LINEAGE, POLICIES
from wallaby_lab.invariants.audit import check_smallest

SPOOL = POLICIES["spool"]
A, B, C = map(WorkerId, "ABC")
#: One reader, a stage after it, another after that, and the collector.
GRAPH = chain(2)
READER, FIRST, SECOND, SINK = (ChannelName(stage, 0) for stage in range(4))
IN, BETWEEN, OUT = Edge(0, 0, 0), Edge(1, 0, 0), Edge(2, 0, 0)
#: Two states of the first stage: after 2 tasks it had consumed 3 outputs, after 4 tasks 7.
STATES = (Checkpoint(2, {Upstream(0, 0): 3}), Checkpoint(4, {Upstream(0, 0): 7}))


def lost(delivered: dict[Edge, int], *, base: int = 0, **hosts: WorkerId) -> Snapshot:
    """The first stage has five records; who hosts what, by name of the stage; C is the one that lives."""
    channels = {
        READER: at(hosts.get("reader", C), 9),
        FIRST: at(hosts.get("first", C), 5, base=base),
        SECOND: at(hosts.get("second", C), 1),
        SINK: at(HEAD),
    }
    return snapshot(GRAPH, channels, delivered=delivered, members=(C,))


def planned(before: Snapshot, left: Recoverable) -> RecoveryPlan:
    plan = reconcile(GRAPH, before, left)
    check_smallest(GRAPH, before, plan, left)
    return plan


def test_records_tell_which_states_were_saved_and_what_was_consumed_by_then() -> None:
    records = [
        LineageRecord(0, draw=draw(0, c0=3)),
        LineageRecord(0, draw=draw(0, c0=4), saved=True),
        LineageRecord(0, final=True),
    ]
    data = [encode(record) for record in records]
    assert [decode(each) for each in data] == records
    assert checkpoints(data) == (Checkpoint(2, {Upstream(0, 0): 7}),)
    assert recoverable(POLICIES["checkpoint+lineage"], {FIRST: data}).states == {FIRST: checkpoints(data)}
    assert recoverable(LINEAGE, {FIRST: data}) == Recoverable()


def test_the_key_of_a_state_is_that_of_its_record_saved_or_not() -> None:
    one, other = LineageRecord(7, draw=draw(0, c0=3)), LineageRecord(7, draw=draw(0, c0=4))
    assert key_of(one) == key_of(LineageRecord(7, draw=draw(0, c0=3), saved=True)) != key_of(other)


def test_the_newest_state_up_to_a_task() -> None:
    left = Recoverable(states={FIRST: STATES})
    assert [left.newest(FIRST, end).seq for end in (0, 1, 2, 3, 4, 9)] == [0, 0, 2, 2, 4, 4]
    assert left.newest(SECOND, 9) == INITIAL


def test_a_lost_channel_goes_on_from_the_newest_state_before_which_nobody_needs_its_outputs() -> None:
    left = Recoverable(states={FIRST: STATES})
    for held, base, consumed in ((5, 4, 7), (4, 4, 7), (3, 2, 3), (1, 0, 0)):
        plan = planned(lost({BETWEEN: held, IN: 9}, first=A), left)
        assert plan.rewound == (FIRST,)
        assert plan.bases.get(FIRST, 0) == base
        assert plan.delivered == {IN: consumed}


def test_a_channel_that_lives_goes_back_if_what_is_needed_was_made_before_its_state() -> None:
    left = Recoverable(states={FIRST: STATES})
    plan = planned(lost({BETWEEN: 5, IN: 9}, base=4, second=A), left)
    assert set(plan.rewound) == {FIRST, SECOND}, (
        "the second stage needs all, and the first has only what came after 4"
    )
    assert plan.bases == {FIRST: 0}
    assert planned(lost({BETWEEN: 5, IN: 9}, base=0, second=A), left).rewound == (SECOND,)


def test_where_outputs_are_kept_a_loss_costs_only_the_state_of_what_was_lost() -> None:
    plan = planned(lost({BETWEEN: 1, IN: 9}, reader=A, first=B, second=B), Recoverable(SPOOL))
    assert set(plan.rewound) == {FIRST, SECOND}
    assert set(plan.hosts) == {READER, FIRST, SECOND}
    assert (plan.rereads, plan.bases) == ((), {})
    assert plan.delivered == {IN: 0, BETWEEN: 0}
    alone = planned(lost({BETWEEN: 1, IN: 9}, first=B, reader=C), Recoverable(SPOOL, {FIRST: STATES}))
    assert (alone.rewound, alone.bases, alone.delivered) == ((FIRST,), {FIRST: 4}, {IN: 7})


def test_where_outputs_are_kept_a_channel_that_has_ended_only_moves() -> None:
    before = lost({BETWEEN: 1, IN: 9}, first=A)
    channels = {**before.channels, FIRST: at(A, 5, final=True), READER: at(A, 9, final=True)}
    before = snapshot(GRAPH, channels, delivered={BETWEEN: 1, IN: 9}, members=(C,))
    plan = planned(before, Recoverable(SPOOL))
    assert (plan.hosts, plan.rewound, plan.delivered) == ({FIRST: C}, (), {})
