"""Kernels step by step: states, phases, sides, early ends, and the same bytes whatever the machine does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.trees import (
    SETTINGS,
    aggregation,
    call,
    column,
    literal,
    named,
    parquet,
    reduce_all,
    rows_of,
    scan_of,
    test,
    tuples,
)

from wallaby.batches.checksum import checksum
from wallaby.errors import DivideByZeroError, InternalError
from wallaby.operators.kernel import EMPTY, Kernel, KernelState, StepResult, make_kernel
from wallaby.operators.partition import partition
from wallaby.plan.physical import (
    CollectFragment,
    Fragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    ReduceFragment,
    ScanFragment,
)
from wallaby.relations.expression import SortKey
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
)
from wallaby.relations.types import DOUBLE, INTEGER, LONG, STRING
from wallaby.statements.connection import KernelSettings, close_thread_session, thread_session
from wallaby.tables.tables import list_splits

K, V = column(10, LONG, "k"), column(11, DOUBLE, "v")
S = column(12, LONG, "side")
COLUMNS = (K, V)


def pairs(count: int, groups: int = 5, start: int = 0) -> list[pa.RecordBatch]:
    return rows_of(COLUMNS, [(n % groups, float(n)) for n in range(start, start + count)])


def partial(child: Relation) -> Aggregate:
    return Aggregate(
        child,
        (named(10, K),),
        (
            named(20, aggregation("sum", DOUBLE, V)),
            named(21, aggregation("count", LONG, literal(1, INTEGER))),
        ),
    )


SUM, COUNT = column(20, DOUBLE), column(21, LONG)
MERGED = Input(0, (K, SUM, COUNT))
MERGE = Aggregate(
    MERGED,
    (named(10, K),),
    (named(20, aggregation("sum", DOUBLE, SUM)), named(21, aggregation("sum", LONG, COUNT))),
)
AVERAGE = Project(
    MERGE,
    (named(10, K), named(30, call("divide", DOUBLE, SUM, call("cast", DOUBLE, COUNT))), named(21, COUNT)),
)


def join_tree(kind: JoinKind = JoinKind.INNER) -> Join:
    shown = (*COLUMNS, S) if kind in (JoinKind.INNER, JoinKind.LEFT) else COLUMNS
    return Join(Input(1, COLUMNS), Input(0, (S,)), kind, (K,), (S,), None, shown)


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    numbers = range(4000)
    table = pa.table({"k": pa.array([n % 5 for n in numbers]), "v": pa.array([float(n) for n in numbers])})
    return scan_of(parquet(tmp_path / "t.parquet", table, 500), ("k", LONG), ("v", DOUBLE))


def test_a_scan_runs_its_tree_on_each_split(scan: Scan) -> None:
    splits = list_splits(scan, 2000)
    assert len(splits) > 1
    kernel = make_kernel(ScanFragment(scan, splits, (), partial(Input(0, COLUMNS))), SETTINGS)
    outputs = [kernel.step(EMPTY, split=split) for split in splits]
    assert all(state is EMPTY for state, _ in outputs)
    batches = [batch for _, result in outputs for batch in result.batches]
    found = {k: (s, n) for k, s, n in reduce_all(ReduceFragment(None, MERGE), batches)}
    assert found == {k: (float(sum(range(k, 4000, 5))), 800) for k in range(5)}
    assert kernel.step(EMPTY, last=True) == (EMPTY, StepResult())


def test_a_scan_joins_with_its_sides_and_does_without_a_filter_that_is_late(scan: Scan) -> None:
    tree = Join(Input(0, COLUMNS), Input(1, (S,)), JoinKind.SEMI, (K,), (S,), None, COLUMNS)
    (split,) = list_splits(scan, 1 << 30)
    kernel = make_kernel(ScanFragment(scan, (split,), (), tree), SETTINGS)
    side = rows_of((S,), [(1,), (3,)])
    _, filtered = kernel.step(EMPTY, split=split, sides={1: side})
    assert {k for k, _ in tuples(filtered.batches)} == {1, 3}
    _, all_rows = kernel.step(EMPTY, split=split)
    assert sum(batch.num_rows for batch in all_rows.batches) == 4000
    _, nothing = kernel.step(EMPTY, split=split, sides={1: []})
    assert nothing.batches == []


def test_a_join_collects_its_build_side_and_answers_probes() -> None:
    kernel = make_kernel(JoinFragment(join_tree()), SETTINGS)
    state, result = kernel.step(EMPTY, inputs={0: rows_of((S,), [(1,), (2,)])})
    assert result == StepResult()
    state, _ = kernel.step(state, inputs={0: rows_of((S,), [(2,), (None,)])})
    state, found = kernel.step(state, inputs={1: pairs(4, 4)})
    assert tuples(found.batches) == [(1, 1.0, 1), (2, 2.0, 2), (2, 2.0, 2)]
    state, found = kernel.step(state, inputs={1: pairs(1, 4)}, last=True)
    assert found.batches == []


def test_an_older_state_can_be_taken_up_again() -> None:
    kernel = make_kernel(JoinFragment(join_tree(JoinKind.SEMI)), SETTINGS)
    first, _ = kernel.step(EMPTY, inputs={0: rows_of((S,), [(1,)])})
    second, _ = kernel.step(first, inputs={0: rows_of((S,), [(2,)])})
    probe = {1: pairs(4, 4)}
    assert tuples(kernel.step(second, inputs=probe)[1].batches) == [(1, 1.0), (2, 2.0)]
    assert tuples(kernel.step(first, inputs=probe)[1].batches) == [(1, 1.0)]
    kernel.forget()
    assert tuples(kernel.step(second, inputs=probe)[1].batches) == [(1, 1.0), (2, 2.0)]
    assert second.size_bytes > first.size_bytes > EMPTY.size_bytes


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(JoinKind.INNER, 0), (JoinKind.LEFT, 4), (JoinKind.SEMI, 0), (JoinKind.ANTI, 4)],
)
def test_a_join_without_build_side(kind: JoinKind, expected: int) -> None:
    kernel = make_kernel(JoinFragment(join_tree(kind)), SETTINGS)
    _, result = kernel.step(EMPTY, inputs={1: pairs(4)}, last=True)
    assert sum(batch.num_rows for batch in result.batches) == expected
    assert kernel.step(EMPTY, last=True)[1] == StepResult()


def test_a_reduction_shrinks_what_it_collects() -> None:
    settings = replace(SETTINGS, combine_rows=100)
    kernel = make_kernel(ReduceFragment(MERGE, AVERAGE), settings)
    state, most = EMPTY, 0
    for start in range(0, 5000, 50):
        made = make_kernel(MapFragment(partial(Input(0, COLUMNS))), settings).step(
            EMPTY, inputs={0: pairs(50, 5, start)}
        )
        state, result = kernel.step(state, inputs={0: made[1].batches})
        assert result == StepResult()
        most = max(most, sum(b.num_rows for b in (*state.combined, *state.waiting)))
    assert most <= 105
    state, result = kernel.step(state, last=True)
    assert state == EMPTY
    assert sorted(tuples(result.batches), key=str) == [(k, float(2497.5 + k - 0), 1000) for k in range(5)]


def test_a_reduction_that_shrinks_nothing_combines_once() -> None:
    kernel = make_kernel(ReduceFragment(MERGE, AVERAGE), replace(SETTINGS, combine_rows=100))
    state, combined = EMPTY, []
    for start in range(0, 5000, 50):
        made = make_kernel(MapFragment(partial(Input(0, COLUMNS))), SETTINGS).step(
            EMPTY, inputs={0: pairs(50, 1 << 20, start)}
        )
        state, _ = kernel.step(state, inputs={0: made[1].batches})
        combined.append(sum(batch.num_rows for batch in state.combined))
    assert (set(combined), state.shrinks) == ({0, 100}, False)
    _, result = kernel.step(state, last=True)
    assert len(tuples(result.batches)) == 5000


def test_a_reduction_of_nothing() -> None:
    assert reduce_all(ReduceFragment(MERGE, AVERAGE), []) == []
    total = Aggregate(MERGED, (), MERGE.aggregations)
    assert reduce_all(ReduceFragment(total, total), []) == [(None, None)]


def test_the_first_rows_are_kept_and_the_rest_forgotten() -> None:
    top = Limit(Sort(Input(0, COLUMNS), (SortKey(V, ascending=False, nulls_first=False),)), 3)
    kernel = make_kernel(ReduceFragment(top, top), replace(SETTINGS, combine_rows=10))
    state = EMPTY
    for start in range(0, 1000, 20):
        state, _ = kernel.step(state, inputs={0: pairs(20, 5, start)})
        assert sum(b.num_rows for b in (*state.combined, *state.waiting)) < 30
    _, result = kernel.step(state, last=True)
    assert [v for _, v in tuples(result.batches)] == [999.0, 998.0, 997.0]


def test_a_sort_gives_everything_in_order() -> None:
    order = Sort(Input(0, COLUMNS), (SortKey(K, True, True), SortKey(V, False, False)))
    found = reduce_all(ReduceFragment(None, order), [*pairs(50), *pairs(50, 5, 50)])
    assert found == sorted(found, key=lambda row: (row[0], -float(str(row[1]))))
    assert len(found) == 100


def test_a_map_runs_on_each_step_and_needs_no_rows() -> None:
    kernel = make_kernel(MapFragment(Filter(Input(0, COLUMNS), test("eq", K, literal(1, LONG)))), SETTINGS)
    state, result = kernel.step(EMPTY, inputs={0: pairs(10)})
    assert tuples(result.batches) == [(1, 1.0), (1, 6.0)]
    assert kernel.step(state, last=True)[1] == StepResult()
    assert kernel.step(state, inputs={0: rows_of(COLUMNS, [(2, 0.0)])})[1].batches == []


def test_a_limit_ends_early() -> None:
    kernel = make_kernel(LimitFragment(COLUMNS, count=5, offset=3), SETTINGS)
    state, first = kernel.step(EMPTY, inputs={0: pairs(2)})
    assert first == StepResult()
    state, second = kernel.step(state, inputs={0: pairs(4, 9, 2)})
    assert [v for _, v in tuples(second.batches)] == [3.0, 4.0, 5.0]
    assert not second.satisfied
    older = state
    state, third = kernel.step(state, inputs={0: [*pairs(1, 9, 6), *pairs(9, 99, 7)]})
    assert [v for _, v in tuples(third.batches)] == [6.0, 7.0]
    assert third.satisfied
    assert kernel.step(older, inputs={0: pairs(1, 9, 6)})[1].batches
    assert kernel.step(state, inputs={0: pairs(9)})[1] == StepResult(satisfied=True)
    assert make_kernel(LimitFragment(COLUMNS, 0, 0), SETTINGS).step(EMPTY)[1].satisfied


def test_the_datas_own_error_has_sparks_name() -> None:
    tree = Project(Input(0, COLUMNS), (named(30, call("divide", DOUBLE, V, call("cast", DOUBLE, K))),))
    with pytest.raises(DivideByZeroError):
        make_kernel(MapFragment(tree), SETTINGS).step(EMPTY, inputs={0: pairs(6)})


def test_the_head_has_no_kernel() -> None:
    with pytest.raises(InternalError):
        make_kernel(CollectFragment(COLUMNS), SETTINGS)


# ------------------------------------------------------------------------------------------------ determinism
BIG = 200_000
RANDOM = np.random.default_rng(7)
DATA = [
    pa.record_batch(
        [pa.array(RANDOM.integers(0, 20_000, BIG)), pa.array(RANDOM.normal(size=BIG))], names=["c10", "c11"]
    )
    for _ in range(2)
]
BUILD = [pa.record_batch([pa.array(RANDOM.integers(0, 30_000, 40_000))], names=["c12"])]
TEXT = column(13, STRING)


def _fold(kernel: Kernel, steps: list[dict[int, list[pa.RecordBatch]]]) -> list[pa.RecordBatch]:
    state: KernelState = EMPTY
    out: list[pa.RecordBatch] = []
    for number, inputs in enumerate(steps):
        state, result = kernel.step(state, inputs=inputs, last=number == len(steps) - 1)
        out += result.batches
    return out


MAINS = [{0: [batch]} for batch in DATA]
CASES: dict[str, tuple[Fragment, list[dict[int, list[pa.RecordBatch]]]]] = {
    "join": (JoinFragment(join_tree()), [{0: BUILD}, *({1: [batch]} for batch in DATA)]),
    "join by sql": (
        JoinFragment(replace(join_tree(), left_keys=(call("add", LONG, K, literal(1, LONG)),))),
        [{0: BUILD}, *({1: [batch]} for batch in DATA)],
    ),
    "float sums": (ReduceFragment(None, partial(Input(0, COLUMNS))), MAINS),
    "combined sums": (ReduceFragment(replace_child := partial(Input(0, COLUMNS)), replace_child), MAINS[:1]),
    "sort with ties": (ReduceFragment(None, Sort(Input(0, COLUMNS), (SortKey(K, True, True),))), MAINS),
    "top rows": (
        ReduceFragment(None, Limit(Sort(Input(0, COLUMNS), (SortKey(K, True, True),)), 1000)),
        MAINS,
    ),
    "map": (MapFragment(partial(Input(0, COLUMNS))), MAINS),
    "limit": (LimitFragment(COLUMNS, BIG, 77), MAINS),
}


def _twenty_times_on_busy_threads(work: Callable[[], int]) -> set[int]:
    """Four threads compete for the cores, each with a DuckDB of its own."""

    def one(_: int) -> int:
        try:
            return work()
        finally:
            close_thread_session()

    assert threading.active_count() < 50
    with ThreadPoolExecutor(4) as pool:
        return set(pool.map(one, range(20)))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_twenty_runs_on_busy_threads_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    fragment, steps = CASES[name]
    settings = KernelSettings(memory_bytes=64 << 20, temp_directory=tmp_path)
    found = _twenty_times_on_busy_threads(lambda: checksum([_fold(make_kernel(fragment, settings), steps)]))
    assert len(found) == 1


@pytest.mark.slow
def test_twenty_scans_and_partitionings_give_the_same_bytes(tmp_path: Path) -> None:
    table = pa.Table.from_batches(DATA).rename_columns(["k", "v"])
    scan = scan_of(parquet(tmp_path / "t.parquet", table, 30_000), ("k", LONG), ("v", DOUBLE))
    splits = list_splits(scan, 1_000_000)
    fragment = ScanFragment(scan, splits, (), Filter(Input(0, COLUMNS), test("gt", V, literal(0.0, DOUBLE))))

    def work() -> int:
        kernel = make_kernel(fragment, SETTINGS)
        outputs = [kernel.step(EMPTY, split=split)[1].batches for split in splits]
        cut = [partition(batches, [0], 4, thread_session(SETTINGS)) for batches in outputs]
        return checksum([part for parts in cut for part in parts])

    assert len(_twenty_times_on_busy_threads(work)) == 1
