"""Small queries on trees of relations, and small changes to them."""

from __future__ import annotations

from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Range,
    Relation,
    Rows,
    Scan,
    Single,
    Sort,
    Union,
    Unnest,
    Window,
    children_of,
)
from wallaby.relations.tree import with_equal_children
from wallaby.statements.relation import inputs_of


def without_inputs(relation: Relation, absent: frozenset[int]) -> Relation:
    """Remove the semi joins whose filtering side is missing."""
    match relation:
        case Join(kind=JoinKind.SEMI) if any(source.number in absent for source in inputs_of(relation.right)):
            return without_inputs(relation.left, absent)
        case _:
            children = [without_inputs(child, absent) for child in children_of(relation)]
            return with_equal_children(relation, children)


def needs_input(relation: Relation, number: int) -> bool:
    """Does the relation have no rows whenever the input has none?"""
    match relation:
        case Input():
            return relation.number == number
        case Scan() | Rows() | Range() | Single():
            return False
        case Aggregate():
            return bool(relation.keys) and needs_input(relation.child, number)
        case Join():
            return _join_needs(relation, number)
        case Filter() | Project() | Sort() | Limit() | Expand() | Unnest() | Window() | Union():
            return all(needs_input(child, number) for child in children_of(relation))


def _join_needs(join: Join, number: int) -> bool:
    left, right = needs_input(join.left, number), needs_input(join.right, number)
    if join.kind.keeps_left and join.kind.keeps_right:
        return left and right
    return (left and not join.kind.keeps_right) or (right and not join.kind.keeps_left)


def is_inner(relation: Relation, number: int, streaming: int = 1) -> bool:
    """Can the rows of an input be taken in any pieces, like streaming rows? Yes, if only inner joins use it."""
    numbers = {source.number for source in inputs_of(relation)}
    if number not in numbers:
        return True
    if isinstance(relation, Join) and not relation.kind.is_inner:
        return False
    if isinstance(relation, Aggregate | Sort | Limit | Single | Window) and streaming not in numbers:
        return False
    return all(is_inner(child, number, streaming) for child in children_of(relation))
