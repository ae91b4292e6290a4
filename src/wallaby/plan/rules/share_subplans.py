"""Find equal parts of a query, so that they are computed once.

Two parts are equal if they do the same with the same tables, whatever the ids of their columns, and even if one needs
columns that the other does not: the shared part then has the columns of both. Such parts come from views that are used
twice, from subqueries over the same joins, and from run-time filters, whose source is a side of the join itself. A part
is worth sharing if it joins, aggregates, or filters out many rows; reading a table twice costs little more than reading
it once and keeping its rows.
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

#: A filter that keeps more than this share of its rows does not make a part worth sharing.
_KEPT_MAX = 0.5
#: More rows than this are cheaper to read and filter again than to keep.
_ROWS_MAX = 4e6
#: A part that reads fewer rows than this is not worth sharing.
_ROWS_MIN = 1000


@dataclass(frozen=True, slots=True)
class SharedParts:
    """A query in which equal parts are `Input`s: number `i` represents the rows of `parts[i]`, in its columns.

    Parts may have inputs of other, smaller parts.
    """

    root: Relation
    parts: tuple[Relation, ...]


@dataclass(slots=True)
class _Equal:
    """One relation for several equal ones, with a map from each use's column ids, which identify it, to the part's."""

    part: Relation
    uses: list[tuple[Relation, dict[int, int]]]


def share_subplans(
    relation: Relation, statistics: Statistics, parts: tuple[Relation, ...] = ()
) -> SharedParts:
    """Extract the equal parts of a query, the largest first; `parts` were extracted before."""
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
    """The replacement for a use: the part's rows, under the use's column ids."""
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
    facts = _Facts(estimator)
    found = [part for tree in trees for part in _parts(tree)]
    tables = [part.files for part in map(stripped, found) if isinstance(part, Scan)]
    if len(set(tables)) == len(tables):
        return None  # most queries: no table is read twice
    by_shape: dict[tuple[object, ...], list[Relation]] = {}
    for part in found:
        if facts.is_worth_sharing(part):
            by_shape.setdefault(facts.of(part).shape, []).append(part)
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
    """Every relation in a tree, outermost first, together with a selection of its columns right above it."""
    yield tree
    for child in children_of(stripped(tree)):
        yield from _parts(child)


@dataclass(frozen=True, slots=True)
class _Fact:
    """What is known of a relation before it is compared with others."""

    #: A key that equal parts share, cheap to compare; longer for larger parts.
    shape: tuple[object, ...]
    #: Does it read enough rows?
    reads: bool
    #: Does it join or aggregate?
    works: bool


class _Facts:
    """The facts of the relations of one query, each found once: parts are in each other."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._known: dict[int, _Fact] = {}

    def of(self, part: Relation) -> _Fact:
        known = self._known.get(id(part))
        if known is None:
            known = self._known[id(part)] = self._make(stripped(part))
        return known

    def _make(self, relation: Relation) -> _Fact:
        below = [self.of(child) for child in children_of(relation)]
        own: tuple[object, ...] = (type(relation).__name__,)
        reads = any(fact.reads for fact in below)
        if isinstance(relation, Scan):
            own = (*own, *relation.files)
            reads = self._estimator.of(relation).rows >= _ROWS_MIN
        works = isinstance(relation, Join | Aggregate) or any(fact.works for fact in below)
        return _Fact(own + tuple(word for fact in below for word in fact.shape), reads, works)

    def is_worth_sharing(self, part: Relation) -> bool:
        fact = self.of(part)
        if not fact.reads or fact.works:
            return fact.reads
        inner = stripped(part)
        return isinstance(inner, Filter) and _is_few(inner, self._estimator)


def _is_few(condition: Filter, estimator: Estimator) -> bool:
    rows = estimator.of(condition).rows
    return rows <= min(_ROWS_MAX, _KEPT_MAX * estimator.of(condition.child).rows)
