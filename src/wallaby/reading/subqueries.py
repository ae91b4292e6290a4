"""Scalar subqueries: the value of a subquery becomes a column beside the rows that use it.

Catalyst has turned correlated subqueries into joins; the others give the same value for every row. A cross join with
the subquery's single row puts that value beside the rows, so planning and kernels need not know about subqueries. If
Catalyst has merged several subqueries into one, it gives a struct, and each use takes one field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wallaby.catalyst.node import Node
from wallaby.relations.expression import Column, Expression, Named, columns_in
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Join, Project, Relation, Single
from wallaby.relations.tree import ids_of

SUBQUERY = "ScalarSubquery"
FIELD = "GetStructField"


def is_subquery(node: Node) -> bool:
    """Is an expression a scalar subquery, or a field of one that Catalyst has made of several?"""
    if node.name == FIELD and node.children[0].name == SUBQUERY:
        return _is_packed(node.children[0].node("plan"))
    return node.name == SUBQUERY


class Subqueries:
    """The subqueries of the operator that is being read, until it puts them beside its input."""

    def __init__(
        self,
        read: Callable[[Node], Relation | None],
        fresh_id: Callable[[], int],
        refuse: Callable[[str, str], None],
    ) -> None:
        self._read = read
        self._fresh_id = fresh_id
        self._refuse = refuse
        self._pending: list[tuple[Node, Relation]] = []
        self._placed: set[int] = set()

    def read(self, node: Node) -> Column | None:
        """The column that will hold a subquery's value; None, with reasons, if it cannot be read."""
        field, of_struct = 0, node.name == FIELD
        if of_struct:
            ordinal = node.field("ordinal")
            field, node = ordinal if isinstance(ordinal, int) else 0, node.children[0]
        if node.children:
            self._refuse(
                SUBQUERY, "a correlated subquery that Spark does not turn into a join is not supported"
            )
            return None
        plan = node.node("plan")
        if of_struct:
            plan = _unpacked(plan)
        # Each subquery has an id of its own; equal plans give equal values.
        for known, single in self._pending:
            if known == plan:
                return single.columns[field]
        outer = self._pending, self._placed
        self._pending, self._placed = [], set()
        relation = self._read(plan)
        self._pending, self._placed = outer
        if relation is None:
            return None
        outputs = tuple(Named(replace(c, id=self._fresh_id(), nullable=True), c) for c in relation.columns)
        made = Single(Project(relation, outputs))
        self._pending.append((plan, made))
        return made.columns[field]

    def beside(self, relation: Relation, *expressions: Expression) -> Relation:
        """A relation with the values of the subqueries that some expressions use as further columns."""
        used = frozenset[int]().union(*map(columns_in, expressions))
        for number, (_, single) in enumerate(self._pending):
            if used.intersection(ids_of(single.columns)):
                self._placed.add(number)
                columns = (*relation.columns, *single.columns)
                relation = Join(relation, single, JoinKind.CROSS, (), (), None, columns)
        return relation

    def finish(self, name: str) -> None:
        """The operator has been read: refuse the subqueries for which it had no place."""
        if len(self._placed) < len(self._pending):
            self._refuse(name, "subqueries in it are not supported yet")
        self._pending, self._placed = [], set()


def _is_packed(plan: Node) -> bool:
    """Does a plan end with `Project [named_struct('a', x, 'b', y)]`, the form of merged subqueries?"""
    if plan.name != "Project":
        return False
    outputs = plan.nodes("projectList")
    return (
        len(outputs) == 1
        and outputs[0].name == "Alias"
        and outputs[0].children[0].name == "CreateNamedStruct"
    )


def _unpacked(plan: Node) -> Node:
    """A plan of that form with a projection of x and y."""
    (struct,) = plan.nodes("projectList")
    values = struct.children[0].children[1::2]
    named = [replace(struct, children=(value,), type=value.type, nullable=value.nullable) for value in values]
    return replace(plan, fields={**(plan.fields or {}), "projectList": named})
