"""Every check of the audit of snapshots can fail: each is shown something that is wrong in one way only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.builders import broadcast_to_execute, piece, pipeline

from wallaby.lineage.barriers import Barrier, BesideCut, ChannelCut, Start
from wallaby.lineage.effects import Output
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName, Upstream
from wallaby_lab.invariants import InvariantViolation
from wallaby_lab.invariants.cuts import CutAudit

GRAPH = pipeline()
S0, S1, SINK = GRAPH.channels
IN, OUT = Edge(0, 0, 0), Edge(1, 0, 0)
NOTHING: Mapping[ChannelName, ChannelCut] = {}
CUT = ChannelCut(None)


def expect(number: int, what: str) -> pytest.RaisesExc[InvariantViolation]:
    return pytest.raises(InvariantViolation, match=rf"Invariant {number}: .*{what}")


class Told:
    """An audit that is told of the outputs of channels, in order: rows, or a barrier's number (negative: void)."""

    def __init__(self, graph: StageGraph = GRAPH) -> None:
        self.graph = graph
        self.audit = CutAudit(graph, None, NOTHING)
        self._made: dict[ChannelName, int] = {}

    def makes(self, name: ChannelName, *bodies: object, ends: bool = False) -> None:
        for at, body in enumerate(bodies, 1):
            seq = self._made.get(name, 0)
            self._made[name] = seq + 1
            sent = Barrier(abs(body), void=body < 0) if isinstance(body, int) else body
            slices: dict[Edge, tuple[int, object]] = dict.fromkeys(self.graph.edges_from(name), (0, sent))
            final = ends and at == len(bodies)
            self.audit.keeping(TaskName(*name, seq), Output(0, slices), final=final)

    def snaps(self, name: ChannelName, number: int, cut: ChannelCut = CUT) -> None:
        self.audit.saving(name, number, cut)
        self.makes(name, number)

    def takes(self, seq: int, body: object = "rows") -> None:
        self.audit.executing(TaskName(*S1, 0), [piece(self.graph, IN, seq, body=body)], {})


def test_a_snapshot_of_what_was_consumed_passes_and_covers_what_is_given_out() -> None:
    told = Told()
    told.makes(S0, "rows")
    told.snaps(S0, 1)
    told.takes(0)
    told.makes(S1, "rows")
    told.snaps(S1, 1)
    told.audit.covering(1, (), [piece(GRAPH, OUT, 0)])
    told.makes(S0, "end", ends=True)
    told.makes(S1, "end", ends=True)
    told.audit.collecting([piece(GRAPH, OUT, 2, body="end", final=True)])


def test_a_part_that_lacks_rows_before_the_barrier_breaks_invariant_3() -> None:
    told = Told()
    told.makes(S0, "rows")
    told.snaps(S0, 1)
    with expect(3, r"s1\.c0 has consumed 0 of s0\.c0, not 1"):
        told.snaps(S1, 1)


def test_a_part_with_rows_from_behind_the_barrier_breaks_invariant_3() -> None:
    told = Told()
    told.snaps(S0, 1)
    told.makes(S0, "rows")
    told.takes(1)
    with expect(3, r"has consumed 2 of s0\.c0, not 0"):
        told.snaps(S1, 1)


def test_a_part_of_a_snapshot_that_was_given_up_breaks_invariant_3() -> None:
    told = Told()
    told.makes(S0, -1)
    with expect(3, "not None"):
        told.snaps(S1, 1)


def test_an_end_that_is_not_in_the_part_breaks_invariant_3() -> None:
    told = Told()
    told.makes(S0, "rows", ends=True)
    told.audit.executing(TaskName(*S1, 0), [piece(GRAPH, IN, 0, final=True)], {})
    with expect(3, "as ended=False"):
        told.snaps(S1, 1)


def test_a_barrier_before_its_part_or_out_of_order_breaks_invariant_1() -> None:
    told = Told()
    with expect(1, "has not saved its part"):
        told.makes(S0, 1)
    told = Told()
    told.makes(S0, -2)
    with expect(1, "sends barrier 1 after 2"):
        told.makes(S0, -1)


def test_a_part_that_is_saved_twice_breaks_invariant_2() -> None:
    told = Told()
    told.snaps(S0, 1)
    with expect(2, "again, or too late"):
        told.audit.saving(S0, 1, CUT)


def test_other_bytes_or_nothing_under_a_name_break_invariants_1_and_2() -> None:
    told = Told()
    told.makes(S0, "rows")
    with expect(2, "another content"):
        told.audit.leaving([piece(GRAPH, IN, 0, body="others")])
    with expect(1, "was not made"):
        told.audit.leaving([piece(GRAPH, IN, 1)])
    with expect(2, "is made after 1 outputs"):
        told.audit.keeping(TaskName(*S0, 0), Output(0, {}), final=False)


def test_a_slice_that_is_consumed_twice_or_too_early_breaks_invariant_1() -> None:
    told = Told()
    told.makes(S0, "rows", "rows")
    with expect(1, "where output 0 is due"):
        told.takes(1)
    told.takes(0)
    with expect(1, "where output 1 is due"):
        told.takes(0)


def test_a_barrier_that_is_consumed_as_rows_breaks_invariant_1() -> None:
    told = Told()
    told.snaps(S0, 1)
    with expect(1, "which is not for it"):
        told.takes(0, Barrier(1))


def test_a_snapshot_that_lacks_a_part_breaks_invariant_7() -> None:
    told = Told()
    told.audit.saved[S1, 1] = CUT
    told.makes(S1, 1)
    with expect(7, r"s0\.c0 has no part"):
        told.audit.covering(1, (), [])


def test_a_snapshot_that_comes_after_a_later_one_breaks_invariant_7() -> None:
    told = Told()
    told.snaps(S0, 2)
    told.snaps(S1, 2)
    told.audit.covering(2, (), [])
    with expect(7, "counts as complete after 2"):
        told.audit.covering(1, (), [])


def test_an_end_before_everything_was_made_breaks_invariant_7() -> None:
    told = Told()
    told.makes(S1, "rows")
    with expect(7, r"s1\.c0 is not consumed"):
        told.audit.collecting([piece(GRAPH, OUT, 0)])


def test_what_had_ended_before_a_roll_back_is_not_waited_for() -> None:
    start = Start(QueryId("q"), 3, (Upstream(1, 0),))
    audit = CutAudit(GRAPH, start, {})
    audit.collecting([])
    other = CutAudit(GRAPH, replace(start, ended=()), {})
    with expect(7, "is not consumed"):
        other.collecting([])


def test_a_side_input_cut_elsewhere_or_not_used_whole_breaks_invariants_1_and_3() -> None:
    graph, name = broadcast_to_execute(), ChannelName(2, 0)
    side = Edge(0, 0, 0)
    told = Told(graph)
    told.makes(ChannelName(0, 0), "first")
    told.snaps(ChannelName(0, 0), 1)
    told.makes(ChannelName(0, 0), "second")
    told.snaps(ChannelName(1, 0), 1)
    first, second = piece(graph, side, 0, body="first"), piece(graph, side, 2, body="second")
    beside = ((Upstream(0, 0), BesideCut((first, second), ended=False)),)
    with expect(3, "something else than was sent before 1"):
        told.audit.saving(name, 1, ChannelCut(None, beside=beside))
    with expect(3, "as ended=True"):
        told.audit.saving(
            name, 1, ChannelCut(None, beside=((Upstream(0, 0), BesideCut((first,), ended=True)),))
        )
    with expect(1, "and not all of it"):
        told.audit.executing(TaskName(*name, 0), [], {0: (first,)})
