"""Rows of hundreds of columns under a small budget: fewer of them are taken at once, and batches are not too small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.trees import aggregation, column, named, tuples

from wallaby.batches.chunks import Chunks
from wallaby.batches.sizes import value_bytes
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.operators.spill.external import External
from wallaby.operators.spill.parts import cut_into_parts
from wallaby.plan.physical import MapFragment, ReduceFragment
from wallaby.relations.relation import Aggregate, Input
from wallaby.relations.types import DOUBLE, LONG, STRING
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import KernelSettings, close_thread_session, thread_session
from wallaby.statements.widths import divided, rows_at_once

WIDTH, ROWS = 500, 900
TYPES = (LONG, DOUBLE, STRING)
COLUMNS = (column(1, LONG), *(column(2 + i, TYPES[i % 3]) for i in range(WIDTH)))
SCHEMA = arrow_schema(COLUMNS)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[KernelSettings]:
    """Of a TaskManager with 128 MiB and one kernel thread."""
    yield KernelSettings(memory_bytes=42 << 20, portion_bytes=4 << 20, temp_directory=tmp_path)
    close_thread_session()


def rows(begin: int, end: int) -> pa.RecordBatch:
    numbers = pa.array(range(begin, end), pa.int64())
    every = [numbers, numbers.cast(pa.float64()), numbers.cast(pa.string())]
    arrays = [numbers, *(every[i % 3] for i in range(WIDTH))]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def totals(*, keys: bool) -> Aggregate:
    outputs = tuple(
        named(1000 + i, aggregation("sum" if keys and each.type == LONG else "max", each.type, each))
        for i, each in enumerate(COLUMNS[1:])
    )
    return Aggregate(Input(0, COLUMNS), (named(999, COLUMNS[0]),) if keys else (), outputs)


def expected(number: int) -> tuple[object, ...]:
    return tuple(str(number) if i % 3 == 2 else number for i in range(WIDTH))


def test_an_aggregation_of_hundreds_of_columns_takes_fewer_rows_at_once(settings: KernelSettings) -> None:
    kernel = make_kernel(MapFragment(totals(keys=True)), settings)
    state, result = kernel.step(EMPTY, inputs={0: [rows(0, ROWS)]})
    assert len(result.batches) == 1, "what several statements give is one batch"
    found = tuples(result.batches)
    while result.rest:
        state, result = kernel.step(state)
        found += tuples(result.batches)
    assert sorted(found) == [(n, *expected(n)) for n in range(ROWS)]


def test_groups_of_hundreds_of_columns_are_finished_part_by_part(settings: KernelSettings) -> None:
    tree = totals(keys=True)
    kernel = make_kernel(ReduceFragment(combine=None, finish=tree), settings)
    state = EMPTY
    for begin in range(0, ROWS, 300):
        state, _ = kernel.step(state, inputs={0: [rows(begin, begin + 300)]})
    state, result = kernel.step(state, last=True)
    found = tuples(result.batches)
    while result.rest:
        state, result = kernel.step(state)
        found += tuples(result.batches)
    assert sorted(found) == [(n, *expected(n)) for n in range(ROWS)]


@pytest.mark.parametrize("on_disk", [False, True])
def test_hundreds_of_functions_without_keys_are_computed_some_at_a_time(
    settings: KernelSettings, *, on_disk: bool
) -> None:
    tree, batch = totals(keys=False), rows(0, 900)
    assert len(divided(tree, settings)) > 1
    if on_disk:
        session, chunks = thread_session(settings), Chunks((batch,), (), value_bytes((batch,)))
        found = tuples(list(External(tree, settings).run(session, chunks)))
    else:
        _, result = make_kernel(MapFragment(tree), settings).step(EMPTY, inputs={0: [batch]})
        found = tuples(result.batches)
    assert found == [tuple("99" if i % 3 == 2 else 899 for i in range(WIDTH))]


def test_ordinary_widths_are_as_before(settings: KernelSettings) -> None:
    narrow = replace(
        totals(keys=True), child=Input(0, COLUMNS[:20]), aggregations=totals(keys=True).aggregations[:20]
    )
    assert rows_at_once(narrow, settings) is None
    assert divided(replace(narrow, keys=()), settings) == (replace(narrow, keys=()),)
    assert rows_at_once(totals(keys=True), replace(settings, memory_bytes=1 << 30)) is None


def test_parts_of_many_columns_are_few_batches_with_the_same_rows(settings: KernelSettings) -> None:
    """Each array of each batch is described in memory, though its values are on disk."""
    batches = tuple(rows(begin, begin + 100) for begin in range(0, ROWS, 100))
    chunks = Chunks(batches, (), value_bytes(batches))
    small = replace(settings, portion_bytes=512 << 10)
    parts = cut_into_parts(chunks, (0,), 20, thread_session(small), small)
    assert sum(len(part.batches) for part in parts) <= 20 + chunks.value_bytes // small.portion_bytes
    assert all(part.value_bytes == value_bytes(part.batches) for part in parts)
    found = [[int(str(row[0])) for row in tuples(part.batches)] for part in parts]
    assert all(numbers == sorted(numbers) for numbers in found), "in their order"
    assert sorted(number for numbers in found for number in numbers) == list(range(ROWS))
