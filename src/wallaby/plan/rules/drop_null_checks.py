"""Drop checks for NULL on columns that have none according to the footers.

Catalyst puts such a check on every join key. Dropping it saves a test per row, and makes parts of a query equal that
differ in nothing else, so that they can be shared.
"""

from __future__ import annotations

from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations import functions
from wallaby.relations.equal_parts import stripped
from wallaby.relations.expression import Call, Column, Expression
from wallaby.relations.relation import Filter, Relation, Scan
from wallaby.relations.tree import conjuncts, filtered, rewrite_up


def drop_null_checks(relation: Relation, statistics: Statistics) -> Relation:
    """Remove checks that every row passes from filters right above scans."""

    def drop(relation: Relation) -> Relation:
        if not isinstance(relation, Filter):
            return relation
        scan = stripped(relation.child)
        if not isinstance(scan, Scan):
            return relation
        never = _never_null(scan, statistics)
        parts = conjuncts(relation.condition)
        left = tuple(part for part in parts if not _checks_only(part, never))
        return relation if len(left) == len(parts) else filtered(relation.child, left)

    return rewrite_up(relation, drop)


def _never_null(scan: Scan, statistics: Statistics) -> frozenset[int]:
    table = statistics.of(scan)
    if table is None:
        return frozenset()
    named = zip(scan.columns, scan.names, strict=True)
    return frozenset(column.id for column, name in named if table.column(name).nulls == 0)


def _checks_only(condition: Expression, never_null: frozenset[int]) -> bool:
    match condition:
        case Call(function=functions.IS_NOT_NULL, arguments=(Column(id=id_),)):
            return id_ in never_null
        case _:
            return False
