"""Relations: joins of every kind, aggregations, orders, unions; by SQL and, where there is one, by the index."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trees import (
    SETTINGS,
    aggregation,
    call,
    column,
    literal,
    named,
    rows_of,
    run,
    test,
    tuples,
)

from wallaby.errors import ArithmeticOverflowError, TooManyRowsError
from wallaby.operators.program import Program
from wallaby.relations.expression import Column, Expression, SortKey
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Relation,
    Single,
    Sort,
    Union,
)
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, LONG, STRING, decimal
from wallaby.statements.connection import DuckDbSession, Rows

A, B = column(1, LONG), column(2, STRING)
C, D = column(3, LONG), column(4, STRING)
LEFT, RIGHT = Input(1, (A, B)), Input(0, (C, D))
Row = tuple[int | None, str]

LEFT_ROWS: list[Row] = [(1, "a"), (None, "b"), (2, "c"), (1, "d"), (9, "e"), (3, "f")]
RIGHT_ROWS: list[Row] = [(1, "x"), (1, "y"), (2, "z"), (None, "n"), (7, "w")]


def join(kind: JoinKind, residual: Expression | None = None) -> Join:
    shown: tuple[Column, ...] = (A, B) if kind in (JoinKind.SEMI, JoinKind.ANTI) else (A, B, C, D)
    if kind is JoinKind.EXISTENCE:
        shown = (A, B, column(5, BOOLEAN))
    left, right = ((), ()) if kind is JoinKind.CROSS else ((A,), (C,))
    return Join(LEFT, RIGHT, kind, left, right, residual, shown)


def expected(
    kind: JoinKind, left: list[Row], right: list[Row], *, residual: bool
) -> list[tuple[object, ...]]:
    def matches(a: Row, c: Row) -> bool:
        equal = kind is JoinKind.CROSS or (a[0] is not None and a[0] == c[0])
        return equal and (not residual or c[1] != "x")

    pairs = [(a, c) for a, c in product(left, right) if matches(a, c)]
    alone = [a for a in left if not any(matches(a, c) for c in right)]
    other = [c for c in right if not any(matches(a, c) for a in left)]
    joined = [(*a, *c) for a, c in pairs]
    match kind:
        case JoinKind.INNER | JoinKind.CROSS:
            return [*joined]
        case JoinKind.LEFT:
            return [*joined, *((*a, None, None) for a in alone)]
        case JoinKind.RIGHT:
            return [*joined, *((None, None, *c) for c in other)]
        case JoinKind.FULL:
            return [*joined, *((*a, None, None) for a in alone), *((None, None, *c) for c in other)]
        case JoinKind.SEMI:
            return [a for a in left if a not in alone]
        case JoinKind.ANTI:
            return [*alone]
        case JoinKind.EXISTENCE:
            return [(*a, a not in alone) for a in left]
        case JoinKind.SINGLE:
            assert len(joined) + len(alone) == len(left), "nobody has two partners"
            return [*joined, *((*a, None, None) for a in alone)]


def order(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


@pytest.mark.parametrize("kind", [kind for kind in JoinKind if kind is not JoinKind.SINGLE])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("left", [LEFT_ROWS, []], ids=["rows", "no probe"])
@pytest.mark.parametrize("right", [RIGHT_ROWS, RIGHT_ROWS[2:], []], ids=["rows", "unique", "no build"])
def test_a_join_gives_the_pairs_that_its_kind_says(
    kind: JoinKind, residual: bool, left: list[Row], right: list[Row], session: DuckDbSession
) -> None:
    tree = join(kind, test("ne", D, literal("x", STRING)) if residual else None)
    wanted = order(expected(kind, left, right, residual=residual))
    inputs = {1: rows_of((A, B), left), 0: rows_of((C, D), right)}
    assert order(run(tree, session, i0=inputs[0], i1=inputs[1])) == wanted
    assert order(tuples(Program(tree, frozenset({0})).run(session, inputs))) == wanted
    swapped = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}.get(kind, kind)
    if kind not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE):
        mirror = Join(RIGHT, LEFT, swapped, tree.right_keys, tree.left_keys, tree.residual, tree.columns)
        assert order(tuples(Program(mirror, frozenset({0})).run(session, inputs))) == wanted


def test_a_row_has_its_only_partner_or_the_query_ends(session: DuckDbSession) -> None:
    """Key 1 has two partners, unless the residual excludes one, or no left row has that key."""
    odd = test("ne", D, literal("x", STRING))
    keyed, tried = join(JoinKind.SINGLE), replace(join(JoinKind.SINGLE), left_keys=(), right_keys=())
    for tree in (keyed, replace(tried, residual=test("eq", A, C))):
        some = replace(tree, residual=odd if tree.residual is None else test("and", tree.residual, odd))
        for each, left, right in (
            (some, LEFT_ROWS, RIGHT_ROWS),
            (tree, LEFT_ROWS, RIGHT_ROWS[1:]),
            (tree, LEFT_ROWS[1:3], RIGHT_ROWS),
            (tree, [], RIGHT_ROWS),
            (tree, LEFT_ROWS, []),
        ):
            wanted = order(expected(JoinKind.SINGLE, left, right, residual=each is some))
            inputs = {1: rows_of((A, B), left), 0: rows_of((C, D), right)}
            assert order(tuples(Program(each, frozenset({0})).run(session, inputs))) == wanted
        with pytest.raises(TooManyRowsError, match="More than one row"):
            run(tree, session, i0=rows_of((C, D), RIGHT_ROWS), i1=rows_of((A, B), LEFT_ROWS))
        hidden = replace(tree, columns=(A, B))
        with pytest.raises(TooManyRowsError):  # though nothing of them is shown
            run(hidden, session, i0=rows_of((C, D), RIGHT_ROWS), i1=rows_of((A, B), LEFT_ROWS))


@pytest.mark.parametrize("kind", [kind for kind in JoinKind if kind is not JoinKind.SINGLE])
@pytest.mark.parametrize("right", [RIGHT_ROWS, []], ids=["rows", "no build"])
def test_a_join_without_keys_tries_every_pair(
    kind: JoinKind, right: list[Row], session: DuckDbSession
) -> None:
    """By its residual alone, which is here what the keys were before."""
    keyed = join(kind if kind is not JoinKind.CROSS else JoinKind.INNER)
    tree = replace(keyed, left_keys=(), right_keys=(), residual=test("eq", A, C))
    wanted = order(expected(keyed.kind, LEFT_ROWS, right, residual=False))
    inputs = {1: rows_of((A, B), LEFT_ROWS), 0: rows_of((C, D), right)}
    assert order(tuples(Program(tree, frozenset({0})).run(session, inputs))) == wanted


def test_a_single_row_is_the_only_one_or_nulls(session: DuckDbSession) -> None:
    single = Single(LEFT)
    assert run(single, session, i1=rows_of((A, B), [(7, "x")])) == [(7, "x")]
    assert run(single, session, i1=rows_of((A, B), [(None, "x")])) == [(None, "x")]
    assert run(single, session, i1=[]) == [(None, None)]
    with pytest.raises(TooManyRowsError, match="More than one row") as caught:
        run(single, session, i1=rows_of((A, B), [(7, "x"), (7, "x")]))
    assert caught.value.getCondition() == "SCALAR_SUBQUERY_TOO_MANY_ROWS"


keys = st.one_of(st.none(), st.integers(0, 5), st.sampled_from([2**62, -(2**63), 2**63 - 1]))


@settings(max_examples=60, deadline=None)
@given(
    left=st.lists(keys, max_size=12),
    right=st.lists(keys, max_size=8),
    kind=st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI]),
)
def test_an_index_answers_as_sql_does(
    left: list[int | None], right: list[int | None], kind: JoinKind, session: DuckDbSession
) -> None:
    left_rows: list[Row] = [(key, f"l{i}") for i, key in enumerate(left)]
    right_rows: list[Row] = [(key, f"r{i}") for i, key in enumerate(right)]
    program = Program(join(kind), frozenset({0}))
    inputs = {1: rows_of((A, B), left_rows), 0: rows_of((C, D), right_rows)}
    wanted = order(expected(kind, left_rows, right_rows, residual=False))
    assert order(tuples(program.run(session, inputs))) == wanted
    assert order(tuples(program.run(session, inputs))) == wanted, "and again, with what it kept"


def test_an_index_is_made_anew_for_another_build_side(session: DuckDbSession) -> None:
    program = Program(join(JoinKind.SEMI), frozenset({0}))
    probe = rows_of((A, B), LEFT_ROWS)
    for right in ([(1, "x")], [(2, "x")], []):
        found = tuples(program.run(session, {1: probe, 0: rows_of((C, D), right)}))
        assert found == [row for row in LEFT_ROWS if row[0] in [key for key, _ in right]]


class CountingSession(DuckDbSession):
    """Counts the statements it runs."""

    count = 0

    def stream(self, sql: str, tables: Mapping[str, Rows], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        self.count += 1
        return super().stream(sql, tables, schema)


def test_what_stays_the_same_is_computed_and_indexed_once() -> None:
    build = Filter(RIGHT, test("ne", D, literal("x", STRING)))
    probe = Filter(LEFT, test("ne", B, literal("d", STRING)))
    program = Program(replace(join(JoinKind.INNER), left=probe, right=build), frozenset({0}))
    session = CountingSession(SETTINGS)
    inputs = {1: rows_of((A, B), LEFT_ROWS), 0: rows_of((C, D), RIGHT_ROWS)}
    wanted = [(1, "a", 1, "y"), (2, "c", 2, "z")]
    assert tuples(program.run(session, inputs)) == wanted
    assert session.count == 2
    assert tuples(program.run(session, inputs)) == wanted
    assert session.count == 3, "only the probe side's filter ran again"
    program.forget()
    assert tuples(program.run(session, inputs)) == wanted
    assert session.count == 5
    session.close()


def test_a_join_of_several_keys_and_of_expressions_is_sql(session: DuckDbSession) -> None:
    tree = Join(
        LEFT,
        RIGHT,
        JoinKind.INNER,
        (A, call("upper", STRING, B)),
        (call("add", LONG, C, literal(1, LONG)), call("upper", STRING, D)),
        None,
        (B, D),
    )
    inputs = {1: rows_of((A, B), [(2, "q"), (3, "q")]), 0: rows_of((C, D), [(1, "Q"), (1, "r")])}
    assert tuples(Program(tree, frozenset({0})).run(session, inputs)) == [("q", "Q")]


# ---------------------------------------------------------------------------------------------- aggregations
K, V = column(1, STRING), column(2, LONG)
ROWS = [("a", 1), ("b", None), (None, 5), ("a", 3), (None, None), ("a", 3)]


def grouped(child: Relation) -> Aggregate:
    return Aggregate(
        child,
        (named(1, K),),
        (
            named(10, aggregation("count", LONG, literal(1, INTEGER))),
            named(11, aggregation("count", LONG, V)),
            named(12, aggregation("sum", LONG, V)),
            named(13, aggregation("avg", DOUBLE, V)),
            named(14, aggregation("min", LONG, V)),
            named(15, aggregation("max", LONG, V)),
            named(16, aggregation("sum", LONG, V, distinct=True)),
            named(17, aggregation("count", LONG, V, distinct=True)),
            named(18, aggregation("count", LONG, literal(1, INTEGER), where=test("gt", V, literal(1, LONG)))),
            named(19, aggregation("sum", LONG, V, where=test("gt", V, literal(1, LONG)))),
        ),
    )


def test_groups_have_null_as_a_key_and_leave_nulls_out_of_sums(session: DuckDbSession) -> None:
    found = run(grouped(Input(0, (K, V))), session, i0=rows_of((K, V), ROWS))
    assert order(found) == order(
        [
            ("a", 3, 3, 7, 7 / 3, 1, 3, 4, 2, 2, 6),
            ("b", 1, 0, None, None, None, None, None, 0, 0, None),
            (None, 2, 1, 5, 5.0, 5, 5, 5, 1, 1, 5),
        ]
    )


def test_no_rows_have_no_groups_but_one_total(session: DuckDbSession) -> None:
    tree = grouped(Input(0, (K, V)))
    assert run(tree, session) == []
    total = Aggregate(tree.child, (), tree.aggregations)
    assert run(total, session) == [(0, 0, None, None, None, None, None, 0, 0, None)]


def test_outputs_compute_with_aggregations_and_keys(session: DuckDbSession) -> None:
    key = call("upper", STRING, K)
    output = call(
        "case",
        STRING,
        test("gt", aggregation("sum", LONG, V), literal(3, LONG)),
        call("concat", STRING, key, literal("!", STRING)),
        column(9, STRING),
    )
    tree = Aggregate(Input(0, (K, V)), (named(9, key),), (named(20, output), named(9, key)))
    found = run(tree, session, i0=rows_of((K, V), [("a", 1), ("A", 3), ("b", 1)]))
    assert order(found) == [("A", "A!"), ("B", "B")]


def test_a_sum_beyond_a_long_is_an_overflow(session: DuckDbSession) -> None:
    tree = Aggregate(Input(0, (K, V)), (), (named(5, aggregation("sum", LONG, V)),))
    with pytest.raises(ArithmeticOverflowError):
        run(tree, session, i0=rows_of((K, V), [("a", 2**63 - 1), ("a", 1)]))
    assert run(tree, session, i0=rows_of((K, V), [("a", 2**63 - 1), ("a", -1)])) == [(2**63 - 2,)]


def test_the_zeros_are_one_group_and_so_are_nans(session: DuckDbSession) -> None:
    key = column(1, DOUBLE)
    rows = rows_of((key,), [(-0.0,), (0.0,), (float("nan"),), (-float("nan"),), (None,)])
    tree = Aggregate(Input(0, (key,)), (named(1, key),), (named(2, aggregation("count", LONG)),))
    found = run(tree, session, i0=rows)
    zero = next(k for k, _ in found if k == 0)
    assert isinstance(zero, float)
    assert math.copysign(1, zero) == 1
    assert sorted(n for _, n in found if isinstance(n, int)) == [1, 2, 2]


def test_a_filter_of_an_aggregation_guards_its_argument(session: DuckDbSession) -> None:
    risky = call("remainder", LONG, literal(7, LONG), V)
    tree = Aggregate(
        Input(0, (V,)),
        (),
        (named(5, aggregation("sum", LONG, risky, where=test("ne", V, literal(0, LONG)))),),
    )
    assert run(tree, session, i0=rows_of((V,), [(0,), (4,), (None,)])) == [(3,)]


def test_count_distinct_of_several_columns_leaves_rows_with_nulls_out(session: DuckDbSession) -> None:
    tree = Aggregate(Input(0, (K, V)), (), (named(5, aggregation("count", LONG, K, V, distinct=True)),))
    assert run(tree, session, i0=rows_of((K, V), ROWS)) == [(2,)]


# ------------------------------------------------------------------------------------ filter, order, the rest
def test_a_condition_guards_the_one_after_it(session: DuckDbSession) -> None:
    risky = test("eq", call("remainder", LONG, literal(7, LONG), V), literal(3, LONG))
    tree = Filter(Input(0, (V,)), test("and", test("ne", V, literal(0, LONG)), risky))
    rows = [(n % 5 if n % 7 else None,) for n in range(20_000)]
    found = run(tree, session, i0=rows_of((V,), rows))
    assert len(found) == sum(row == (4,) for row in rows)


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
def test_an_order_says_where_nulls_go_and_nan_is_the_greatest(
    ascending: bool, nulls_first: bool, session: DuckDbSession
) -> None:
    key = column(1, DOUBLE)
    rows = rows_of((key,), [(1.0,), (None,), (float("nan"),), (float("-inf"),), (None,), (2.0,)])
    tree = Sort(Input(0, (key,)), (SortKey(key, ascending, nulls_first),))
    shown = [str(value) for (value,) in run(tree, session, i0=rows)]
    values = ["-inf", "1.0", "2.0", "nan"] if ascending else ["nan", "2.0", "1.0", "-inf"]
    assert shown == (["None"] * 2 + values if nulls_first else values + ["None"] * 2)


def test_strings_are_in_the_order_of_their_bytes(session: DuckDbSession) -> None:
    key = column(1, STRING)
    words = ["b", "B", "é", "z", "", "a b", "\U00010000", "\uffff"]
    tree = Sort(Input(0, (key,)), (SortKey(key, ascending=True, nulls_first=True),))
    found = [row[0] for row in run(tree, session, i0=rows_of((key,), [(w,) for w in words]))]
    assert found == sorted(words, key=lambda word: word.encode())


def test_the_first_rows_of_an_order(session: DuckDbSession) -> None:
    tree = Limit(Sort(Input(0, (V,)), (SortKey(V, ascending=False, nulls_first=False),)), 2, 1)
    assert run(tree, session, i0=rows_of((V,), [(n,) for n in range(10)])) == [(8,), (7,)]
    above = Project(tree, (named(8, call("negate", LONG, V)),))
    assert run(above, session, i0=rows_of((V,), [(n,) for n in range(10)])) == [(-8,), (-7,)]


def test_a_union_takes_columns_by_position(session: DuckDbSession) -> None:
    out: Column = column(7, LONG)
    tree = Union((Input(0, (A,)), Project(Input(1, (C,)), (named(9, call("add", LONG, C, C)),))), (out,))
    assert run(tree, session, i0=rows_of((A,), [(1,)]), i1=rows_of((C,), [(2,), (None,)])) == [
        (1,),
        (4,),
        (None,),
    ]


def test_the_same_column_may_be_shown_twice(session: DuckDbSession) -> None:
    tree = Project(Input(0, (A, B)), (named(1, A), named(2, B), named(1, A)))
    program = Program(tree, frozenset())
    assert tuples(program.run(session, {0: rows_of((A, B), [(1, "x")])})) == [(1, "x", 1)]


def test_rows_without_columns_are_counted(session: DuckDbSession) -> None:
    none = Project(Filter(Input(0, (A, B)), test("is_not_null", A)), ())
    tree = Aggregate(none, (), (named(5, aggregation("count", LONG, literal(1, INTEGER))),))
    assert run(tree, session, i0=rows_of((A, B), LEFT_ROWS)) == [(5,)]
    batches = Program(none, frozenset()).run(session, {0: rows_of((A, B), LEFT_ROWS)})
    again = Aggregate(Input(0, ()), (), tree.aggregations)
    assert tuples(Program(again, frozenset()).run(session, {0: batches})) == [(5,)]


def test_results_have_catalysts_types_not_the_kernels(session: DuckDbSession) -> None:
    price = column(1, decimal(15, 2))
    product_type = decimal(32, 4)
    tree = Project(
        Input(0, (price,)),
        (
            named(5, call("multiply", product_type, price, call("cast", decimal(16, 2), price))),
            named(6, test("gt", price, literal(Decimal(1), decimal(15, 2)))),
        ),
    )
    (batch,) = Program(tree, frozenset()).run(session, {0: rows_of((price,), [(Decimal("1.50"),)])})
    assert [str(field.type) for field in batch.schema] == ["decimal128(32, 4)", "bool"]
    assert tuples([batch]) == [(Decimal("2.2500"), True)]
    assert tree.columns[1].type == BOOLEAN
