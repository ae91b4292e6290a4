"""Functions that Wallaby computes for plain values only: one value in doubt leaves the whole query to Spark.

Their kernels then end the query with `DoubtfulValueError`. So that Spark's answer can replace the query's rows, none of
them may reach the client before the query has ended. The declaration of a function says whether it is one of them
(`ScalarSql.doubtful`).
"""

from __future__ import annotations

from wallaby.plan.physical import PhysicalPlan, ScanFragment, trees_of
from wallaby.relations.expression import Call, walk
from wallaby.relations.formats import Orc
from wallaby.relations.relation import Relation, Scan, Source, children_of
from wallaby.relations.tree import expressions_of
from wallaby.relations.types import Kind


def may_doubt(plan: PhysicalPlan, doubtful: frozenset[str]) -> bool:
    """Does a plan call one of these functions, or read a file that may have dates in another calendar?"""
    trees = (tree for fragment in plan.fragments for tree in trees_of(fragment))
    return any(_calls(tree, doubtful) for tree in trees) or any(
        _has_dates(fragment.scan) for fragment in plan.fragments if isinstance(fragment, ScanFragment)
    )


def _has_dates(source: Source) -> bool:
    orc = isinstance(source, Scan) and isinstance(source.format, Orc)
    return orc and any(column.type.kind is Kind.DATE for column in source.columns)


def _calls(relation: Relation, functions: frozenset[str]) -> bool:
    own = (part for expression in expressions_of(relation) for part in walk(expression))
    return any(isinstance(part, Call) and part.function in functions for part in own) or any(
        _calls(child, functions) for child in children_of(relation)
    )
