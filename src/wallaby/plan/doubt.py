"""Functions that Wallaby computes for plain values only: one value in doubt leaves the whole query to Spark.

Their kernels then end the query with `DoubtfulValueError`. So that Spark's answer can replace the query's rows, none of
them may reach the client before the query has ended.
"""

from __future__ import annotations

from typing import Final

from wallaby.plan.physical import PhysicalPlan, ScanFragment, trees_of
from wallaby.relations.expression import Call, walk
from wallaby.relations.formats import Orc
from wallaby.relations.relation import Relation, Scan, Source, children_of
from wallaby.relations.tree import expressions_of
from wallaby.relations.types import Kind

DOUBTFUL: Final = frozenset(
    (
        *("get_json_object", "json_member", "mask", "parse_url", "seconds_to_timestamp", "text_to_timestamp"),
        *("make_time_interval", "multiply_interval"),
    )
)


def may_doubt(plan: PhysicalPlan) -> bool:
    """Does a plan have such a function, or a file that may have dates in another calendar?"""
    trees = (tree for fragment in plan.fragments for tree in trees_of(fragment))
    return any(map(_doubts, trees)) or any(
        _has_dates(fragment.scan) for fragment in plan.fragments if isinstance(fragment, ScanFragment)
    )


def _has_dates(source: Source) -> bool:
    orc = isinstance(source, Scan) and isinstance(source.format, Orc)
    return orc and any(column.type.kind is Kind.DATE for column in source.columns)


def _doubts(relation: Relation) -> bool:
    own = (part for expression in expressions_of(relation) for part in walk(expression))
    return any(isinstance(part, Call) and part.function in DOUBTFUL for part in own) or any(
        map(_doubts, children_of(relation))
    )
