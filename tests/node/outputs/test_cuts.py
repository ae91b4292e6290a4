"""Parts of coordinated snapshots in the durable store, and barriers as bodies that are kept and sent."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest
from tests.builders import broadcast_to_execute
from tests.spoiling import SPOILS

from wallaby.errors import DurableStoreError
from wallaby.exchange.backup import Backup
from wallaby.exchange.body import decode, encode
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.memory import ByteBudget
from wallaby.lineage.barriers import Barrier, BesideCut, ChannelCut, RestoreCut, SaveCut, Start
from wallaby.lineage.effects import Slice
from wallaby.lineage.names import ChannelName, Edge, QueryId, TaskName, Upstream
from wallaby.node.outputs.checkpoints import Checkpoints
from wallaby.node.outputs.cuts import Cuts, as_body, bodies_of, with_barriers
from wallaby.operators.state import EMPTY

GRAPH = broadcast_to_execute()
SIDE, MAIN, FIRST, SECOND, SINK = GRAPH.channels
START = Start(QueryId("q"), 3, (Upstream(2, 1),))
TASK = TaskName(*SIDE, 0)


def batch(size: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(size), pa.int64())})


def cuts(directory: Path, query: str = "q", seconds: float = 0.0) -> Cuts:
    store = DurableStore(str(directory), "e")
    return Cuts(store, QueryId(query), GRAPH, Checkpoints(store, QueryId(query), seconds), seconds)


def saved(here: Cuts, channel: ChannelName, cut: ChannelCut) -> int:
    return here.save(SaveCut(TaskName(*channel, 0), START.number, cut))


def beside(
    *bodies: pa.RecordBatch | None, consumer: int = 0, ended: bool = False
) -> tuple[Upstream, BesideCut]:
    edge = Edge(0, 0, consumer)
    pieces = [
        Slice(TaskName(0, 0, seq), edge, False, 8, None if body is None else (body,))
        for seq, body in enumerate(bodies)
    ]
    return Upstream(0, 0), BesideCut(tuple(pieces), ended)


def test_a_part_comes_back_as_it_was_in_another_run(tmp_path: Path) -> None:
    state = EMPTY.with_combined((batch(10),)).with_waiting((batch(3),))
    whole = ChannelCut(state, None, (Upstream(1, 0),), (beside(batch(5), None),), (7,))
    saved(cuts(tmp_path), FIRST, whole)
    assert cuts(tmp_path, "q-2").restore(RestoreCut(FIRST, START)) == whole
    saved(cuts(tmp_path), MAIN, ChannelCut(None, split=12))
    assert cuts(tmp_path, "q-2").restore(RestoreCut(MAIN, START)) == ChannelCut(EMPTY, split=12)


def test_the_channels_of_a_worker_write_and_read_a_side_input_once(tmp_path: Path) -> None:
    here, shared = cuts(tmp_path), batch(10_000)
    assert saved(here, FIRST, ChannelCut(None, beside=(beside(shared),))) > 80_000
    assert saved(here, SECOND, ChannelCut(None, beside=(beside(shared, consumer=1),))) < 3_000
    there = cuts(tmp_path, "q-2")
    found = [there.restore(RestoreCut(channel, START)) for channel in (FIRST, SECOND)]
    bodies = [cut.beside[0][1].slices[0].body for cut in found if cut is not None]
    assert isinstance(bodies[0], tuple)
    assert isinstance(bodies[1], tuple)
    assert bodies[0][0] is bodies[1][0]


def test_a_channel_without_a_part_had_ended_if_its_consumer_says_so(tmp_path: Path) -> None:
    saved(cuts(tmp_path), FIRST, ChannelCut(None, ended=(Upstream(1, 0),), beside=(beside(ended=True),)))
    again = cuts(tmp_path, "q-2")
    assert again.restore(RestoreCut(MAIN, START)) is None
    assert again.restore(RestoreCut(SIDE, START)) is None
    assert again.restore(RestoreCut(SECOND, START)) is None, "the collector says so"


@pytest.mark.parametrize("missing", [MAIN, SIDE, FIRST])
def test_a_part_that_is_missing_is_an_error_and_never_taken_for_an_end(
    tmp_path: Path, missing: ChannelName
) -> None:
    here = cuts(tmp_path)
    for channel in {SIDE, MAIN, FIRST, SECOND} - {missing}:
        saved(here, channel, ChannelCut(None, beside=(beside(),) if channel.stage == 2 else ()))
    with pytest.raises(DurableStoreError, match=rf"states/{missing}/snapshot-3: it is missing"):
        cuts(tmp_path, "q-2").restore(RestoreCut(missing, START))


@pytest.mark.parametrize("how", SPOILS)
def test_a_spoilt_part_is_an_error_and_never_another_part(tmp_path: Path, how: str) -> None:
    here = cuts(tmp_path)
    for number, channel in enumerate((FIRST, SECOND), 1):
        state = EMPTY.with_combined((batch(100 + number),))
        saved(here, channel, ChannelCut(state, beside=(beside(batch(200 + number), consumer=number - 1),)))
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) == 6, "two parts, and for each a state and a side input"
    whole = {file: file.read_bytes() for file in files}
    for spoilt in (
        [[a, b] for a, b in combinations(files, 2)] if how == "swapped" else [[file] for file in files]
    ):
        SPOILS[how](spoilt)
        there = cuts(tmp_path, "q-2")
        with pytest.raises(DurableStoreError, match=r"q/states/s2\.c"):
            [there.restore(RestoreCut(channel, START)) for channel in (FIRST, SECOND)]
        for file, data in whole.items():
            file.write_bytes(data)


def test_snapshots_come_one_in_so_many_seconds_or_before_every_read(tmp_path: Path) -> None:
    assert cuts(tmp_path).due(4) == 5
    assert cuts(tmp_path, seconds=3600).due(0) == 0
    assert cuts(tmp_path, seconds=1e-9).due(4) > 0


@pytest.mark.parametrize("barrier", [Barrier(1), Barrier(1 << 40, void=True)])
def test_a_barrier_is_kept_and_sent_like_rows_and_stays_a_barrier(tmp_path: Path, barrier: Barrier) -> None:
    query, edge = QueryId("q"), Edge(0, 0, 0)
    bodies = bodies_of({edge: (0, barrier)})
    for budget in (1 << 20, 0):
        backup = Backup(ByteBudget(budget), (tmp_path,), 1 << 20)
        assert backup.keep(query, TASK, bodies, final=False)
        body, _, _ = backup.slice_of(query, TASK, edge)
        backup.close()
        (sent,) = with_barriers((Slice(TASK, edge, False, 0, body),))
        assert sent.body == barrier
    arrived = decode(encode(as_body(barrier)), 1)
    (piece,) = with_barriers((Slice(TASK, edge, False, 0, arrived),))
    assert piece == Slice(TASK, edge, False, 0, barrier)


@pytest.mark.parametrize("body", [None, (batch(0),), (batch(3),), (batch(0), batch(0))])
def test_other_bodies_are_no_barriers(body: tuple[pa.RecordBatch, ...] | None) -> None:
    piece = Slice(TASK, Edge(0, 0, 0), True, 8, as_body(body))
    assert with_barriers((piece,)) == (piece,)
