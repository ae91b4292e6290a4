"""Find the part of a scan fragment's tree that the reader applies: the lowest filters and selections of columns."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, replace

import polars as pl

from wallaby.functions.registry import fallible
from wallaby.relations import functions
from wallaby.relations.expression import Call, Expression, columns_in
from wallaby.relations.relation import Filter, Input, Project, Relation, Scan, children_of
from wallaby.relations.tree import conjuncts, expressions_of, filtered, with_equal_children
from wallaby.statements.relation import inputs_of
from wallaby.tables.row_filter import Names, row_filter

_SPLIT = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan for reading: read these columns of the rows that `keep` keeps, then run the tree on them."""

    scan: Scan
    keep: pl.Expr | None
    #: The columns that `keep` uses.
    kept_by: tuple[str, ...]
    tree: Relation


def planned_reading(scan: Scan, tree: Relation) -> Reading:
    """Plan the reading for a tree; a tree that uses the split more than once gets all rows and columns."""
    if not uses_split_once(tree):
        return Reading(scan, None, (), tree)
    names = {column.id: name for column, name in zip(scan.columns, scan.names, strict=True)}
    found: dict[Expression, pl.Expr] = {}
    tree = _without_filters(tree, names, found)
    keep = functools.reduce(operator.and_, found.values()) if found else None
    kept_by = sorted(names[column_id] for column_id in frozenset[int]().union(*map(columns_in, found)))
    foot = next(source for source in inputs_of(tree) if source.number == _SPLIT)
    kept = [
        (column, name)
        for column, name in zip(scan.columns, scan.names, strict=True)
        if column in foot.columns
    ]
    narrow = replace(scan, columns=tuple(column for column, _ in kept), names=tuple(name for _, name in kept))
    return Reading(narrow, keep, tuple(kept_by), tree)


def uses_split_once(tree: Relation) -> bool:
    """Does a tree use the rows of the split in exactly one place?"""
    return sum(source.number == _SPLIT for source in inputs_of(tree)) == 1


def _without_filters(relation: Relation, names: Names, found: dict[Expression, pl.Expr]) -> Relation:
    """Remove filters, which `found` collects, and the columns that only they used."""
    match relation:
        case Filter(child=Input(number=0) as split, condition=condition):
            rest: list[Expression] = []
            for part in conjuncts(condition):
                # Conditions after one that can fail must not keep rows from it.
                late = any(map(fallible, rest)) and not _is_null_check(part)
                keep = None if late else row_filter(part, names)
                if keep is None:
                    rest.append(part)
                else:
                    found[part] = keep
            return filtered(split, rest)
        case Project():
            child = _without_filters(relation.child, names, found)
            return replace(relation, child=_narrowed(child, _used(relation)))
        case _:
            return with_equal_children(
                relation, [_without_filters(child, names, found) for child in children_of(relation)]
            )


def _is_null_check(condition: Expression) -> bool:
    """Is it a check for NULL? Functions give NULL for NULL, so such a row makes nothing fail."""
    return isinstance(condition, Call) and condition.function == functions.IS_NOT_NULL


def _narrowed(relation: Relation, used: frozenset[int]) -> Relation:
    """Keep only the columns of the split that are used; at least one, because rows need a column."""
    match relation:
        case Filter(child=Input(number=0) as split):
            used |= columns_in(relation.condition)
            return replace(relation, child=_narrowed(split, used))
        case Input(number=0):
            columns = tuple(column for column in relation.columns if column.id in used)
            return replace(relation, columns=columns or relation.columns[:1])
        case _:
            return relation


def _used(relation: Relation) -> frozenset[int]:
    return frozenset[int]().union(*(columns_in(expression) for expression in expressions_of(relation)))
