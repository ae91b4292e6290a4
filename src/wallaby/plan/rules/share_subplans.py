"""Equal parts of a query, found so that they are computed once.

Two parts are equal if they do the same with the same tables, whatever numbers their columns have, and even if one
needs columns that the other does not: then the shared part has those of both. Such parts come from views that are used
twice, from subqueries over the same joins, and from run-time filters, whose source is a side of the join itself.
A part is worth sharing if it joins, aggregates or filters away a good deal; to read a table twice costs little more
than to read it once and keep its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.rules.prune_columns import pruned_to
from wallaby.relations.equal_parts import merged, stripped
from wallaby.relations.expression import Named
from wallaby.relations.relation import Aggregate, Filter, Input, Join, Project, Relation, Scan, children_of
from wallaby.relations.tree import ids_of, with_children

#: A filter that keeps more than this share of its rows makes no part worth sharing.
_KEPT_MAX = 0.5
#: More rows than this are cheaper read and filtered again than kept.
_ROWS_MAX = 4e6
#: What reads fewer rows than this is not worth the trouble.
_ROWS_MIN = 1000


@dataclass(frozen=True, slots=True)
class SharedParts:
    """A query in which equal parts are `Input`s: number `i` stands for the rows of `parts[i]`, in its columns.

    Parts may have inputs of other parts, of smaller ones only.
    """

    root: Relation
    parts: tuple[Relation, ...]


@dataclass(slots=True)
class _Equal:
    """One relation for several equal ones. Of each use: its columns' ids, by which it is known, to the part's."""

    part: Relation
    uses: list[tuple[Relation, dict[int, int]]]


def share_subplans(
    relation: Relation, statistics: Statistics, parts: tuple[Relation, ...] = ()
) -> SharedParts:
    """The query with its equal parts taken out, the largest first; `parts` were taken out before."""
    trees: list[Relation] = [relation, *parts]
    while True:
        estimator = Estimator(statistics, dict(enumerate(trees[1:])))
        found = _largest_equal(trees, estimator)
        if found is None:
            return SharedParts(trees[0], tuple(trees[1:]))
        needed = frozenset(mapping[c.id] for use, mapping in found.uses for c in use.columns)
        part = pruned_to(found.part, needed)
        number = len(trees) - 1
        uses = {id(use): _use(use, mapping, part, number) for use, mapping in found.uses}
        trees = [*(_replaced(tree, uses) for tree in trees), part]


def _use(use: Relation, mapping: dict[int, int], part: Relation, number: int) -> Relation:
    """What stands in the place of a use: the part's rows, under the names that the use has for them."""
    rows = Input(number, part.columns)
    columns = {column.id: column for column in part.columns}
    outputs = tuple(Named(column, columns[mapping[column.id]]) for column in use.columns)
    same = all(named.column.id == mapping[named.column.id] for named in outputs)
    return rows if same and ids_of(use.columns) == ids_of(part.columns) else Project(rows, outputs)


def _replaced(tree: Relation, uses: dict[int, Relation]) -> Relation:
    if id(tree) in uses:
        return uses[id(tree)]
    children = children_of(tree)
    changed = tuple(_replaced(child, uses) for child in children)
    same = all(a is b for a, b in zip(children, changed, strict=True))
    return tree if same else with_children(tree, changed)


def _largest_equal(trees: list[Relation], estimator: Estimator) -> _Equal | None:
    by_shape: dict[tuple[object, ...], list[Relation]] = {}
    for tree in trees:
        for part in _parts(tree):
            if _is_worth_sharing(part, estimator):
                by_shape.setdefault(_shape(part), []).append(part)
    for _, alike in sorted(by_shape.items(), key=lambda item: -len(item[0])):
        for at, first in enumerate(alike[:-1]):
            equal = _equal(first, alike[at + 1 :])
            if equal is not None:
                return equal
    return None


def _equal(first: Relation, others: list[Relation]) -> _Equal | None:
    equal = _Equal(first, [(first, {column.id: column.id for column in first.columns})])
    known = {id(first)}
    found = False
    for other in others:
        if id(other) in known:  # the same object in another place
            found = True
            continue
        both = merged(equal.part, other)
        if both is not None:
            equal.part, mapping = both
            equal.uses.append((other, mapping))
            known.add(id(other))
            found = True
    return equal if found else None


def _parts(tree: Relation) -> Iterator[Relation]:
    """Every relation in a tree, outermost first; with it goes a choice of its columns right above."""
    yield tree
    for child in children_of(stripped(tree)):
        yield from _parts(child)


def _shape(relation: Relation) -> tuple[object, ...]:
    """What two equal parts have in common, cheap to compare; longer for larger ones."""
    relation = stripped(relation)
    own: tuple[object, ...] = (type(relation).__name__,)
    if isinstance(relation, Scan):
        own = (*own, *relation.files)
    return own + tuple(part for child in children_of(relation) for part in _shape(child))


def _is_worth_sharing(part: Relation, estimator: Estimator) -> bool:
    below = [stripped(each) for each in _parts(part)]
    scans = [each for each in below if isinstance(each, Scan)]
    if not any(estimator.of(scan).rows >= _ROWS_MIN for scan in scans):
        return False
    if any(isinstance(each, Join | Aggregate) for each in below):
        return True
    return isinstance(below[0], Filter) and _is_few(below[0], estimator)


def _is_few(condition: Filter, estimator: Estimator) -> bool:
    rows = estimator.of(condition).rows
    return rows <= min(_ROWS_MAX, _KEPT_MAX * estimator.of(condition.child).rows)
