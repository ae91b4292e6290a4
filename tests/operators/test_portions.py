"""Operators that multiply rows: what is between two of them, and what a step gives, is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trees import call, column, file_of, literal, named, rows_of, scan_of, tuples

from wallaby.batches.sizes import value_bytes
from wallaby.errors import MemoryLimitError
from wallaby.operators.kernel import EMPTY, KernelState, make_kernel
from wallaby.operators.program import Program
from wallaby.operators.state import StepResult
from wallaby.operators.taking import ALL, ReadPosition, first_pace, take
from wallaby.plan.physical import JoinFragment, MapFragment, ScanFragment, Split
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Filter, Input, Join, Project, Relation, Union, Unnest
from wallaby.relations.types import BOOLEAN, INTEGER, LONG, STRING, array
from wallaby.statements.connection import (
    OVER_PORTIONS,
    DuckDbSession,
    KernelSettings,
    NoRoomError,
    close_thread_session,
)
from wallaby.statements.growth import Growth

PORTION = 128 << 10
FAN_OUT = 400
A, B, C, D, E, F = (column(number, LONG) for number in range(6))
S = column(6, STRING)
PROBE, BUILD, NEXT = Input(1, (A, B)), Input(0, (C, D)), Input(2, (E, F))


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[KernelSettings]:
    yield KernelSettings(memory_bytes=32 << 20, portion_bytes=PORTION, temp_directory=tmp_path)
    close_thread_session()


def inner(left: Relation, right: Relation, ours: object, theirs: object) -> Join:
    columns = (*left.columns, *right.columns)
    return Join(left, right, JoinKind.INNER, (ours,), (theirs,), None, columns)  # type: ignore[arg-type]


def numbers(columns: Sequence[object], rows: int, keys: int) -> list[pa.RecordBatch]:
    return rows_of(columns, [(i % keys, i) for i in range(rows)])  # type: ignore[arg-type]


#: Two joins in a row, each of which finds many partners for every row.
TWO_JOINS = inner(inner(PROBE, BUILD, A, C), NEXT, C, E)


def two_joins() -> dict[int, list[pa.RecordBatch]]:
    return {
        1: numbers((A, B), 200, 4),
        0: numbers((C, D), 4 * FAN_OUT, 4),
        2: numbers((E, F), 4 * 20, 4),
    }


def test_what_is_between_two_joins_is_bounded(settings: KernelSettings) -> None:
    """The first join gives 400 times its input, 2.5 MiB, the second 20 times that."""
    session = DuckDbSession(settings)
    program = Program(TWO_JOINS, frozenset({0, 2}))
    inputs = two_joins()
    program.run(session, {**inputs, 1: numbers((A, B), 1, 4)})  # what is kept is made now
    before = pa.total_allocated_bytes()
    most = rows = 0
    for batch in program.stream(session, inputs):
        most = max(most, pa.total_allocated_bytes() - before)
        assert value_bytes((batch,)) <= PORTION
        rows += batch.num_rows
    session.close()
    assert rows == 200 * FAN_OUT * 20
    assert most < 8 * PORTION


def test_steps_that_branch_work_on_as_many_rows_as_there_is_room_for(settings: KernelSettings) -> None:
    joined = inner(PROBE, BUILD, A, C)
    other = inner(PROBE, NEXT, A, E)
    both = Union((joined, other), (A, B, C, D))
    session = DuckDbSession(replace(settings, memory_bytes=32 << 20))
    inputs = two_joins() | {1: numbers((A, B), 4000, 4)}
    found = sorted(tuples(Program(both, frozenset({0, 2})).run(session, inputs)))
    session.close()
    assert len(found) == 4000 * (FAN_OUT + 20)
    assert found[:3] == [(0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 4)]


def steps(kernel: object, state: KernelState, **first: object) -> Iterator[tuple[KernelState, StepResult]]:
    """A step, and those that go on with its rest."""
    state, result = kernel.step(state, **first)  # type: ignore[attr-defined]
    yield state, result
    kept = {"sides": first["sides"]} if "sides" in first else {}
    while result.rest:
        state, result = kernel.step(state, **kept)  # type: ignore[attr-defined]
        yield state, result


def test_a_join_takes_as_many_rows_as_give_an_output(settings: KernelSettings) -> None:
    """Nothing of what later steps give is made before: their rows wait as they came."""
    fragment = JoinFragment(inner(PROBE, BUILD, A, C))
    kernel = make_kernel(fragment, settings, {0: (0,), 1: (0,)})
    state, _ = kernel.step(EMPTY, inputs={0: numbers((C, D), 4 * FAN_OUT, 4)})
    probe = numbers((A, B), 4000, 4)
    found: list[tuple[object, ...]] = []
    for after, result in steps(kernel, state, inputs={1: probe}):
        made = value_bytes(result.batches) + value_bytes(after.outgoing)
        assert made <= OVER_PORTIONS * PORTION
        assert value_bytes(result.batches) <= PORTION
        assert value_bytes(after.pending) <= value_bytes(probe)
        found += tuples(result.batches)
    wanted = [(i % 4, i, i % 4, j) for i in range(4000) for j in range(i % 4, 4 * FAN_OUT, 4)]
    assert found == wanted


def test_steps_repeated_from_a_state_give_the_same(settings: KernelSettings) -> None:
    """Another kernel that takes an older state up gives the same portions, and learns the same pace."""
    fragment = JoinFragment(inner(PROBE, BUILD, A, C))
    first = make_kernel(fragment, settings, {0: (0,), 1: (0,)})
    state, _ = first.step(EMPTY, inputs={0: numbers((C, D), 4 * FAN_OUT, 4)})
    run = list(steps(first, state, inputs={1: numbers((A, B), 1000, 4)}))
    middle = run[len(run) // 2][0]
    again, result = make_kernel(fragment, settings, {0: (0,), 1: (0,)}).step(middle)
    wanted_state, wanted = run[len(run) // 2 + 1]
    assert [batch.to_pydict() for batch in result.batches] == [batch.to_pydict() for batch in wanted.batches]
    assert (again.pace, len(again.pending)) == (wanted_state.pace, len(wanted_state.pending))


def test_a_join_that_is_divided_gives_its_rows_as_they_are_taken(settings: KernelSettings) -> None:
    """Its sides are cut into pieces; what a step makes of them is bounded, and a state can be taken up by others."""
    small = replace(settings, memory_bytes=32 << 20)
    build = rows_of((C, S), [(i % 400, f"{i:05d}" + "x" * 20_000) for i in range(1200)])
    probe = rows_of((A, B), [(i % 50, i) for i in range(60)])
    fragment = JoinFragment(inner(Input(1, (A, B)), Input(0, (C, S)), A, C))
    kernel = make_kernel(fragment, small, {0: (0,), 1: (0,)})
    state, _ = kernel.step(EMPTY, inputs={0: build})
    state, result = kernel.step(state, inputs={1: probe})
    assert not result.batches, "the build side is not divided: the test shows nothing"
    found: list[tuple[object, ...]] = []
    run = [kernel.step(state, last=True)]
    while run[-1][1].rest:
        after, result = run[-1]
        assert value_bytes(result.batches) + value_bytes(after.outgoing) <= OVER_PORTIONS * PORTION
        run.append(kernel.step(after, last=True))
    for _, result in run:
        found += [(row[0], row[1], str(row[3])[:5]) for row in tuples(result.batches)]
    wanted = [(i % 50, i, f"{j:05d}") for i in range(60) for j in range(1200) if j % 400 == i % 50]
    assert sorted(found) == sorted(wanted)
    assert len(run) > 20
    middle = run[len(run) // 2]
    _, again = make_kernel(fragment, small, {0: (0,), 1: (0,)}).step(middle[0], last=True)
    assert tuples(again.batches) == tuples(run[len(run) // 2 + 1][1].batches)


def test_rows_are_weighed_before_a_function_makes_much_of_them(settings: KernelSettings) -> None:
    """Sixty-four rows of a million numbers each would be made at once, and only then be counted."""
    growth = Growth(exploded(Input(0, (A, B)), B), 0, settings)
    weights = growth.weigh(rows_of((A, B), [(1, 1_000_000), (2, 5), (3, None)]))
    assert weights is not None
    assert [int(weight) for weight in weights.sure] == [8_000_000, 40, 0]
    tried: list[int] = []

    def run(rows: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tried.append(sum(batch.num_rows for batch in rows))
        return iter(rows)

    rows = rows_of((A, B), [(i, 1_000_000) for i in range(5)])
    taken = take(rows, 3, run, settings, OVER_PORTIONS * PORTION, weigh=growth.weigh)
    assert (tried, taken.rows) == ([1] * 5, 5)


def test_one_row_that_makes_more_than_there_is_room_for_is_refused(settings: KernelSettings) -> None:
    kernel = make_kernel(MapFragment(exploded(Input(0, (A, B)), B)), settings)
    with pytest.raises(MemoryLimitError, match="A single row produces text or an array of 762 MiB"):
        kernel.step(EMPTY, inputs={0: rows_of((A, B), [(1, 100_000_000)])})


def test_a_row_that_a_filter_keeps_away_from_a_function_is_not_refused(settings: KernelSettings) -> None:
    few = Filter(Input(0, (A, B)), call("lt", BOOLEAN, B, literal(10, LONG)))
    numbers_of = call("sequence", array(LONG), literal(1, LONG), B)
    tree = Unnest(few, numbers_of, (A, B), None, (column(9, LONG),), fields=False, outer=False)
    kernel = make_kernel(MapFragment(tree), settings)
    found = [
        row
        for _, result in steps(kernel, EMPTY, inputs={0: rows_of((A, B), [(1, 100_000_000), (2, 3)])})
        for row in tuples(result.batches)
    ]
    assert found == [(2, 3, 1), (2, 3, 2), (2, 3, 3)]


def exploded(source: Input, length: object) -> Unnest:
    numbers_of = call("sequence", array(LONG), literal(1, LONG), length)  # type: ignore[arg-type]
    return Unnest(source, numbers_of, source.columns, None, (column(9, LONG),), fields=False, outer=False)


def test_a_row_that_gives_more_than_an_output_is_given_out_in_portions(settings: KernelSettings) -> None:
    kernel = make_kernel(MapFragment(exploded(Input(0, (A, B)), B)), settings)
    rows = rows_of((A, B), [(1, 5), (2, 100_000), (3, 4)])
    results = [result for _, result in steps(kernel, EMPTY, inputs={0: rows})]
    assert all(value_bytes(result.batches) <= PORTION for result in results)
    found = [row for result in results for row in tuples(result.batches)]
    assert found == [(a, b, n) for a, b in ((1, 5), (2, 100_000), (3, 4)) for n in range(1, b + 1)]


def read_all(fragment: ScanFragment, settings: KernelSettings, begins: list[int]) -> list[StepResult]:
    """All of a split, part by part, each by the same kernel."""
    kernel = make_kernel(fragment, settings)
    results: list[StepResult] = []
    begin: int | None = 0
    while begin is not None:
        begins.append(begin)
        _, result = kernel.step(EMPTY, split=fragment.splits[0], begin=begin)
        results.append(result)
        begin = result.begin
    return results


@pytest.mark.parametrize("longest", [300, 50_000])
def test_what_a_split_gives_is_read_part_by_part(
    settings: KernelSettings, tmp_path: Path, longest: int
) -> None:
    """Any part alone, by a kernel that has read nothing before, is the same: outputs are read again one by one."""
    path = tmp_path / "t.parquet"
    lengths = [1 + (i * 37) % 300 for i in range(300)]
    lengths[150] = longest
    pq.write_table(pa.table({"a": list(range(300)), "b": lengths}), path, row_group_size=100)
    scan = scan_of(file_of(path), ("a", LONG), ("b", LONG))
    tree = exploded(Input(0, scan.columns), scan.columns[1])
    split = Split(file_of(path), (0, 1, 2), 300, 1000)
    fragment = ScanFragment(scan, (split,), (), tree)
    begins: list[int] = []
    results = read_all(fragment, settings, begins)
    assert len(results) > 3
    assert all(value_bytes(result.batches) <= OVER_PORTIONS * PORTION for result in results)
    found = [row for result in results for row in tuples(result.batches)]
    assert found == [(a, b, n) for a, b in enumerate(lengths) for n in range(1, b + 1)]
    for begin, wanted in zip(begins, results, strict=True):
        _, alone = make_kernel(fragment, settings).step(EMPTY, split=split, begin=begin)
        assert [b.to_pydict() for b in alone.batches] == [b.to_pydict() for b in wanted.batches]
        assert alone.begin == wanted.begin


def test_long_texts_beside_few_numbers_are_cut_by_their_size(settings: KernelSettings) -> None:
    """A probe that repeats a long text of either side gives it in batches of a portion."""
    build, probe = Input(0, (C, S)), Input(1, (A, B))
    session = DuckDbSession(settings)
    inputs = {
        0: rows_of((C, S), [(1, "x" * 5000), (1, "y")]),
        1: rows_of((A, B), [(1, i) for i in range(500)]),
    }
    sizes = [
        (value_bytes((batch,)), batch.num_rows)
        for batch in Program(inner(probe, build, A, C), frozenset({0})).stream(session, inputs)
    ]
    session.close()
    assert sum(rows for _, rows in sizes) == 1000
    assert max(size for size, _ in sizes) <= 2 * PORTION


def test_a_text_that_is_repeated_begins_with_few_rows(settings: KernelSettings) -> None:
    long = Project(Input(0, (A, S)), (named(8, call("repeat", STRING, S, literal(5000, INTEGER))),))
    short = Project(Input(0, (A, S)), (named(8, call("repeat", STRING, S, literal(5, INTEGER))),))
    assert first_pace(short) == ALL
    assert first_pace(long) != ALL
    kernel = make_kernel(MapFragment(long), settings)
    rows = rows_of((A, S), [(i, "ab") for i in range(200)])
    sizes = [value_bytes(result.batches) for _, result in steps(kernel, EMPTY, inputs={0: rows})]
    assert sum(sizes) == 200 * (10_000 + 4)
    assert max(sizes) <= OVER_PORTIONS * PORTION


def test_rows_are_taken_until_they_give_a_portion(settings: KernelSettings) -> None:
    tried: list[int] = []

    def run(rows: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = sum(batch.num_rows for batch in rows)
        tried.append(count)
        for batch in rows:
            for _ in range(batch.num_rows):
                yield pa.record_batch({"x": pa.array(range(PORTION // 16))})

    rows = numbers((A, B), 1000, 7)
    taken = take(rows, ALL, run, settings, OVER_PORTIONS * PORTION)
    assert tried[:2] == [1000, 64]
    assert taken.made.value_bytes <= OVER_PORTIONS * PORTION
    assert 1 <= taken.rows <= 8


def test_fewer_rows_are_taken_if_there_is_no_room_for_them(settings: KernelSettings) -> None:
    tried: list[int] = []

    def run(rows: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tried.append(sum(batch.num_rows for batch in rows))
        if tried[-1] > 10:
            raise NoRoomError("too many")
        yield from rows

    rows = numbers((A, B), 1000, 7)
    taken = take(rows, ALL, run, settings, OVER_PORTIONS * PORTION)
    assert tried[:3] == [1000, 64, 8]
    assert max(tried[3:]) == 8, "what had no room is not tried again"
    assert taken.rows == 1000
    assert tuples(taken.made.batches) == tuples(rows)


def test_a_single_row_without_room_ends_the_query(settings: KernelSettings) -> None:
    def fail(_batch: pa.RecordBatch) -> pa.RecordBatch:
        raise NoRoomError("too large")

    def run(rows: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(fail, rows)

    with pytest.raises(MemoryLimitError, match="too large"):
        take(numbers((A, B), 1000, 7), ALL, run, settings, OVER_PORTIONS * PORTION)


def test_a_statement_without_room_for_all_rows_takes_fewer(settings: KernelSettings) -> None:
    """Joined words are state of an aggregation, which DuckDB does count: of four such rows it has more than 32 MiB."""
    words = column(7, array(STRING))
    rows = rows_of((A, words), [(i, [f"{n:06}" + "w" * 900 for n in range(4000)]) for i in range(4)])
    joined = call("length", INTEGER, call("array_join", STRING, words, literal("-", STRING)))
    tree = Project(
        Filter(Input(0, (A, words)), call("ge", BOOLEAN, A, literal(0, LONG))), (named(8, joined),)
    )
    session = DuckDbSession(settings)
    program = Program(tree, frozenset())
    with pytest.raises(NoRoomError):
        program.run(session, {0: rows})
    taken = take(rows, ALL, lambda some: program.stream(session, {0: some}), settings, PORTION)
    session.close()
    assert taken.rows == 4
    assert tuples(taken.made.batches) == [(4000 * 907 - 1,)] * 4


@pytest.mark.parametrize(
    "position", [ReadPosition(), ReadPosition(7, 3), ReadPosition(1 << 24, 8, 16_000), ReadPosition(0, 1, 1)]
)
def test_a_position_is_a_number(position: ReadPosition) -> None:
    assert ReadPosition.of(position.number) == position
    assert (position.number == 0) == (position == ReadPosition())
