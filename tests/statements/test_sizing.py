"""What functions will make is computed from lengths, before they make it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.trees import SETTINGS, call, column, literal, named, rows_of, tuples

from wallaby.functions.registry import SCALARS
from wallaby.operators.program import Program
from wallaby.operators.steps import LoweredTree, Statement
from wallaby.operators.taking import ALL, first_pace
from wallaby.relations.expression import Call, Expression
from wallaby.relations.relation import Filter, Input, Project, Relation, Unnest
from wallaby.relations.types import BOOLEAN, INTEGER, LONG, STRING, array
from wallaby.statements.connection import OVER_PORTIONS, DuckDbSession, close_thread_session
from wallaby.statements.growth import Growth

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
    assert most == sure == [5 * (1 + 50) + 5 * 8, 0]


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
