"""Read aggregations. Catalyst mixes aggregate functions into result expressions; here they are separate.

An `Aggregate` gives keys and aggregations only; a `Project` on top computes with them, if there is anything to compute.
"""

from __future__ import annotations

from wallaby.catalyst.node import Node
from wallaby.functions.aggregates.ordered import exact_keys, first_of_keys
from wallaby.functions.aggregates.wrappers import only_of_group_sets
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.subqueries import Subqueries
from wallaby.relations.expression import Aggregation, Column, Expression, Named, walk
from wallaby.relations.relation import Aggregate, Project, Relation
from wallaby.relations.tree import substitute
from wallaby.relations.types import LONG


def read_aggregate(
    node: Node, child: Relation | None, reader: ExpressionReader, subqueries: Subqueries
) -> Relation | None:
    """Read Catalyst's `Aggregate` over its child, which is None if it could not be read."""
    if any(key.is_session for key in node.nodes("groupingExpressions")):
        reader.refuse("Aggregate", "session windows grow with their rows")
        return None
    keys = _keys(node, reader)
    written = node.nodes("aggregateExpressions")
    if _is_over_group_sets(node):
        written = tuple(map(only_of_group_sets, written))
    same = exact_keys(named.column for named in keys or ())
    written = tuple(first_of_keys(expression, same) for expression in written)
    results = read_named(written, reader)
    if child is None or keys is None or results is None:
        return None
    aggregations = _aggregations(results, reader)
    if not keys and not aggregations:
        # The result is one row, whatever the input: some function must represent it.
        counted = Column(reader.fresh_id(), "count", LONG, nullable=False)
        aggregations = (Named(counted, Aggregation("count", (), LONG, nullable=False)),)
    parts: dict[Expression, Expression] = {
        named.expression: named.column for named in (*keys, *aggregations) if named.expression != named.column
    }
    outputs = tuple(Named(named.column, substitute(named.expression, parts)) for named in results)
    inside = (named.expression for named in (*keys, *aggregations))
    aggregate = Aggregate(subqueries.beside(child, *inside), keys, aggregations)
    if [output.expression for output in outputs] == list(aggregate.columns) == [o.column for o in outputs]:
        return aggregate
    groups = subqueries.beside(aggregate, *(output.expression for output in outputs))
    return Project(groups, unique(outputs, reader))


def _is_over_group_sets(node: Node) -> bool:
    """Is this the second of the two aggregations by which Catalyst evaluates several DISTINCT?"""
    below = node.children[0]
    return below.name == "Aggregate" and any(child.name == "Expand" for child in below.children)


def read_named(nodes: tuple[Node, ...], reader: ExpressionReader) -> tuple[Named, ...] | None:
    """Read expressions with the columns that they become; None if one cannot be read."""
    named: list[Named] = []
    for node in nodes:
        expression = reader.read(node)
        column = reader.column(node)
        if expression is not None and column is not None:
            named.append(Named(column, expression))
    return tuple(named) if len(named) == len(nodes) else None


def unique(outputs: tuple[Named, ...], reader: ExpressionReader) -> tuple[Named, ...]:
    """Give each output an id of its own: a column that is selected twice gets a new id the second time."""
    seen: set[int] = set()
    made: list[Named] = []
    for named in outputs:
        column = named.column
        if column.id in seen:
            column = Column(reader.fresh_id(), column.name, column.type, column.nullable)
        seen.add(column.id)
        made.append(Named(column, named.expression))
    return tuple(made)


def _keys(node: Node, reader: ExpressionReader) -> tuple[Named, ...] | None:
    expressions = reader.read_all(node.nodes("groupingExpressions"))
    keys: dict[Expression, Named] = {}
    for number, expression in enumerate(expressions or ()):
        if isinstance(expression, Column):
            keys[expression] = Named(expression, expression)
        elif expression not in keys:
            column = Column(reader.fresh_id(), f"key_{number}", expression.type, expression.nullable)
            keys[expression] = Named(column, expression)
    return None if expressions is None else tuple(keys.values())


def _aggregations(results: tuple[Named, ...], reader: ExpressionReader) -> tuple[Named, ...]:
    """The aggregations of the results, each once, in order; under the result's own column if it is the whole result."""
    alone: dict[Expression, Column] = {}
    for named in results:
        if isinstance(named.expression, Aggregation):
            alone.setdefault(named.expression, named.column)
    found: dict[Aggregation, Named] = {}
    for named in results:
        for part in walk(named.expression):
            if isinstance(part, Aggregation) and part not in found:
                column = alone.get(part) or Column(reader.fresh_id(), part.function, part.type, part.nullable)
                found[part] = Named(column, part)
    return tuple(found.values())
