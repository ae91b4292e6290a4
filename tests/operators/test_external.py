"""Rows that are too many for memory: sorted by runs, aggregated and joined by parts, with the same result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.trees import aggregation, call, column, literal, named

from wallaby.batches.checksum import checksum
from wallaby.batches.sizes import value_bytes
from wallaby.errors import MemoryLimitError
from wallaby.operators.kernel import EMPTY, Kernel, make_kernel
from wallaby.plan.physical import Fragment, JoinFragment, ReduceFragment
from wallaby.relations.expression import SortKey
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Input, Join, Limit, Relation, Sort
from wallaby.relations.types import LONG, STRING
from wallaby.statements.connection import KernelSettings, close_thread_session
from wallaby.worker.memory.states import ChannelStates

K, V, T = column(1, LONG), column(2, LONG), column(3, STRING)
ROWS = Input(0, (K, V, T))
BK, BV = column(4, LONG), column(5, STRING)
PORTION = 1 << 20
BATCH_ROWS = 25_000
COUNT = 250_000
#: What DuckDB and a part may take is 32 and 8 MiB; the rows below have 12 MiB and more.
MEMORY = 32 << 20


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[KernelSettings]:
    yield KernelSettings(memory_bytes=MEMORY, portion_bytes=PORTION, temp_directory=tmp_path)
    close_thread_session()


def rows(names: tuple[str, ...] = ("c1", "c2", "c3"), *, skewed: bool = False) -> list[pa.RecordBatch]:
    """Keys that are there four times each, or of which one has half of all rows; a number; a text."""
    random = np.random.default_rng(11)
    keys = random.permutation(np.arange(COUNT) // 4)
    if skewed:
        keys[::2] = 77
    texts = pc.binary_join_element_wise(
        pa.array(random.integers(0, COUNT, COUNT)).cast(pa.string()), "and some more of the same text", "-"
    )
    columns = [pa.array(keys), pa.array(np.arange(COUNT)), texts][: len(names)]
    batches: list[pa.RecordBatch] = pa.table(columns, names=list(names)).to_batches(max_chunksize=BATCH_ROWS)
    return batches


class Fed:
    """A kernel that was given everything: what came out, and how."""

    def __init__(
        self,
        kernel: Kernel,
        steps: list[dict[int, list[pa.RecordBatch]]],
        states: ChannelStates | None = None,
        *,
        short: bool = False,
    ) -> None:
        """`short`: memory is short after every step, so caches and the state in memory go."""
        self.batches: list[pa.RecordBatch] = []
        self.outputs: list[list[pa.RecordBatch]] = []
        state = EMPTY
        for given in (*steps, {}):
            inputs, rest = given, True
            while rest:
                state, result = kernel.step(state, inputs=inputs, last=not given)
                state = states.settle("channel", state) if states is not None else state
                if short and states is not None:
                    kernel.forget()
                    states.spill("channel")
                self.outputs.append(result.batches)
                self.batches += result.batches
                rest, inputs = result.rest, {}

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches)

    def require_portions(self) -> None:
        """No output is larger than a portion, but for one batch."""
        assert sum(bool(batches) for batches in self.outputs) > 1
        for batches in self.outputs:
            assert not batches or value_bytes(batches[:-1]) <= PORTION


def one_by_one(number: int, batches: list[pa.RecordBatch]) -> list[dict[int, list[pa.RecordBatch]]]:
    return [{number: [batch]} for batch in batches]


SORT = Sort(ROWS, (SortKey(K, True, True), SortKey(T, False, False)))


@pytest.mark.parametrize("skewed", [False, True])
def test_a_sort_goes_over_runs(settings: KernelSettings, skewed: bool) -> None:
    batches = rows(skewed=skewed)
    fed = Fed(make_kernel(ReduceFragment(None, SORT), settings), one_by_one(0, batches))
    expected = pa.Table.from_batches(batches).sort_by([("c1", "ascending"), ("c3", "descending")])
    assert fed.table.select(["c1", "c3"]).equals(expected.select(["c1", "c3"]))
    assert sorted(fed.table["c2"].to_pylist()) == list(range(COUNT))
    fed.require_portions()


def test_equal_keys_are_no_trouble_for_a_sort(settings: KernelSettings) -> None:
    sort = Sort(ROWS, (SortKey(call("subtract", LONG, K, K), True, True),))
    fed = Fed(make_kernel(ReduceFragment(None, sort), settings), one_by_one(0, rows()))
    assert sorted(fed.table["c2"].to_pylist()) == list(range(COUNT))
    fed.require_portions()


def test_the_first_rows_of_many_are_those_of_the_sort(settings: KernelSettings) -> None:
    first = Limit(SORT, 150_000, 50_000)
    batches = rows()
    fed = Fed(make_kernel(ReduceFragment(None, first), settings), one_by_one(0, batches))
    expected = pa.Table.from_batches(batches).sort_by([("c1", "ascending"), ("c3", "descending")])
    assert fed.table.select(["c1", "c3"]).equals(
        expected.select(["c1", "c3"]).slice(50_000, 150_000).combine_chunks()
    )


def grouped_by(*keys: int) -> Relation:
    by_number = {1: K, 3: T}
    counted = named(8, aggregation("count", LONG, V))
    summed = named(9, aggregation("sum", LONG, V))
    return Aggregate(ROWS, tuple(named(key, by_number[key]) for key in keys), (counted, summed))


@pytest.mark.parametrize("key", [1, 3])
@pytest.mark.parametrize("skewed", [False, True])
def test_an_aggregation_goes_part_by_part(settings: KernelSettings, key: int, skewed: bool) -> None:
    batches = rows(skewed=skewed)
    fed = Fed(make_kernel(ReduceFragment(None, grouped_by(key)), settings), one_by_one(0, batches))
    expected = pa.Table.from_batches(batches).group_by(f"c{key}").aggregate([("c2", "count"), ("c2", "sum")])
    assert fed.table.sort_by(f"c{key}").to_pydict() == dict(
        zip(("c" + str(key), "c8", "c9"), expected.sort_by(f"c{key}").to_pydict().values(), strict=True)
    )
    fed.require_portions()


def test_what_is_collected_is_combined_in_pieces(settings: KernelSettings) -> None:
    partial = Input(0, (T, column(9, LONG)))
    merge = Aggregate(partial, (named(3, T),), (named(9, aggregation("sum", LONG, column(9, LONG))),))
    kernel = make_kernel(ReduceFragment(merge, merge), settings)
    batches = [b.select(["c3", "c2"]).rename_columns(["c3", "c9"]) for b in rows() * 2]
    fed = Fed(kernel, one_by_one(0, batches))
    expected = pa.Table.from_batches(batches).group_by("c3").aggregate([("c9", "sum")]).sort_by("c3")
    assert fed.table.sort_by("c3").to_pydict() == dict(
        zip(("c3", "c9"), expected.to_pydict().values(), strict=True)
    )


def join(kind: JoinKind, *, computed: bool = False) -> Relation:
    shown = (K, V) if kind in (JoinKind.SEMI, JoinKind.ANTI) else (K, V, BV)
    key = call("add", LONG, K, literal(0, LONG)) if computed else K
    return Join(Input(1, (K, V)), Input(0, (BK, BV)), kind, (key,), (BK,), None, shown)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With keys of which half have no partner."""
    return batch.set_column(0, "c1", pc.multiply(batch["c1"], 2))


HOW = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left outer",
    JoinKind.SEMI: "left semi",
    JoinKind.ANTI: "left anti",
}


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("kind", HOW)
def test_a_join_goes_part_by_part(settings: KernelSettings, kind: JoinKind, computed: bool) -> None:
    build = [b.select(["c4", "c5"]) for b in rows(("c4", "c0", "c5"))] * 2
    probe = [doubled(b.slice(0, 2_000)) for b in rows(("c1", "c2"))]
    kernel = make_kernel(JoinFragment(join(kind, computed=computed)), settings, {0: (0,), 1: (0,)})
    fed = Fed(kernel, [*one_by_one(0, build), *one_by_one(1, probe)])
    assert not any(fed.outputs[: len(build) + len(probe)]), "it was not divided"
    expected = pa.Table.from_batches(probe).join(pa.Table.from_batches(build), "c1", "c4", HOW[kind])
    order = [(name, "ascending") for name in fed.table.column_names]
    assert fed.table.sort_by(order).equals(
        expected.select(fed.table.column_names).sort_by(order).combine_chunks()
    )


def test_a_join_with_only_partners_goes_part_by_part(settings: KernelSettings) -> None:
    build = [b.select(["c4", "c5"]) for b in rows(("c0", "c4", "c5"))]
    probe = [doubled(doubled(doubled(b.slice(0, 2_000)))) for b in rows(("c1", "c2"))]
    kernel = make_kernel(JoinFragment(join(JoinKind.SINGLE)), settings, {0: (0,), 1: (0,)})
    fed = Fed(kernel, [*one_by_one(0, build), *one_by_one(1, probe)])
    assert not any(fed.outputs[: len(build) + len(probe)]), "it was not divided"
    expected = pa.Table.from_batches(probe).join(pa.Table.from_batches(build), "c1", "c4", "left outer")
    assert 0 < expected["c5"].null_count < len(expected)
    order = [(name, "ascending") for name in fed.table.column_names]
    assert fed.table.sort_by(order).equals(
        expected.select(fed.table.column_names).sort_by(order).combine_chunks()
    )


def test_a_build_side_with_an_index_may_be_larger(settings: KernelSettings) -> None:
    """What is looked up in an index needs less memory than what DuckDB joins."""
    build = [b.select(["c4", "c5"]) for b in rows(("c4", "c0", "c5"))]
    assert settings.part_bytes < value_bytes(build) <= settings.indexed_bytes
    probe = [doubled(b.slice(0, 2_000)) for b in rows(("c1", "c2"))]
    for computed in (False, True):
        kernel = make_kernel(
            JoinFragment(join(JoinKind.INNER, computed=computed)), settings, {0: (0,), 1: (0,)}
        )
        fed = Fed(kernel, [*one_by_one(0, build), *one_by_one(1, probe)])
        assert any(fed.outputs[: len(build) + len(probe)]) is not computed


@pytest.mark.parametrize("computed", [False, True])
def test_a_key_with_half_of_the_build_side_is_joined_in_blocks(
    settings: KernelSettings, computed: bool
) -> None:
    """Its rows meet those of the probe side that have the same key: many times more rows than went in."""
    build = [b.select(["c4", "c5"]) for b in rows(("c4", "c0", "c5"), skewed=True) * 3]
    probe = [pa.record_batch([pa.array([77, 78, 77, -1]), pa.array([0, 1, 2, 3])], names=["c1", "c2"])]
    kernel = make_kernel(JoinFragment(join(JoinKind.INNER, computed=computed)), settings, {0: (0,), 1: (0,)})
    fed = Fed(kernel, [*one_by_one(0, build), *one_by_one(1, probe)])
    keys = pa.Table.from_batches(build)["c4"].to_numpy()
    assert fed.table["c2"].to_pylist().count(0) == (keys == 77).sum()
    assert fed.table["c2"].to_pylist().count(2) == (keys == 77).sum()
    assert fed.table["c2"].to_pylist().count(1) == (keys == 78).sum()
    assert fed.table["c2"].to_pylist().count(3) == 0
    fed.require_portions()


CASES: dict[str, tuple[Fragment, list[dict[int, list[pa.RecordBatch]]]]] = {
    "sort": (ReduceFragment(None, SORT), one_by_one(0, rows(skewed=True))),
    "aggregation": (ReduceFragment(None, grouped_by(1, 3)), one_by_one(0, rows())),
    "join": (
        JoinFragment(join(JoinKind.LEFT)),
        [
            *one_by_one(0, [b.select(["c4", "c5"]) for b in rows(("c4", "c0", "c5"))]),
            *one_by_one(1, rows(("c1", "c2"))[:3]),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_where_the_state_is_makes_no_difference_to_the_bytes(
    settings: KernelSettings, name: str, tmp_path: Path
) -> None:
    fragment, steps = CASES[name]
    keys = {0: (0,), 1: (0,)}
    found = set()
    for limit_bytes in (0, 6 << 20, 1 << 40):
        states = ChannelStates(tmp_path, limit_bytes)
        fed = Fed(make_kernel(fragment, settings, keys), steps, states)
        assert (states.spilled_bytes > 0) == (limit_bytes < 1 << 40)
        found.add((checksum(fed.outputs), tuple(map(len, fed.outputs))))
    assert len(found) == 1


@pytest.mark.parametrize("name", CASES)
def test_a_shortage_of_memory_makes_no_difference_to_the_bytes(
    settings: KernelSettings, name: str, tmp_path: Path
) -> None:
    fragment, steps = CASES[name]
    keys = {0: (0,), 1: (0,)}
    found = set()
    for short in (False, True):
        states = ChannelStates(tmp_path, 1 << 40)
        fed = Fed(make_kernel(fragment, settings, keys), steps, states, short=short)
        assert (states.spilled_bytes > 0) == short
        found.add((checksum(fed.outputs), tuple(map(len, fed.outputs))))
    assert len(found) == 1


def test_a_group_that_is_larger_than_memory_ends_with_a_memory_error(settings: KernelSettings) -> None:
    text = pa.array(["x" * (2 * MEMORY)])
    huge = pa.record_batch([pa.array([1]), pa.array([1]), text], names=["c1", "c2", "c3"])
    with pytest.raises(MemoryLimitError) as caught:
        Fed(make_kernel(ReduceFragment(None, grouped_by(3)), settings), [{0: [huge]}])
    assert "spark.wallaby.memory" in caught.value.fix
