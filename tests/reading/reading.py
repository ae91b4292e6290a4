"""What the tests of the plan reader share: read a query and look at one expression, or at the reasons."""

from __future__ import annotations

from pyspark.sql import SparkSession

from wallaby.reading.reader import read_plan
from wallaby.relations.expression import Expression
from wallaby.relations.relation import Aggregate, Project, Relation, children_of


def relation_of(spark: SparkSession, sql: str) -> Relation:
    result = read_plan(spark.sql(sql))
    assert result.relation is not None, result.reasons
    assert result.reasons == ()
    return result.relation


def selected(spark: SparkSession, expression: str, table: str = "kinds") -> Expression:
    """The expression that `select … from kinds` computes."""
    relation = relation_of(spark, f"select {expression} as x from {table}")
    assert isinstance(relation, Project)
    return relation.outputs[0].expression


def aggregated(spark: SparkSession, expression: str, table: str = "kinds") -> Expression:
    """The first aggregation of `select …`."""
    relation = relation_of(spark, f"select {expression} as x from {table}")
    aggregate = next(part for part in walk_relations(relation) if isinstance(part, Aggregate))
    return aggregate.aggregations[0].expression


def reasons_of(spark: SparkSession, sql: str) -> list[str]:
    result = read_plan(spark.sql(sql))
    assert result.relation is None
    assert result.reasons
    return [str(reason) for reason in result.reasons]


def walk_relations(relation: Relation) -> list[Relation]:
    return [relation, *(part for child in children_of(relation) for part in walk_relations(child))]
