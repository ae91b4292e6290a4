"""A sort of more than memory holds: what is divided, what is read, and that a little memory is enough for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.trees import column

from wallaby.batches.chunks import Chunks, spooled
from wallaby.batches.sizes import value_bytes
from wallaby.batches.stored import StoredBatches
from wallaby.batches.task_timing import taken
from wallaby.operators.spill import sorting
from wallaby.operators.spill.sorting import ExternalSort
from wallaby.relations.expression import SortKey
from wallaby.relations.relation import Input, Sort
from wallaby.relations.types import LONG, STRING
from wallaby.statements.connection import DuckDbSession, KernelSettings

MIB = 1 << 20
V, T = column(1, LONG), column(2, STRING)
SORT = Sort(Input(0, (V, T)), (SortKey(T, True, True),))


@pytest.fixture
def settings(tmp_path: Path) -> KernelSettings:
    """A part is 8 MiB."""
    return KernelSettings(memory_bytes=32 * MIB, portion_bytes=MIB, temp_directory=tmp_path)


@pytest.fixture
def session(settings: KernelSettings) -> Iterator[DuckDbSession]:
    found = DuckDbSession(settings)
    yield found
    found.close()


def long_texts(count: int, keys: int) -> pa.RecordBatch:
    """Texts of about a kilobyte, of which so many are different, in no order."""
    chosen = np.random.default_rng(3).integers(0, keys, count)
    texts = pc.binary_join_element_wise(pa.array(chosen).cast(pa.string()), "wombat " * 145, "-")
    return pa.record_batch([pa.array(np.arange(count)), texts], names=["c1", "c2"])


def sorted_rows(
    session: DuckDbSession, settings: KernelSettings, rows: Chunks, reach: int | None = None
) -> pa.Table:
    return pa.Table.from_batches(ExternalSort(SORT, reach, settings).run(session, rows))


def require_sorted(found: pa.Table, batch: pa.RecordBatch) -> None:
    assert found["c2"].to_pylist() == sorted(batch.column(1).to_pylist())
    assert sorted(found["c1"].to_pylist()) == batch.column(0).to_pylist()
    assert (
        found.sort_by("c1")["c2"]
        .combine_chunks()
        .equals(pa.chunked_array([batch.column(1)]).combine_chunks())
    )


def test_a_batch_that_is_larger_than_a_part_is_sorted_in_pieces(
    session: DuckDbSession, settings: KernelSettings
) -> None:
    batch = long_texts(40_000, keys=1 << 40)
    rows = Chunks((batch,), (), value_bytes((batch,)))
    assert rows.value_bytes > settings.memory_bytes
    require_sorted(sorted_rows(session, settings, rows), batch)


@pytest.mark.parametrize("keys", [1, 2, 7, 1 << 40])
def test_ranges_that_are_too_large_are_divided_again(
    session: DuckDbSession, settings: KernelSettings, monkeypatch: pytest.MonkeyPatch, keys: int
) -> None:
    """With two ranges at a time each is too large, until it is small enough or has one key."""
    made: list[object] = []

    class Counted(StoredBatches):
        def __init__(self, schema: pa.Schema, directory: Path) -> None:
            made.append(self)
            super().__init__(schema, directory)

    monkeypatch.setattr(sorting, "_RANGES_MAX", 2)
    monkeypatch.setattr(sorting, "StoredBatches", Counted)
    batch = long_texts(40_000, keys)
    rows = spooled(pa.Table.from_batches([batch]).to_batches(4_000), 0, settings.temp_directory)
    require_sorted(sorted_rows(session, settings, rows), batch)
    assert (len(made) > 2) == (keys > 2)


def test_a_sample_that_says_nothing_does_no_harm(
    session: DuckDbSession, settings: KernelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row that is looked at has the same text; the others are in one range, which is divided again."""
    monkeypatch.setattr(sorting, "_every", lambda batch, _every, _first: batch.slice(0, 1))
    batch = long_texts(20_000, keys=1 << 40)
    texts = batch.column(1).to_pylist()
    texts[::4_000] = ["m"] * 5
    batch = pa.record_batch([batch.column(0), pa.array(texts)], names=["c1", "c2"])
    rows = Chunks(tuple(pa.Table.from_batches([batch]).to_batches(4_000)), (), value_bytes((batch,)))
    require_sorted(sorted_rows(session, settings, rows), batch)


def test_rows_that_a_top_k_cannot_want_are_not_written(
    session: DuckDbSession, settings: KernelSettings
) -> None:
    batch = long_texts(40_000, keys=1 << 40)
    rows = Chunks(tuple(pa.Table.from_batches([batch]).to_batches(4_000)), (), value_bytes((batch,)))
    taken()
    found = sorted_rows(session, settings, rows, reach=2_000)
    assert taken().spilled_bytes < rows.value_bytes
    assert found["c2"].to_pylist()[:2_000] == sorted(batch.column(1).to_pylist())[:2_000]


def test_a_stored_batch_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([1, None, 3, 4]),
            "t": pa.array(["a", None, "", "long " * 50]),
            "l": pa.array([[1], [], None, [2, None]]),
        }
    )
    (batch,) = table.to_batches()
    stored = StoredBatches(batch.schema, tmp_path)
    numbers = [stored.append(piece) for piece in (batch, batch.slice(1, 2), batch.slice(3))]
    assert [stored.read(number).num_rows for number in reversed(numbers)] == [1, 2, 4]
    last = stored.read(numbers[1])
    stored.close()
    assert last.equals(batch.slice(1, 2))
    assert not list(tmp_path.iterdir())
