"""Every function whose results vary in size declares how large they may be, and no result is larger than that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from wallaby.errors import QueryError
from wallaby.functions.registry import SCALARS
from wallaby.functions.size import value_size, varies
from wallaby.reading.reader import read_plan
from wallaby.relations.expression import Call, Expression, walk
from wallaby.relations.functions import LAMBDA
from wallaby.relations.relation import Input, Project, Relation, Scan, children_of
from wallaby.relations.tree import expressions_of
from wallaby.sql.types import column_name
from wallaby.statements.connection import DuckDbSession
from wallaby.statements.expression import output_sql, supports
from wallaby.statements.relation import relation_sql
from wallaby.statements.sizing import Sizing
from wallaby_lab.differential.generated.examples import AGGREGATED, EXAMPLES
from wallaby_lab.differential.generated.expand import expand
from wallaby_lab.differential.generated.tables import register, write_tables

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wild")
    write_tables(directory, 3)
    return directory


def relations(relation: Relation) -> Iterator[Relation]:
    yield relation
    for child in children_of(relation):
        yield from relations(child)


def planned(spark: SparkSession, wild: Path) -> Iterator[Relation]:
    """The relations of examples over the odd rows of the differential suite: all of an entry at once, if possible."""
    register(spark, wild)
    for entry, examples in EXAMPLES.items():
        if entry in AGGREGATED:
            continue
        found = [expand(entry, example, 0)[0] for example in examples]
        together = [one.sql for one in found if not one.is_query]
        relation = read(spark, together)
        some = [relation] if relation is not None else [read(spark, [sql]) for sql in together]
        yield from (relation for relation in some if relation is not None)


def read(spark: SparkSession, expressions: list[str]) -> Relation | None:
    shown = ", ".join(f"{sql} as c{number}" for number, sql in enumerate(expressions))
    try:
        return read_plan(spark.sql(f"select id, {shown} from wild")).relation if expressions else None
    except AnalysisException:
        return None


@pytest.fixture(scope="module")
def examples(spark: SparkSession, wild: Path) -> list[Relation]:
    return list(planned(spark, wild))


def test_a_function_whose_results_vary_declares_how_large_they_may_be(examples: list[Relation]) -> None:
    calls = [
        part
        for relation in examples
        for inner in relations(relation)
        for expression in expressions_of(inner)
        for part in walk(expression)
        if isinstance(part, Call) and part.function != LAMBDA
    ]
    assert len({call.function for call in calls}) > 200
    missing = {call.function for call in calls if varies(call.type) and SCALARS[call.function].size is None}
    assert missing == set(), "give their ScalarSql a size: docs/howto/add-a-function.md"


def test_no_result_is_larger_than_its_declared_size(
    examples: list[Relation], wild: Path, session: DuckDbSession
) -> None:
    table = pq.read_table(wild / "wild")
    measured, wrong = 0, []
    for relation in examples:
        if not isinstance(relation, Project) or not isinstance(relation.child, Scan):
            continue
        scan = relation.child
        rows = table.select(list(scan.names)).rename_columns([column_name(c.id) for c in scan.columns])
        for expression in (named.expression for named in relation.outputs):
            size = Sizing({}, {}).size(expression) if varies(expression.type) else None
            if size is None or supports(expression) is not None:
                continue
            sql = _measuring(expression, size.sql, relation_sql(Input(0, scan.columns)))
            try:
                found = session.query(sql, {"input_0": rows})
            except QueryError:
                continue  # an error of the data
            measured += 1
            pairs = zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)
            wrong += [(str(expression), pair) for pair in pairs if pair[0] > pair[1]][:1]
    assert measured > 60
    assert wrong == []


def _measuring(expression: Expression, size: str, rows: str) -> str:
    made = f"SELECT {output_sql(expression)} AS v, CAST({size} AS DOUBLE) AS s FROM ({rows}) AS t"
    real = f"CASE WHEN v IS NULL THEN 0 ELSE {value_size('v', expression.type)} END"
    return f"SELECT CAST({real} AS DOUBLE), s FROM ({made}) AS m"
