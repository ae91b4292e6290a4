"""Expressions: a frozen, typed tree. The expression registry says what each function computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from wallaby.relations import functions
from wallaby.relations.types import DataType

#: How much of a constant is shown: the rules of a time zone are long.
_SHOWN_CHARACTERS: Final = 60


class EvalMode(Enum):
    """What happens on overflow, division by zero or a bad cast: an error, NULL, or Spark's legacy behaviour."""

    ANSI = "ansi"
    TRY = "try"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class Column:
    """A column, known by its Catalyst expression id, which is unique in a query; the name is for users."""

    id: int
    name: str
    type: DataType
    nullable: bool

    def __str__(self) -> str:
        return f"{self.name}#{self.id}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: int, float, Decimal, str, bytes, bool, date, datetime or None.

    For an array, a tuple of these; for a struct, a tuple of its fields' values; for a map, a tuple of pairs.
    """

    value: object
    type: DataType

    @property
    def nullable(self) -> bool:
        """Is the constant NULL?"""
        return self.value is None

    def __str__(self) -> str:
        text = repr(self.value) if isinstance(self.value, str) else str(self.value)
        return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function or operator of the registry, applied. The type is Catalyst's."""

    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    nullable: bool
    mode: EvalMode = EvalMode.ANSI

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate function applied to the rows of a group."""

    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    nullable: bool
    distinct: bool = False
    filter: Expression | None = None
    mode: EvalMode = EvalMode.ANSI

    def __str__(self) -> str:
        distinct = "distinct " if self.distinct else ""
        where = f" filter {self.filter}" if self.filter is not None else ""
        return f"{self.function}({distinct}{', '.join(map(str, self.arguments))}){where}"


Expression = Column | Literal | Call | Aggregation


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the column that it becomes."""

    column: Column
    expression: Expression

    def __str__(self) -> str:
        return (
            str(self.expression) if self.expression == self.column else f"{self.expression} as {self.column}"
        )


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order. The position of nulls is always explicit."""

    expression: Expression
    ascending: bool
    nulls_first: bool

    def __str__(self) -> str:
        nulls = "first" if self.nulls_first else "last"
        return f"{self.expression} {'asc' if self.ascending else 'desc'} nulls {nulls}"


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all its parts, outermost first."""
    yield expression
    match expression:
        case Call():
            for argument in expression.arguments:
                yield from walk(argument)
        case Aggregation():
            for argument in expression.arguments:
                yield from walk(argument)
            if expression.filter is not None:
                yield from walk(expression.filter)
        case Column() | Literal():
            pass


def columns_in(expression: Expression) -> frozenset[int]:
    """The ids of the columns that an expression uses, without the parameters of its lambdas."""
    if isinstance(expression, Column):
        return frozenset((expression.id,))
    used: set[int] = set()
    own: set[int] = set()
    for part in walk(expression):
        match part:
            case Column(id=id_):
                used.add(id_)
            case Call(function=functions.LAMBDA, arguments=(_, *parameters)):
                own.update(parameter.id for parameter in parameters if isinstance(parameter, Column))
            case _:
                pass
    return frozenset(used - own)
