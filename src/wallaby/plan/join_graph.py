"""Adjacent inner joins as a graph: sides, equal keys, and the other conditions between them.

Equalities are transitive: with a = b and b = c, the sides of a and c can be joined before that of b. So equal keys form
classes, and two parts of the graph are joined by one pair of every class with members in both. A set of sides is
represented by the bits of a number; its number of rows does not depend on the order in which its sides are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.join_size import domain_of, key_combinations
from wallaby.plan.estimates.selectivity import ColumnEstimate, selectivity_between
from wallaby.relations import functions
from wallaby.relations.expression import Call, Expression, columns_in
from wallaby.relations.infallible import cannot_fail
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Join, Relation
from wallaby.relations.tree import conjunction, conjuncts, filtered, ids_of
from wallaby.relations.types import BOOLEAN

#: A set of sides, as bits.
Sides = int


@dataclass(slots=True)
class JoinParts:
    """The parts of adjacent inner joins."""

    sides: list[Relation] = field(default_factory=list)
    #: Pairs of equal expressions, each over the columns of some sides.
    pairs: list[tuple[Expression, Expression]] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EqualKeys:
    """Expressions that are equal in every row, one for each side that has any."""

    members: dict[int, Expression]
    sides: Sides
    domain: float
    #: For each member: 1 / the share of its side's rows that meet a row of another side.
    weights: dict[int, float]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on rows of several sides, and its selectivity."""

    expression: Expression
    sides: Sides
    share: float


def conditions_of(join: Join) -> tuple[Expression, ...]:
    """The conditions of an inner join besides equal keys."""
    return () if join.residual is None else conjuncts(join.residual)


def can_move(join: Join) -> bool:
    """May a join be moved, and see other rows? Only if nothing in it can fail, and keys relate its sides."""
    parts = (*join.left_keys, *join.right_keys, *conditions_of(join))
    return join.kind is JoinKind.INNER and bool(join.left_keys) and all(map(cannot_fail, parts))


def equality(condition: Expression) -> tuple[Expression, Expression] | None:
    """The two sides of an equality that can be a join key.

    Floating-point keys must be normalized before they can be compared.
    """
    match condition:
        case Call(function=functions.EQUAL, arguments=(left, right)):
            plain = not (left.type.is_floating or left.type.is_nested)
            return (left, right) if plain and left.type == right.type else None
        case _:
            return None


class JoinGraph:
    """The graph of some joins, with estimates for every set of its sides."""

    def __init__(self, parts: JoinParts, estimator: Estimator) -> None:
        places = {id_: at for at, side in enumerate(parts.sides) for id_ in ids_of(side.columns)}
        self._places = places
        classes, rest = self._classes(parts)
        own: dict[int, list[Expression]] = {}
        for members in classes:
            for at, first, other in _repeated(members):
                own.setdefault(at, []).append(_equal(first, other))
        across: list[Expression] = []
        for condition in rest:
            sides = self.sides_of(condition)
            if sides.bit_count() == 1:
                own.setdefault(sides.bit_length() - 1, []).append(condition)
            else:
                across.append(condition)
        self.sides = tuple(filtered(side, own.get(at, ())) for at, side in enumerate(parts.sides))
        self._written = frozenset(parts.pairs)
        self._estimates = tuple(map(estimator.of, self.sides))
        self._columns = {id_: known for each in self._estimates for id_, known in each.columns.items()}
        self.classes = tuple(self._keys(members) for members in classes if len({at for at, _ in members}) > 1)
        self.conditions = tuple(self._condition(condition) for condition in across)
        self._corrections = self._all_corrections()
        self._rows: dict[Sides, float] = {}
        self.neighbours = tuple(
            _union(keys.sides for keys in self.classes if keys.sides >> at & 1) & ~(1 << at)
            for at in range(len(self.sides))
        )

    @property
    def all(self) -> Sides:
        """The set of all sides."""
        return (1 << len(self.sides)) - 1

    def sides_of(self, expression: Expression) -> Sides:
        """The sides whose columns an expression uses."""
        return _union(1 << self._places[id_] for id_ in columns_in(expression))

    # --- estimates -----------------------------------------------------------------------------------------

    def rows(self, sides: Sides) -> float:
        """The number of rows of these sides joined, in any order."""
        known = self._rows.get(sides)
        if known is None:
            known = self._rows[sides] = self._estimated(sides)
        return known

    def _estimated(self, sides: Sides) -> float:
        rows = 1.0
        for at, estimate in enumerate(self._estimates):
            if sides >> at & 1:
                rows *= estimate.rows
        for keys in self.classes:
            if (keys.sides & sides).bit_count() > 1:
                weights = [weight for at, weight in keys.weights.items() if sides >> at & 1]
                # The smallest weight does not count: the other members are compared with this one.
                weights.remove(min(weights))
                for weight in weights:
                    rows /= weight
        for condition in self.conditions:
            if condition.sides & sides == condition.sides:
                rows *= condition.share
        return rows * self._correction(sides)

    def _keys(self, members: Sequence[tuple[int, Expression]]) -> EqualKeys:
        first: dict[int, Expression] = {}
        for at, member in members:
            first.setdefault(at, member)
        known = {at: self._estimates[at].known(member) for at, member in first.items()}
        domain = domain_of(known.values())
        weights = {
            at: max(domain, self._estimates[at].rows) if column.unique else domain
            for at, column in known.items()
        }
        return EqualKeys(first, _union(1 << at for at in first), domain, weights)

    def _condition(self, expression: Expression) -> Condition:
        sides = self.sides_of(expression)
        columns = [frozenset(ids_of(side.columns)) for at, side in enumerate(self.sides) if sides >> at & 1]
        return Condition(expression, sides, selectivity_between(expression, self._columns, columns))

    def _all_corrections(self) -> tuple[tuple[float, Sides], ...]:
        """Sides with keys of several columns, and how many times more rows they give than single columns suggest."""
        found: list[tuple[float, Sides]] = []
        for left in range(len(self.sides)):
            for right in range(left + 1, len(self.sides)):
                both = 1 << left | 1 << right
                common = [keys for keys in self.classes if keys.sides & both == both]
                if len(common) > 1:
                    alone = 1.0
                    for keys in common:
                        alone *= keys.domain
                    pairs = [(self._known(left, keys), self._known(right, keys)) for keys in common]
                    together = key_combinations(pairs, [keys.domain for keys in common])
                    if together < alone:
                        found.append((alone / together, both))
        return tuple(sorted(found, key=lambda each: (-each[0], each[1])))

    def _known(self, at: int, keys: EqualKeys) -> ColumnEstimate:
        return self._estimates[at].known(keys.members[at])

    def _correction(self, sides: Sides) -> float:
        """The correction for a set of sides. Each side counts once, for one other side with the same keys."""
        times = 1.0
        trees: list[Sides] = []
        for ratio, both in self._corrections:
            if both & sides == both and not any(both & tree == both for tree in trees):
                times *= ratio
                touched = [tree for tree in trees if tree & both]
                trees = [tree for tree in trees if not tree & both] + [_union((both, *touched))]
        return times

    # --- joins ---------------------------------------------------------------------------------------------

    def is_joined(self, left: Sides, right: Sides) -> bool:
        """Do two sets share a class of equal keys?"""
        return any(keys.sides & left and keys.sides & right for keys in self.classes)

    def join(self, left: Relation, right: Relation, lefts: Sides, rights: Sides) -> Join:
        """Join two sets by all their keys, and by the conditions whose columns are then all available."""
        pairs = [
            self._pair(keys, lefts, rights)
            for keys in self.classes
            if keys.sides & lefts and keys.sides & rights
        ]
        both = lefts | rights
        residual = conjunction(
            c.expression
            for c in self.conditions
            if c.sides & both == c.sides and c.sides & lefts != c.sides and c.sides & rights != c.sides
        )
        return Join(
            left,
            right,
            JoinKind.INNER,
            tuple(a for a, _ in pairs),
            tuple(b for _, b in pairs),
            residual,
            (*left.columns, *right.columns),
        )

    def _pair(self, keys: EqualKeys, lefts: Sides, rights: Sides) -> tuple[Expression, Expression]:
        """One pair of a class; preferably one that the query itself compares."""
        pairs = [
            (a, b)
            for i, a in keys.members.items()
            if lefts >> i & 1
            for j, b in keys.members.items()
            if rights >> j & 1
        ]
        written = (p for p in pairs if p in self._written or p[::-1] in self._written)
        return next(written, pairs[0])

    # --- classes -------------------------------------------------------------------------------------------

    def _classes(self, parts: JoinParts) -> tuple[list[list[tuple[int, Expression]]], list[Expression]]:
        """Classes of equal expressions, each with its side; and the conditions that do not equate two sides."""
        pairs: list[tuple[Expression, Expression]] = []
        rest: list[Expression] = []
        for left, right in parts.pairs:
            if self._of_one_side(left) and self._of_one_side(right):
                pairs.append((left, right))
            else:
                rest.append(_equal(left, right))
        for condition in parts.conditions:
            pair = equality(condition)
            if (
                pair is not None
                and all(map(self._of_one_side, pair))
                and len(set(map(self.sides_of, pair))) > 1
            ):
                pairs.append(pair)
            else:
                rest.append(condition)
        classes: list[list[Expression]] = []
        for pair in pairs:
            touched = [each for each in classes if any(member in each for member in pair)]
            merged = list(dict.fromkeys((*(m for each in touched for m in each), *pair)))
            classes = [each for each in classes if each not in touched] + [merged]
        return [[(self.sides_of(m).bit_length() - 1, m) for m in members] for members in classes], rest

    def _of_one_side(self, expression: Expression) -> bool:
        return self.sides_of(expression).bit_count() == 1


def _repeated(members: Sequence[tuple[int, Expression]]) -> Iterable[tuple[int, Expression, Expression]]:
    """Conditions for members of a class on the same side: they must be equal there."""
    first: dict[int, Expression] = {}
    for at, member in members:
        if first.setdefault(at, member) is not member:
            yield at, first[at], member


def _equal(left: Expression, right: Expression) -> Expression:
    return Call(functions.EQUAL, (left, right), BOOLEAN, left.nullable or right.nullable)


def _union(sides: Iterable[Sides]) -> Sides:
    whole = 0
    for each in sides:
        whole |= each
    return whole
