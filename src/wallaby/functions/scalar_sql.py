"""Write scalar functions as SQL: how a call is written, when it is refused, and whether a value can make it fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wallaby.functions.size import ResultSize
from wallaby.relations.expression import Call, EvalMode, Expression
from wallaby.relations.types import Kind
from wallaby.sql.words import cast

#: Writes a call, given the SQL of its arguments.
Write = Callable[[Call, Sequence[str]], str]
#: Why a call is not computed here; None if it is.
Reason = Callable[[Call], str | None]

#: No query has more arguments than this.
MANY = 1 << 20


def never(call: Call) -> bool:  # noqa: ARG001 - the signature of a question about a call
    """Always False."""
    return False


def in_ansi_mode(call: Call) -> bool:
    """Does the call fail for bad values? Only in ANSI mode."""
    return call.mode is EvalMode.ANSI


def fine(call: Call) -> str | None:  # noqa: ARG001 - the signature of a question about a call
    """Never refuse."""
    return None


@dataclass(frozen=True, slots=True)
class ScalarSql:
    """How one function is written and refused, and whether it can end the query with a data error."""

    #: The number of arguments, or the minimum and the maximum.
    count: int | tuple[int, int]
    write: Write
    #: None: the arguments must have the kinds of the function's entry.
    reason: Reason | None = None
    fallible: Callable[[Call], bool] = never
    #: Can it meet a value that only Spark computes? Then it calls `doubt` (functions/doubt.py).
    doubtful: bool = False
    #: How large its results may be; None: they are numbers and the like, or nobody knows.
    size: ResultSize | None = None

    @property
    def arity(self) -> tuple[int, int]:
        """The minimum and the maximum number of arguments."""
        return (self.count, self.count) if isinstance(self.count, int) else self.count

    def refusal(self, call: Call) -> str | None:
        """Why a call is not computed here; None if it is."""
        return None if self.reason is None else self.reason(call)


#: All scalar functions by name; the registry fills this.
SCALARS: dict[str, ScalarSql] = {}


def fallible(expression: Expression) -> bool:
    """Can a value make an expression fail? Then it must not be computed before its guard."""
    match expression:
        case Call():
            known = SCALARS.get(expression.function)
            own = known is None or known.fallible(expression)
            return own or any(fallible(argument) for argument in expression.arguments)
        case _:
            return False


def template(pattern: str, *, typed: bool = False) -> Write:
    """SQL with a placeholder for each argument; `typed` casts it to Catalyst's type."""

    def write(call: Call, sql: Sequence[str]) -> str:
        written = pattern.format(*sql)
        return cast(written, call.type) if typed else written

    return write


def not_supported(call: Call) -> str:
    """The reason for refusing arguments of these types."""
    types = ", ".join(str(argument.type) for argument in call.arguments)
    return f"{call.function}({types}) is not supported"


def of_kinds(*places: Kind | tuple[Kind, ...] | frozenset[Kind]) -> Reason:
    """Refuse arguments that are not of these kinds; the last entry applies to all further arguments."""
    allowed = [(place,) if isinstance(place, Kind) else place for place in places]

    def reason(call: Call) -> str | None:
        for number, argument in enumerate(call.arguments):
            if argument.type.kind not in allowed[min(number, len(allowed) - 1)]:
                return not_supported(call)
        return None

    return reason
