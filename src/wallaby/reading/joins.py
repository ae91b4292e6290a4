"""Read joins: the condition is split into pairs of keys, one from each side, and a residual condition."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from wallaby.catalyst.data_types import ORDERED
from wallaby.catalyst.node import Node
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.subqueries import Subqueries
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, Named, columns_in
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Filter, Join, Limit, Relation, children_of
from wallaby.relations.tree import arrange, conjunction, conjuncts, ids_of
from wallaby.relations.types import BOOLEAN, LONG, Kind

#: The kinds of joins that are run here, by Catalyst's names.
KINDS: Final = {
    "Inner": JoinKind.INNER,
    "LeftOuter": JoinKind.LEFT,
    "RightOuter": JoinKind.RIGHT,
    "FullOuter": JoinKind.FULL,
    "LeftSemi": JoinKind.SEMI,
    "LeftAnti": JoinKind.ANTI,
    "Cross": JoinKind.CROSS,
    "ExistenceJoin": JoinKind.EXISTENCE,
    "LeftSingle": JoinKind.SINGLE,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: A value of each kind that replaces NULL in a null-safe key; a second key tells whether it does.
_STANDINS: Final[dict[Kind, object]] = {
    Kind.BOOLEAN: False,
    Kind.BYTE: 0,
    Kind.SHORT: 0,
    Kind.INTEGER: 0,
    Kind.LONG: 0,
    Kind.DECIMAL: Decimal(0),
    Kind.STRING: "",
    Kind.BINARY: b"",
    Kind.DATE: date(1970, 1, 1),
    Kind.TIMESTAMP: _EPOCH,
    Kind.TIMESTAMP_NTZ: _EPOCH.replace(tzinfo=None),
    Kind.DAY_TIME: 0,
    Kind.YEAR_MONTH: 0,
    Kind.ARRAY: (),
}


def read_join(
    node: Node,
    left: Relation | None,
    right: Relation | None,
    reader: ExpressionReader,
    subqueries: Subqueries,
) -> Relation | None:
    """Read a join of two sides; a side is None if it could not be read."""
    word = node.word("joinType")
    kind = KINDS.get(word)
    if kind is None:
        reader.refuse("Join", f"joins of the kind {word} are not supported yet")
    has_condition = isinstance(node.field("condition"), Node)
    condition = reader.read(node.node("condition")) if has_condition else None
    if kind is None or left is None or right is None or (has_condition and condition is None):
        return None
    shown = columns_of(kind, left, right)
    if kind is JoinKind.EXISTENCE:
        exists = reader.column(node.part("joinType", "exists"))
        shown = shown if exists is None else (*left.columns, exists)
    if kind is JoinKind.SINGLE and (condition is None or not columns_in(condition) & {*ids_of(left.columns)}):
        reader.refuse(
            "Join", "a correlated subquery without a condition is not supported yet", "aggregate it"
        )
        return None
    if kind.is_inner:
        kind = JoinKind.CROSS if condition is None else JoinKind.INNER
    if condition is not None:
        left = subqueries.beside(left, condition)
    plain = kind is JoinKind.ANTI and _is_repeatable(right)
    unknown = null_aware_key(condition, left, right) if plain else None
    if unknown is not None:
        return null_aware_anti(left, right, *unknown, reader)
    left_keys, right_keys, residual = split(condition, left, right)
    if kind is JoinKind.SINGLE and left_keys and residual is None and _are_ordered(right.columns):
        return _counted_partners(left, right, left_keys, right_keys, reader)
    columns = shown if kind is JoinKind.EXISTENCE else columns_of(kind, left, right)
    return arrange(Join(left, right, kind, left_keys, right_keys, residual, columns), shown)


def _are_ordered(columns: Iterable[Column]) -> bool:
    return all(column.type.kind in ORDERED for column in columns)


def _counted_partners(
    left: Relation,
    right: Relation,
    left_keys: tuple[Expression, ...],
    right_keys: tuple[Expression, ...],
    reader: ExpressionReader,
) -> Relation:
    """A join of the kind `SINGLE` by equalities alone, as an aggregation of the right side and an outer join.

    The right rows are counted by their keys, and each of their columns is the least of its values: of one row, its own.
    An index can be made of such groups.
    """
    keys = tuple(Named(Column(reader.fresh_id(), "key", key.type, key.nullable), key) for key in right_keys)
    rows = Column(reader.fresh_id(), "rows", LONG, nullable=False)
    values = tuple(
        Named(replace(column, nullable=True), Aggregation("min", (column,), column.type, nullable=True))
        for column in right.columns
    )
    counted = Named(rows, Aggregation("count", (), LONG, nullable=False))
    groups = Aggregate(right, keys, (counted, *values))
    columns = columns_of(JoinKind.LEFT, left, groups)
    joined = Join(left, groups, JoinKind.LEFT, left_keys, tuple(k.column for k in keys), None, columns)
    single = Call("at_most_one", (replace(rows, nullable=True),), BOOLEAN, nullable=False)
    return arrange(Filter(joined, single), columns_of(JoinKind.LEFT, left, right))


def _is_repeatable(relation: Relation) -> bool:
    """Does a relation give the same rows every time? A limit may choose any rows."""
    return not isinstance(relation, Limit) and all(map(_is_repeatable, children_of(relation)))


def null_aware_key(
    condition: Expression | None, left: Relation, right: Relation
) -> tuple[Expression, Expression] | None:
    """The sides of `a = b or (a = b) is null`, the only condition of a NOT IN over one column."""
    match condition:
        case Call(
            function="or", arguments=(Call(function="eq") as equal, Call(function="is_null") as unknown)
        ):
            sides = (frozenset(ids_of(left.columns)), frozenset(ids_of(right.columns)))
            pairs = _pairs(equal, sides) if unknown.arguments == (equal,) else []
            return pairs[0] if len(pairs) == 1 else None
        case _:
            return None


def null_aware_anti(
    left: Relation, right: Relation, key: Expression, other: Expression, reader: ExpressionReader
) -> Relation:
    """Rewrite NOT IN as a plain anti join, with what is known of the right side as a whole.

    Without right rows every left row stays; with a NULL among the right keys none does; otherwise those left rows stay
    whose key is not NULL and has no partner.
    """

    def count(name: str, *arguments: Expression) -> Named:
        column = Column(reader.fresh_id(), name, LONG, nullable=False)
        return Named(column, Aggregation("count", arguments, LONG, nullable=False))

    rows, present = count("rows"), count("keys", other)
    counted = Aggregate(right, (), (rows, present))
    beside = Join(left, counted, JoinKind.CROSS, (), (), None, (*left.columns, *counted.columns))
    empty = Call("eq", (rows.column, Literal(0, LONG)), BOOLEAN, nullable=False)
    complete = Call("eq", (rows.column, present.column), BOOLEAN, nullable=False)
    known = Call("is_not_null", (key,), BOOLEAN, nullable=False)
    decidable = Call("and", (complete, known), BOOLEAN, nullable=False)
    condition = Call("or", (empty, decidable), BOOLEAN, nullable=False)
    candidates = arrange(Filter(beside, condition), left.columns)
    return Join(candidates, right, JoinKind.ANTI, (key,), (other,), None, left.columns)


def columns_of(kind: JoinKind, left: Relation, right: Relation) -> tuple[Column, ...]:
    """The output columns, without the flag of an existence join; those of a side that may be missing are nullable."""
    lefts, rights = left.columns, right.columns
    if kind.keeps_right:
        lefts = tuple(replace(column, nullable=True) for column in lefts)
    if kind.pads_right:
        rights = tuple(replace(column, nullable=True) for column in rights)
    return (*lefts, *rights) if kind.shows_right else lefts


def split(
    condition: Expression | None, left: Relation, right: Relation
) -> tuple[tuple[Expression, ...], tuple[Expression, ...], Expression | None]:
    """Split a condition: keys of the left side, keys of the right side, and the other conditions."""
    sides = (frozenset(c.id for c in left.columns), frozenset(c.id for c in right.columns))
    pairs: list[tuple[Expression, Expression]] = []
    rest: list[Expression] = []
    for part in () if condition is None else conjuncts(condition):
        found = _pairs(part, sides)
        if found:
            pairs.extend(found)
        else:
            rest.append(part)
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs), conjunction(rest)


def _pairs(
    part: Expression, sides: tuple[frozenset[int], frozenset[int]]
) -> list[tuple[Expression, Expression]]:
    if not isinstance(part, Call) or part.function not in ("eq", "eq_null_safe"):
        return []
    for first, second in itertools.permutations(part.arguments):
        used = columns_in(first), columns_in(second)
        if used[0] and used[1] and used[0] <= sides[0] and used[1] <= sides[1]:
            return [(first, second)] if part.function == "eq" else _null_safe(first, second)
    return []


def _null_safe(first: Expression, second: Expression) -> list[tuple[Expression, Expression]]:
    """Rewrite a null-safe equality as two pairs of plain keys, as Spark's own planner does."""
    if not first.nullable or not second.nullable:
        return [(first, second)]
    kind = first.type
    if kind.kind not in _STANDINS:
        return []
    standin = Literal(_STANDINS[kind.kind], kind)

    def filled(key: Expression) -> Expression:
        return Call("coalesce", (key, standin), kind, nullable=False)

    def missing(key: Expression) -> Expression:
        return Call("is_null", (key,), BOOLEAN, nullable=False)

    return [(filled(first), filled(second)), (missing(first), missing(second))]
