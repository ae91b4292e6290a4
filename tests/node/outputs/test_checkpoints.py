"""Saved states: incremental, found by task and record, and the same batches again."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spoiling import SPOILS

from wallaby.errors import DurableStoreError
from wallaby.exchange.durable import DurableStore
from wallaby.lineage.effects import RestoredState, RestoreState, SaveState
from wallaby.lineage.names import QueryId, TaskName, Upstream
from wallaby.node.outputs.checkpoints import Checkpoints
from wallaby.operators.state import EMPTY

TASK = TaskName(2, 1, 3)
TOTALS = {Upstream(0, 1): 5}


def batch(size: int, name: str = "n") -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(range(size), pa.int64())})


def saving(directory: Path, seconds: float = 0.0) -> Checkpoints:
    return Checkpoints(DurableStore(str(directory), "e"), QueryId("q"), seconds)


def test_a_state_comes_back_as_it_was_and_only_what_is_new_is_written(tmp_path: Path) -> None:
    state = replace(EMPTY.with_combined((batch(10_000),)), rows_passed=7, shrinks=False)
    here = saving(tmp_path)
    first = here.save(SaveState(TASK, "a", state, TOTALS))
    assert first > 80_000
    grown = state.with_waiting((batch(10, "other"), batch(10, "other")))
    later = TaskName(2, 1, 4)
    assert here.save(SaveState(later, "b", grown, TOTALS)) < 3_000
    elsewhere = saving(tmp_path)
    assert elsewhere.restore(RestoreState(TASK, "a")) == (state, TOTALS)
    assert elsewhere.restore(RestoreState(later, "b")) == (grown, TOTALS)


def test_a_channel_without_a_state_yet_can_be_saved(tmp_path: Path) -> None:
    saving(tmp_path).save(SaveState(TASK, "a", None, {}))
    assert saving(tmp_path).restore(RestoreState(TASK, "a")) == (EMPTY, {})


def test_another_attempt_is_another_state(tmp_path: Path) -> None:
    here = saving(tmp_path)
    here.save(SaveState(TASK, "a", EMPTY.with_combined((batch(1),)), {}))
    here.save(SaveState(TASK, "b", EMPTY.with_combined((batch(2),)), {}))
    state, _ = here.restore(RestoreState(TASK, "a"))
    assert state.combined == (batch(1),)
    with pytest.raises(DurableStoreError, match=r"s2\.c1\.t3"):
        here.restore(RestoreState(TASK, "c"))


@pytest.mark.parametrize("how", SPOILS)
def test_a_spoilt_state_is_an_error_and_never_another_state(tmp_path: Path, how: str) -> None:
    here = saving(tmp_path)
    state = EMPTY.with_combined((batch(100),)).with_waiting((batch(100, "other"),))
    for seq in (1, 2):  # each of two schemas, so three objects
        state = replace(state, rows_passed=seq).with_combined((batch(100 + seq),))
        here.save(SaveState(TaskName(2, 1, seq), "a", state, TOTALS))
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) == 5, "two states, and batches of two schemas and of one"
    whole = {file: file.read_bytes() for file in files}
    for spoilt in (
        [[file, other] for file, other in combinations(files, 2)]
        if how == "swapped"
        else [[f] for f in files]
    ):
        SPOILS[how](spoilt)
        with pytest.raises(DurableStoreError, match=r"q/states/s2\.c1/"):
            restored(tmp_path, 1, 2)
        for file, data in whole.items():
            file.write_bytes(data)
    assert restored(tmp_path, 2) == [(state, TOTALS)]


def restored(directory: Path, *numbers: int) -> list[RestoredState]:
    return [saving(directory).restore(RestoreState(TaskName(2, 1, seq), "a")) for seq in numbers]


def test_a_state_is_saved_no_more_often_than_asked(tmp_path: Path) -> None:
    assert saving(tmp_path).is_due(TASK.of)
    rarely = saving(tmp_path, 3600)
    assert not rarely.is_due(TASK.of)
    assert not rarely.is_due(TASK.of)
