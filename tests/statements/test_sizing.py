"""What functions will make is computed from lengths, before they make it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.trees import SETTINGS, call, column, literal, named, rows_of, tuples

from wallaby.errors import MemoryLimitError
from wallaby.functions.registry import SCALARS
from wallaby.functions.size import ARRAY_TIMES
from wallaby.operators.program import Program
from wallaby.operators.steps import LoweredTree, Statement
from wallaby.operators.taking import ALL, first_pace
from wallaby.relations.expression import Call, Expression
from wallaby.relations.relation import Filter, Input, Project, Relation, Unnest
from wallaby.relations.types import BOOLEAN, INTEGER, LONG, STRING, array
from wallaby.statements.connection import OVER_PORTIONS, DuckDbSession, close_thread_session
from wallaby.statements.growth import Growth, path_above
from wallaby.statements.ordinary import multiples

S, T, N, A = column(1, STRING), column(2, STRING), column(3, INTEGER), column(4, array(STRING))
X, SOFAR, DONE, E = column(7, STRING), column(8, STRING), column(9, STRING), column(20, STRING)
ROWS = Input(0, (S, T, N, A))
LETTERS = "a" * 10 + "b" * 90
ONE = rows_of((S, T, N, A), [(LETTERS, "t" * 50, 7, ["x"] * 5), (None, None, None, None)])
REPLACED = call("replace", STRING, S, literal("a", STRING), T)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_thread_session()


def weights(tree: Relation) -> tuple[list[int], list[int]]:
    found = Growth(tree, 0, SETTINGS).weigh(ONE)
    assert found is not None
    return [int(one) for one in found.most], [int(one) for one in found.sure]


def of(*expressions: Expression) -> Project:
    return Project(ROWS, tuple(named(20 + place, one) for place, one in enumerate(expressions)))


def lambda_of(body: Expression, *parameters: Expression) -> Call:
    return Call("lambda", (body, *parameters), body.type, nullable=True)


def test_what_is_replaced_is_counted() -> None:
    assert weights(of(REPLACED)) == ([90 + 10 * 50, 0], [90 + 10 * 50, 0])


def test_elements_are_measured_one_by_one() -> None:
    made = call("transform", array(STRING), A, lambda_of(call("concat", STRING, X, T), X))
    most, sure = weights(of(made))
    assert sure == [5 * (1 + 50) + 5 * 8, 0]
    assert most == [ARRAY_TIMES * size for size in sure], "DuckDB copies arrays while they grow"


def test_an_aggregation_that_doubles_is_measured_without_its_elements() -> None:
    steps = call("sequence", array(LONG), literal(1, LONG), call("cast", LONG, N))
    merge = lambda_of(call("concat", STRING, SOFAR, SOFAR), SOFAR, column(30, LONG))
    made = call("aggregate", STRING, steps, literal("ab", STRING), merge, lambda_of(DONE, DONE))
    most, _ = weights(of(made))
    assert most[0] >= 2 << 7


def test_a_result_of_a_result_is_measured_although_there_is_neither() -> None:
    below = Project(ROWS, (named(20, REPLACED), named(21, T)))
    above = Project(below, (named(22, call("array_repeat", array(STRING), E, literal(1000, INTEGER))),))
    most, sure = weights(above)
    assert most[0] >= 1000 * 590
    assert sure[0] == 590, "what is only bounded refuses nothing"


def test_what_a_filter_may_keep_away_is_not_certain() -> None:
    few = Filter(ROWS, call("lt", BOOLEAN, N, literal(3, INTEGER)))
    assert weights(Project(few, (named(20, REPLACED),))) == ([590, 0], [0, 0])


def test_a_function_that_declares_nothing_takes_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALARS, "upper", replace(SCALARS["upper"], size=None))
    tree = of(call("upper", STRING, S))
    assert first_pace(tree) != ALL
    assert weights(tree)[0] == [SETTINGS.portion_bytes // 8] * 2


def test_an_ordinary_expression_is_not_weighed() -> None:
    tree = of(call("upper", STRING, S), call("concat", STRING, S, T))
    assert first_pace(tree) == ALL
    assert Growth(tree, 0, SETTINGS).weigh(ONE) is None


def wide_of(length: int, count: int) -> list[pa.RecordBatch]:
    return rows_of((S, T, N, A), [("a" * length, "t", 1, [])] * count)


def test_wide_rows_are_weighed_for_ordinary_functions_too() -> None:
    """A vector of them makes hundreds of megabytes of empty parts, which DuckDB neither counts nor spills."""
    settings = replace(SETTINGS, portion_bytes=1 << 20)
    tree = of(call("split", array(STRING), S, literal("a", STRING)))
    growth = Growth(tree, 0, settings)
    found = growth.weigh(wide_of(20_000, 100))
    assert found is not None
    assert int(found.sure[0]) == 0, "it is only bounded"
    assert 20_000 * 16 * 2 < found.most[0] < 20_000 * 16 * 8
    limit = OVER_PORTIONS * settings.portion_bytes
    assert found.rows_within(0, 100, limit, settings) < 10
    assert growth.weigh(wide_of(20, 5000)) is None, "a vector of narrow rows makes little"


def test_what_is_made_of_the_result_of_an_ordinary_function_counts() -> None:
    below = Project(ROWS, (named(20, call("upper", STRING, S)),))
    above = Project(below, (named(21, call("concat", STRING, E, E)),))
    assert multiples(path_above(above, 0)) == {S.id: 3 + 2 * 2 * 3}


def test_a_single_row_may_make_two_fifths_of_what_a_kernel_may_hold() -> None:
    """There are several copies of it, and DuckDB counts hardly any."""
    steps = call("sequence", array(LONG), literal(1, LONG), call("cast", LONG, N))
    limit = SETTINGS.memory_bytes * 2 // 5
    for count, refused in ((limit // 8 - 1, False), (limit // 8 + 1, True)):
        found = Growth(of(steps), 0, SETTINGS).weigh(rows_of((S, T, N, A), [("", "", count, [])]))
        assert found is not None
        assert int(found.sure[0]) == count * 8
        with pytest.raises(MemoryLimitError, match="A single row produces") if refused else nullcontext():
            assert found.rows_within(0, 1, 1, SETTINGS) == 1


def test_the_rows_of_an_array_are_made_before_what_multiplies_them(session: DuckDbSession) -> None:
    """So that their number is known; and only few are taken at a time."""
    rows = Unnest(ROWS, A, (S, T), None, (E,), fields=False, outer=False)
    tree = Project(rows, (named(30, call("replace", STRING, S, literal("a", STRING), T)),))
    steps = LoweredTree(tree, frozenset(), in_pieces=True).steps
    assert [type(step.relation) for step in steps if isinstance(step, Statement)] == [Unnest, Project]
    long = rows_of((S, T, N, A), [("a" * 1000, "t" * 1000, 1, ["x"] * 20)])
    own = replace(SETTINGS, portion_bytes=1 << 20)
    small = DuckDbSession(own)
    batches = list(Program(tree, frozenset(), in_pieces=True).stream(small, {0: long}))
    small.close()
    assert [len(str(row[0])) for row in tuples(batches)] == [1_000_000] * 20
    assert max(batch.num_rows for batch in batches) <= OVER_PORTIONS * own.portion_bytes // 1_000_000
