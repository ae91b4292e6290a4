"""Random expressions of a given kind over columns in scope: columns, constants, functions, CASE, IN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from wallaby_lab.differential.generated.functions import ExampleFunction
from wallaby_lab.differential.generated.values import COLUMNS, is_map, literal
from wallaby_lab.differential.syntax import Piece, listed, text

#: The general kinds of text and numbers with a meaning.
ALSO: Final = {"digits": "string", "moment": "string", "small": "int"}
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column in scope. One that is not exact can only be returned, not used."""

    sql: str
    kind: str
    exact: bool = True
    #: Is the sum of its values the same in every order?
    adds_up: bool = True


@dataclass(frozen=True, slots=True)
class TypedText:
    """An expression, and what is known of its values."""

    piece: Piece
    kind: str
    exact: bool = True
    adds_up: bool = False


class Expressions:
    """Makes expressions from one source of randomness. Without ANSI mode there is no risk of errors."""

    def __init__(self, random: Random, functions: Sequence[ExampleFunction], *, ansi: bool) -> None:
        self._random = random
        foreign = random.random() < 0.05
        risky = not ansi or random.random() < 0.15
        self._by_result: dict[str, list[ExampleFunction]] = {}
        for function in functions:
            if (function.native or foreign) and (not function.risky or risky):
                self._by_result.setdefault(function.result, []).append(function)
        self._kinds = [kind for kind in self._by_result if kind in COLUMNS]

    def any(self, scope: Sequence[ScopeColumn], depth: int = 2) -> TypedText:
        """An expression of any kind."""
        usable = [column.kind for column in scope if column.exact and column.kind in COLUMNS]
        kind = self._random.choice(usable + self._random.sample(self._kinds, min(3, len(self._kinds))))
        return self.of(ALSO.get(kind, kind), scope, depth)

    def of(self, kind: str, scope: Sequence[ScopeColumn], depth: int = 2) -> TypedText:
        """An expression of a kind."""
        columns = [c for c in scope if c.exact and kind in (c.kind, ALSO.get(c.kind))]
        functions = self._by_result.get(kind, [])
        roll = self._random.random()
        if kind in ALSO or depth <= 0 or (roll < 0.35 and columns) or not functions:
            if columns and self._random.random() < 0.8:
                column = self._random.choice(columns)
                return TypedText(text(column.sql, kind), kind, adds_up=column.adds_up)
            return self.constant(kind)
        if roll < 0.42:
            return self.constant(kind)
        if roll < 0.52:
            return self._case(kind, scope, depth)
        if kind == "boolean" and roll < 0.75:
            return TypedText(self.condition(scope, depth), kind)
        function = self._random.choice(functions)
        parts = tuple(self.of(argument, scope, depth - 1).piece for argument in function.arguments)
        return TypedText(Piece(f"({function.template})", parts, kind), kind, exact=function.exact)

    def constant(self, kind: str) -> TypedText:
        """A constant, sometimes NULL."""
        column = COLUMNS[kind]
        value = None if self._random.random() < 0.03 else column.tame(self._random)
        return TypedText(text(literal(value, column), kind), kind)

    def condition(self, scope: Sequence[ScopeColumn], depth: int = 2) -> Piece:
        """A condition, which may be NULL."""
        roll = self._random.random()
        if depth > 0 and roll < 0.2:
            parts = (self.condition(scope, depth - 1), self.condition(scope, depth - 1))
            return Piece(f"({{0}} {self._random.choice(('and', 'or'))} {{1}})", parts, "boolean")
        if depth > 0 and roll < 0.27:
            return Piece("(not {0})", (self.condition(scope, depth - 1),), "boolean")
        usable = [c for c in scope if c.exact and c.kind in COLUMNS]
        kind = self._random.choice(usable).kind if usable else "int"
        kind = ALSO.get(kind, kind)
        # Catalyst would evaluate an expression of constants itself.
        named = [c for c in usable if kind in (c.kind, ALSO.get(c.kind))]
        column = self._random.choice(named) if named and self._random.random() < 0.7 else None
        one = self.of(kind, scope, depth - 1).piece if column is None else text(column.sql, kind)
        if roll < 0.4 or is_map(kind):
            return Piece(f"({{0}} is {self._random.choice(('', 'not '))}null)", (one,), "boolean")
        if roll < 0.5:
            constants = tuple(self.constant(kind).piece for _ in range(self._random.choice((1, 2, 3, 12))))
            word = self._random.choice(("in", "not in"))
            return Piece(f"({{0}} {word} ({{1}}))", (one, listed(constants)), "boolean")
        if roll < 0.57:
            bounds = (self.of(kind, scope, 0).piece, self.of(kind, scope, 0).piece)
            return Piece("({0} between {1} and {2})", (one, *bounds), "boolean")
        other = self.of(kind, scope, depth - 1).piece
        return Piece(f"({{0}} {self._random.choice(_COMPARISONS)} {{1}})", (one, other), "boolean")

    def _case(self, kind: str, scope: Sequence[ScopeColumn], depth: int) -> TypedText:
        when = self.condition(scope, depth - 1)
        then = self.of(kind, scope, depth - 1)
        other = self.of(kind, scope, depth - 1)
        if self._random.random() < 0.3:
            parts = (then.piece, other.piece)
            return TypedText(Piece("coalesce({0}, {1})", parts, kind), kind, then.exact and other.exact)
        otherwise = Piece(" else {0}", (other.piece,), optional=True)
        whole = (when, then.piece, otherwise)
        return TypedText(
            Piece("case when {0} then {1}{2} end", whole, kind), kind, then.exact and other.exact
        )
