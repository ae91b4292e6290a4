"""Readers of results that stay are judged by what they ask for: whom they accuse, and how long they wait."""

from __future__ import annotations

from random import Random

import pytest

from wallaby.coordinator.query import Query
from wallaby.errors import KeptResultError
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby_lab.invariants.audit import Audit, InvariantViolation
from wallaby_lab.simulation.drawn.stay import SOON_MS, Visit
from wallaby_lab.simulation.drawn.workload import draw_workload
from wallaby_lab.simulation.judges.scrutiny import Scrutiny
from wallaby_lab.simulation.judges.visiting import SLACK_MS, Reader
from wallaby_lab.simulation.run import draw
from wallaby_lab.simulation.world.running import Running

A, B = WorkerId("w1"), WorkerId("w2")
C = ChannelName(1, 0)


@pytest.fixture
def reader() -> Reader:
    workload = draw_workload(Random(1))
    running = Running(
        Query(QueryId("q1"), workload.graph),
        workload,
        Audit(workload.graph),
        Scrutiny(workload.graph, draw(1)[0].session),
    )
    return Reader(running, Visit(0, 1, SOON_MS), 0)


def test_a_worker_that_answers_again_must_be_excused_at_once(reader: Reader) -> None:
    reader.asks(10, A)
    reader.says(A, reachable=False)
    reader.asks(20, A)
    reader.gets(A, 0, 30)
    with pytest.raises(InvariantViolation, match="stays accused"):
        reader.asks(40, A)
    reader.says(A, reachable=True)
    reader.asks(40, A)


def test_a_worker_that_has_answered_must_not_be_accused(reader: Reader) -> None:
    reader.asks(10, A)
    reader.gets(A, 0, 20)
    with pytest.raises(InvariantViolation, match="which has answered it"):
        reader.says(A, reachable=False)


def test_a_reader_waits_on_while_something_moves(reader: Reader) -> None:
    reader.is_told(3, 400)
    reader.error = KeptResultError("Nothing came.")
    reader.ends(SOON_MS + 1, gone=False)
    reader.is_told(4, 500)
    with pytest.raises(InvariantViolation, match="failed without a reason"):
        reader.ends(500 + SOON_MS, gone=False)
    reader.asks(500 + SOON_MS + SLACK_MS, A)


def test_a_reader_gives_up_neither_too_soon_nor_too_late(reader: Reader) -> None:
    reader.asks(10, A)
    reader.gets(A, 1, 500)
    reader.error = KeptResultError("Nothing came.")
    with pytest.raises(InvariantViolation, match="failed without a reason"):
        reader.ends(500 + SOON_MS, gone=False)
    reader.ends(500 + SOON_MS, gone=True)
    reader.ends(501 + SOON_MS, gone=False)
    with pytest.raises(InvariantViolation, match="goes on waiting"):
        reader.asks(501 + SOON_MS + SLACK_MS)


def test_a_reader_with_less_than_the_whole_result_has_not_read_it(reader: Reader) -> None:
    with pytest.raises(InvariantViolation, match="got a wrong result"):
        reader.ends(10, gone=False)


def test_a_worker_that_does_not_answer_must_be_accused_at_once(reader: Reader) -> None:
    reader.asks(10, A)
    with pytest.raises(InvariantViolation, match="does not say that w1 has not answered"):
        reader.asks(320)
    reader.error = KeptResultError("Nothing came.")
    with pytest.raises(InvariantViolation, match="does not say that w1 has not answered"):
        reader.ends(SOON_MS + 1, gone=False)
    reader.ends(SOON_MS + 1, gone=True)
    reader.says(A, reachable=False)
    reader.asks(320)


def test_a_reader_goes_to_the_worker_that_it_was_last_told_of(reader: Reader) -> None:
    reader.is_sent(C, B)
    with pytest.raises(InvariantViolation, match="which is at w2"):
        reader.asks(10, A, C)
    reader.asks(10, A, ChannelName(1, 1))
    reader.gets(A, 0, 20)
    reader.asks(30)
    reader.is_sent(C, A)
    reader.asks(40, A, C)
