"""A window that is computed portion by portion gives what it gives over all rows at once, to the bit."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from tests.trees import BINARY, BYTE, FLOAT, SHORT, aggregation, call, column, literal, test

from wallaby.batches.checksum import checksum
from wallaby.batches.chunks import Chunks
from wallaby.batches.sizes import value_bytes
from wallaby.errors import ArithmeticOverflowError, MemoryLimitError
from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.operators.spill import external
from wallaby.operators.spill.windows import ExternalWindow
from wallaby.plan.physical import ReduceFragment
from wallaby.relations.expression import Aggregation, EvalMode, Expression, SortKey
from wallaby.relations.relation import Filter, Frame, FrameUnit, Input, Relation, Window, WindowCall
from wallaby.relations.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    array,
    decimal,
)
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import DuckDbSession, KernelSettings, close_thread_session
from wallaby.statements.divided_window import divided_window
from wallaby.statements.relation import input_name, relation_sql, result_columns

ID, K, OF = column(1, LONG, "id"), column(2, INTEGER, "k"), column(3, INTEGER, "o")
V, B, S = column(4, LONG, "v"), column(5, BYTE, "b"), column(6, SHORT, "s")
D, W = column(7, decimal(12, 2), "d"), column(8, decimal(38, 4), "w")
F, X = column(9, FLOAT, "f"), column(10, DOUBLE, "x")
T, DAY, OK = column(11, STRING, "t"), column(12, DATE, "day"), column(13, BOOLEAN, "ok")
BYTES = column(14, BINARY, "bytes")
ROWS = Input(0, (ID, K, OF, V, B, S, D, W, F, X, T, DAY, OK, BYTES))
SUM_OF_D = decimal(22, 2)
#: Zeros of both signs, and what is greater than infinity.
NUMBERS = (None, 0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbSession]:
    directory = tmp_path_factory.mktemp("spill")
    found = DuckDbSession(
        KernelSettings(memory_bytes=64 << 20, portion_bytes=1_000, temp_directory=directory)
    )
    yield found
    found.close()


def rows(count: int, keys: int = 3, orders: int = 5, seed: int = 7) -> pa.RecordBatch:
    """Rows of a few partitions and with ties; every fifth value is NULL."""
    random = np.random.default_rng(seed)

    def some(low: int, high: int) -> list[int | None]:
        values = random.integers(low, high, count).tolist()
        return [None if random.integers(5) == 0 else value for value in values]

    columns: Sequence[Sequence[object]] = (
        random.permutation(count).tolist(),
        [None if k == 0 else k for k in random.integers(0, keys, count).tolist()],
        [None if o == 0 else o for o in random.integers(0, orders, count).tolist()],
        some(-(1 << 40), 1 << 40),
        some(-128, 128),
        some(-32768, 32768),
        [None if v is None else Decimal(v).scaleb(-2) for v in some(-(10**11), 10**11)],
        [None if v is None else Decimal(v) * 10**9 + Decimal("0.0001") for v in some(-(10**17), 10**17)],
        [NUMBERS[n] for n in random.integers(0, len(NUMBERS), count).tolist()],
        [NUMBERS[n] for n in random.integers(0, len(NUMBERS), count).tolist()],
        [None if v is None else f"text {v}" for v in some(0, 50)],
        [None if v is None else datetime.date(2000, 1, 1) + datetime.timedelta(v) for v in some(0, 400)],
        [None if v is None else v > 0 for v in some(0, 2)],
        [None if v is None else b"\0" * v for v in some(0, 9)],
    )
    schema = arrow_schema(ROWS.columns)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def chunks(batch: pa.RecordBatch, batch_rows: int = 100) -> Chunks:
    batches = tuple(pa.Table.from_batches([batch]).to_batches(batch_rows))
    return Chunks(batches, (), value_bytes(batches))


def divided(
    session: DuckDbSession, window: Window, batch: pa.RecordBatch, portion_bytes: int
) -> pa.Table | None:
    settings = replace(session.settings, portion_bytes=portion_bytes)
    plan = divided_window(window)
    assert plan is not None
    external = ExternalWindow(window, plan, settings)
    given_rows = chunks(batch)
    if not external.accepts(given_rows):
        return None
    found = external.run(session, given_rows)
    return None if found is None else pa.Table.from_batches(found, arrow_schema(result_columns(window)))


def at_once(session: DuckDbSession, window: Window, batch: pa.RecordBatch) -> pa.Table:
    schema = arrow_schema(result_columns(window))
    made = session.stream(relation_sql(window), {input_name(0): pa.Table.from_batches([batch])}, schema)
    return pa.Table.from_batches(made, schema)


def in_bytes(table: pa.Table) -> str:
    """The rows in the order of their ids, as bytes."""
    (batch,) = table.sort_by("c1").combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], table.schema)
    ]
    return str(checksum([[batch]]))


def require_equal(
    session: DuckDbSession, window: Window, batch: pa.RecordBatch, portion_bytes: int = 2_500
) -> None:
    expected = at_once(session, window, batch)
    found = divided(session, window, batch, portion_bytes)
    assert found is not None
    for name in expected.column_names:  # tells more than the bytes
        ours, theirs = (t.sort_by("c1")[name].to_pylist() for t in (found, expected))
        assert list(map(repr, ours)) == list(map(repr, theirs)), name
    assert in_bytes(found) == in_bytes(expected)


TIES = (SortKey(OF, True, True),)
TOTAL = (SortKey(OF, False, False), SortKey(ID, True, True))
ROWS_FRAMES = [
    Frame(FrameUnit.ROWS, begin, end)
    for begin, end in (
        *((None, 0), (None, None), (0, None), (None, 3), (None, -1), (-2, None), (1, None)),
        *((0, 0), (-3, 0), (0, 3), (-2, 2), (-5, -3), (2, 4), (3, 1), (-7, 7)),
    )
]
RANGE_FRAMES = [
    Frame(FrameUnit.RANGE, begin, end) for begin, end in ((None, 0), (None, None), (0, None), (0, 0))
]


def calls(frame: Frame, *functions: Aggregation, ignore_nulls: bool = False) -> tuple[WindowCall, ...]:
    return tuple(
        WindowCall(column(100 + n, function.type), function, frame, ignore_nulls)
        for n, function in enumerate(functions)
    )


POSITIVE = test("greater", V, literal(0, LONG))
AGGREGATES = (
    aggregation("count", LONG),
    aggregation("count", LONG, V),
    aggregation("count", LONG, V, T),
    aggregation("count", LONG, where=POSITIVE),
    aggregation("sum", LONG, V),
    aggregation("sum", LONG, B),
    aggregation("sum", LONG, S, where=POSITIVE),
    aggregation("sum", SUM_OF_D, D),
    aggregation("sum", decimal(38, 4), W),
    aggregation("avg", DOUBLE, V),
    aggregation("avg", DOUBLE, B, where=POSITIVE),
    aggregation("avg", decimal(16, 6), D),
    aggregation("avg", decimal(38, 8), W),
    *(aggregation(name, c.type, c) for name in ("min", "max") for c in (V, B, D, W, F, X, T, DAY, OK, BYTES)),
    aggregation("max", STRING, T, where=POSITIVE),
    *(aggregation(name, LONG, V) for name in ("bit_and", "bit_or", "bit_xor")),
    aggregation("sum", LONG, call("multiply", LONG, V, literal(3, LONG))),
)
VALUES = tuple(
    aggregation(name, c.type, c, where=where)
    for name in ("first_value", "last_value")
    for c in (V, T, X, DAY)
    for where in (None, POSITIVE)
)
NTH = tuple(aggregation("nth_value", T.type, T, literal(n, INTEGER)) for n in (1, 2, 30))


@pytest.mark.parametrize("partition", [(), (K,)], ids=["all", "key"])
@pytest.mark.parametrize("frame", ROWS_FRAMES, ids=str)
def test_functions_over_rows(session: DuckDbSession, frame: Frame, partition: tuple[Expression, ...]) -> None:
    functions = (*AGGREGATES, *VALUES, *(NTH if frame.begin is None or frame.end is not None else ()))
    window = Window(ROWS, partition, TOTAL, calls(frame, *functions))
    require_equal(session, window, rows(80))
    require_equal(session, replace(window, calls=calls(frame, *VALUES, ignore_nulls=True)), rows(80))


@pytest.mark.parametrize("order", [(), TIES, TOTAL], ids=["none", "ties", "total"])
@pytest.mark.parametrize("partition", [(), (K,)], ids=["all", "key"])
@pytest.mark.parametrize("frame", RANGE_FRAMES, ids=str)
def test_functions_over_peers(
    session: DuckDbSession, frame: Frame, partition: tuple[Expression, ...], order: tuple[SortKey, ...]
) -> None:
    """With ties, which value is the first or the last is not determined, and of two zeros either may be the least."""
    whole = tuple(a for a in AGGREGATES if not a.type.is_floating or a.function == "avg")
    functions = AGGREGATES + VALUES if order == TOTAL else whole
    window = Window(ROWS, partition, order, calls(frame, *functions))
    require_equal(session, window, rows(80))
    require_equal(session, window, rows(80, keys=1, orders=1))


RANKS = (
    aggregation("rank", INTEGER),
    aggregation("dense_rank", INTEGER),
    aggregation("percent_rank", DOUBLE),
    aggregation("cume_dist", DOUBLE),
)
PLACES = (
    aggregation("row_number", INTEGER),
    *(aggregation("ntile", INTEGER, literal(n, INTEGER)) for n in (1, 2, 7, 49, 1000)),
    *(
        aggregation(name, T.type, T, literal(n, INTEGER), default)
        for name in ("lag", "lead")
        for n in (0, 1, 5, 14)
        for default in (literal(None, STRING), literal("none", STRING))
    ),
    aggregation("lag", LONG, V, literal(2, INTEGER), ID),
)


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("keys", [1, 3, 200])
def test_ranks_and_places(session: DuckDbSession, ascending: bool, nulls_first: bool, keys: int) -> None:
    frame = Frame(FrameUnit.ROWS, None, 0)
    order = (SortKey(OF, ascending, nulls_first),)
    window = Window(ROWS, (K,), order, calls(frame, *RANKS))
    require_equal(session, window, rows(90, keys))
    require_equal(session, window, rows(90, keys, orders=200))
    total = (*order, SortKey(T, not ascending, nulls_first), SortKey(ID, ascending, nulls_first))
    require_equal(session, replace(window, order=total, calls=calls(frame, *PLACES)), rows(90, keys), 6_000)


@pytest.mark.parametrize("key", [X, F, T, DAY, OK, BYTES, W], ids=lambda key: key.name)
def test_partitions_and_peers_of_any_type(session: DuckDbSession, key: Expression) -> None:
    """Zeros of both signs are equal, and so is every NaN."""
    functions = (*RANKS, aggregation("count", LONG))
    for by in ((key,), ()):
        for frame in RANGE_FRAMES:
            window = Window(ROWS, by, (SortKey(key, True, False),), calls(frame, *functions))
            require_equal(session, window, rows(60))


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_rows(session: DuckDbSession, count: int) -> None:
    for frame in (*ROWS_FRAMES[:2], *RANGE_FRAMES[:2]):
        window = Window(ROWS, (K,), TOTAL, calls(frame, *AGGREGATES, *VALUES, *RANKS, *PLACES))
        require_equal(session, window, rows(count), 6_000)


@limits(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 60),
    st.integers(1, 12),
    st.integers(1, 30),
    st.integers(300, 5_000),
    st.sampled_from([*ROWS_FRAMES, *RANGE_FRAMES]),
    st.sets(st.sampled_from([*AGGREGATES, *VALUES, *RANKS, *PLACES]), min_size=1, max_size=6),
    st.sampled_from([(), (K,), (OF,), (K, OF)]),
    st.integers(0, 1 << 30),
)
def test_any_rows_in_any_portions(
    session: DuckDbSession,
    count: int,
    keys: int,
    orders: int,
    portion_bytes: int,
    frame: Frame,
    functions: set[Aggregation],
    partition: tuple[Expression, ...],
    seed: int,
) -> None:
    window = Window(ROWS, partition, TOTAL, calls(frame, *sorted(functions, key=str)))
    plan = divided_window(window)
    assert plan is not None
    found = divided(session, window, rows(count, keys, orders, seed), portion_bytes)
    if found is not None:  # else there are more rows around a portion than in it
        require_equal(session, window, rows(count, keys, orders, seed), portion_bytes)


# ---------------------------------------------------------------------------------------------------- limits
RUNNING = Frame(FrameUnit.ROWS, None, 0)
NUMBERED = Window(ROWS, (K,), TOTAL, calls(RUNNING, aggregation("row_number", INTEGER)))
REFUSED = (
    WindowCall(column(100, DOUBLE), aggregation("sum", DOUBLE, X), RUNNING),
    WindowCall(column(100, DOUBLE), aggregation("avg", DOUBLE, X), Frame(FrameUnit.ROWS, -1, 1)),
    WindowCall(column(100, DOUBLE), aggregation("stddev_samp", DOUBLE, X), RUNNING),
    WindowCall(column(100, array(LONG)), aggregation("collect_list", array(LONG), V), RUNNING),
    WindowCall(column(100, LONG), aggregation("sum", LONG, V), Frame(FrameUnit.ROWS, None, -2)),
    WindowCall(column(100, LONG), aggregation("sum", LONG, V), Frame(FrameUnit.RANGE, -1, 1)),
    WindowCall(column(100, LONG), aggregation("sum", LONG, V), Frame(FrameUnit.RANGE, None, 1)),
    WindowCall(
        column(100, LONG),
        aggregation("lag", LONG, V, literal(1, INTEGER), literal(None, LONG)),
        RUNNING,
        ignore_nulls=True,
    ),
    WindowCall(column(100, STRING), NTH[0], RUNNING, ignore_nulls=True),
    WindowCall(column(100, STRING), NTH[0], Frame(FrameUnit.ROWS, 0, None)),
)


@pytest.mark.parametrize("refused", REFUSED, ids=lambda call: f"{call.function} {call.frame}")
def test_what_might_differ_is_not_divided(refused: WindowCall) -> None:
    assert divided_window(replace(NUMBERED, calls=(refused,))) is None
    assert divided_window(replace(NUMBERED, calls=(*NUMBERED.calls, refused))) is None


def test_too_many_rows_around_a_portion_are_not_divided(session: DuckDbSession) -> None:
    far = aggregation("lag", LONG, V, literal(50, INTEGER), literal(None, LONG))
    window = replace(NUMBERED, calls=calls(RUNNING, far))
    assert divided(session, window, rows(60), 1_000) is None
    require_equal(session, window, rows(60), 20_000)


def test_an_average_of_large_numbers_is_not_divided(session: DuckDbSession) -> None:
    """The sum of doubles may be rounded differently from some size on."""
    window = replace(NUMBERED, calls=calls(RUNNING, aggregation("avg", DOUBLE, V)))
    batch = rows(40)
    large = [None if v is None else v << 20 for v in batch.column("c4").to_pylist()]
    place = batch.schema.names.index("c4")
    assert divided(session, window, batch.set_column(place, "c4", pa.array(large)), 1_000) is None
    require_equal(session, window, batch)


def test_a_sum_of_decimals_is_divided_while_it_cannot_overflow(session: DuckDbSession) -> None:
    wide = column(8, decimal(32, 4))
    plan = divided_window(replace(NUMBERED, calls=calls(RUNNING, aggregation("sum", decimal(38, 4), wide))))
    assert plan is not None
    assert plan.rows_max == 1_000_000


@pytest.mark.parametrize("mode", EvalMode)
@pytest.mark.parametrize(
    "frame", [RUNNING, Frame(FrameUnit.ROWS, None, None), Frame(FrameUnit.RANGE, 0, None)]
)
def test_an_overflow_is_the_same(session: DuckDbSession, mode: EvalMode, frame: Frame) -> None:
    batch = rows(40)
    large = [None if v is None else abs(v) << 22 for v in batch.column("c4").to_pylist()]
    batch = batch.set_column(batch.schema.names.index("c4"), "c4", pa.array(large))
    window = replace(
        NUMBERED, partition=(), calls=calls(frame, replace(aggregation("sum", LONG, V), mode=mode))
    )
    if mode is not EvalMode.ANSI:
        require_equal(session, window, batch)
        return
    with pytest.raises(ArithmeticOverflowError):
        at_once(session, window, batch)
    with pytest.raises(ArithmeticOverflowError):
        divided(session, window, batch, 1_000)


# ---------------------------------------------------------------------------------------------------- kernels
TEXTS = Input(0, (ID, K, T))
COUNT = 150_000


def long_rows() -> list[pa.RecordBatch]:
    """Half of the rows have one key; they are three times what DuckDB may hold."""
    random = np.random.default_rng(5)
    keys = np.where(np.arange(COUNT) % 2 == 0, 7, random.integers(0, 50, COUNT))
    texts = pa.array([f"{n} {'wombat ' * 90}" for n in random.integers(0, 1 << 40, COUNT).tolist()])
    columns = [pa.array(np.arange(COUNT)), pa.array(keys, pa.int32()), texts]
    batches: list[pa.RecordBatch] = pa.table(columns, arrow_schema(TEXTS.columns)).to_batches(10_000)
    return batches


@pytest.fixture
def small(tmp_path: Path) -> Iterator[KernelSettings]:
    yield KernelSettings(memory_bytes=32 << 20, portion_bytes=2 << 20, temp_directory=tmp_path)
    close_thread_session()


def finished(
    settings: KernelSettings, tree: Relation, batches: list[pa.RecordBatch]
) -> list[list[pa.RecordBatch]]:
    kernel = make_kernel(ReduceFragment(None, tree), settings)
    state, _ = kernel.step(EMPTY, inputs={0: batches})
    outputs: list[list[pa.RecordBatch]] = []
    rest = True
    while rest:
        state, result = kernel.step(state, last=True)
        outputs.append(result.batches)
        rest = result.rest
    return outputs


def test_a_partition_larger_than_memory_is_computed_in_portions(small: KernelSettings) -> None:
    """DuckDB alone ends with an error. The same rows give the same bytes again."""
    batches = long_rows()
    assert value_bytes(batches) > 2 * small.memory_bytes
    odd = test("equal", call("remainder", LONG, ID, literal(3, LONG)), literal(1, LONG))
    functions = (aggregation("row_number", INTEGER), aggregation("count", LONG), aggregation("max", LONG, ID))
    order = (SortKey(T, True, True), SortKey(ID, True, True))
    whole = Window(TEXTS, (K,), order, calls(Frame(FrameUnit.ROWS, None, None), *functions))
    for tree, kept in ((whole, slice(None)), (replace(whole, child=Filter(TEXTS, odd)), slice(1, None, 3))):
        outputs = finished(small, tree, batches)
        table = pa.Table.from_batches([batch for output in outputs for batch in output]).sort_by("c1")
        ids, keys = table["c1"].to_numpy(), table["c2"].to_numpy()
        assert ids.tolist() == list(range(COUNT))[kept]
        counts = np.bincount(keys)
        assert (table["c101"].to_numpy() == counts[keys]).all()
        greatest = np.zeros(len(counts), np.int64)
        greatest[keys] = ids  # of several, the last
        assert (table["c102"].to_numpy() == greatest[keys]).all()
        numbers = table["c100"].to_numpy()
        ordered = table.sort_by([("c2", "ascending"), ("c11", "ascending"), ("c1", "ascending")])
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        assert (
            ordered["c100"].to_numpy() == np.arange(len(ids)) - starts[ordered["c2"].to_numpy()] + 1
        ).all()
        assert numbers.max() == counts.max()
        assert checksum(finished(small, tree, batches)) == checksum(outputs)


def test_a_partition_that_cannot_be_divided_ends_with_a_memory_error(small: KernelSettings) -> None:
    listed = aggregation("collect_list", array(STRING), T)
    window = Window(TEXTS, (), (SortKey(ID, True, True),), calls(RUNNING, listed))
    with pytest.raises(MemoryLimitError):
        finished(small, window, long_rows())


def test_a_partition_that_fits_is_computed_at_once(
    small: KernelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "ExternalWindow", None)
    batches = long_rows()[:2]
    assert small.part_bytes < value_bytes(batches) < 2 * small.part_bytes
    window = Window(TEXTS, (), (SortKey(ID, True, True),), calls(RUNNING, aggregation("row_number", INTEGER)))
    assert sum(batch.num_rows for output in finished(small, window, batches) for batch in output) == 20_000
