"""Reading joins: the condition falls into pairs of keys, one from each side, and a residual for the rest."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from wallaby.catalyst.data_types import FLOATING
from wallaby.catalyst.expressions import ExpressionReader
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, Column, Expression, Literal, columns_in
from wallaby.plan.relation import Join, JoinKind, Relation
from wallaby.plan.tree import conjunction, conjuncts
from wallaby.plan.types import BOOLEAN, Kind

_KINDS: Final = {
    "Inner": JoinKind.INNER,
    "LeftOuter": JoinKind.LEFT,
    "RightOuter": JoinKind.RIGHT,
    "FullOuter": JoinKind.FULL,
    "LeftSemi": JoinKind.SEMI,
    "LeftAnti": JoinKind.ANTI,
    "Cross": JoinKind.CROSS,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Any value of a kind, to stand for NULL in a pair of keys of which the second says whether it does.
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
}


def read_join(
    node: Node, left: Relation | None, right: Relation | None, reader: ExpressionReader
) -> Join | None:
    """A join of two sides, which are None if they could not be read."""
    word = node.word("joinType")
    kind = _KINDS.get(word)
    if kind is None:
        reader.refuse("Join", f"joins of the kind {word} are not run here yet")
    has_condition = isinstance(node.field("condition"), Node)
    condition = reader.read(node.node("condition")) if has_condition else None
    if kind is None or left is None or right is None or (has_condition and condition is None):
        return None
    left_keys, right_keys, residual = split(condition, left, right)
    if any(key.type.kind in FLOATING for key in left_keys):
        reader.refuse("Join", "floating-point keys have no kernel yet", "join on other columns")
        return None
    if kind in (JoinKind.INNER, JoinKind.CROSS):
        kind = JoinKind.CROSS if condition is None else JoinKind.INNER
    return Join(left, right, kind, left_keys, right_keys, residual, columns_of(kind, left, right))


def columns_of(kind: JoinKind, left: Relation, right: Relation) -> tuple[Column, ...]:
    """The output: a side whose rows can be missing is nullable."""
    lefts, rights = left.columns, right.columns
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        lefts = tuple(replace(column, nullable=True) for column in lefts)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        rights = tuple(replace(column, nullable=True) for column in rights)
    return lefts if kind in (JoinKind.SEMI, JoinKind.ANTI) else (*lefts, *rights)


def split(
    condition: Expression | None, left: Relation, right: Relation
) -> tuple[tuple[Expression, ...], tuple[Expression, ...], Expression | None]:
    """Keys of the left side, keys of the right side, and what is not an equality between the sides."""
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
    """Null-safe equality as two pairs of plain keys, as Spark's own planner does it."""
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
