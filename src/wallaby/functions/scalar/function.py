"""What a scalar function is to the kernels, and the words that its families share.

A function is *exact* if it is known without a reason to refuse, *exact with a guard* if its SQL checks what DuckDB
does not, and unknown otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wallaby.relations.expression import Call, Expression
from wallaby.relations.types import Kind
from wallaby.sql.words import cast

#: Writes a call, given the SQL of its arguments.
Write = Callable[[Call, Sequence[str]], str]
#: Why a call is not computed here; None if it is.
Reason = Callable[[Call], str | None]

#: So many arguments that no query has more.
MANY = 1 << 20


def never(call: Call) -> bool:  # noqa: ARG001 - the signature of a question about a call
    """It is never so."""
    return False


def fine(call: Call) -> str | None:  # noqa: ARG001 - the signature of a question about a call
    """There is no reason to refuse."""
    return None


@dataclass(frozen=True, slots=True)
class Function:
    """How one function is written, refused, and whether it can end the query with an error of the data's."""

    arity: tuple[int, int]
    write: Write
    reason: Reason = fine
    fallible: Callable[[Call], bool] = never


#: All of them, by name. The families' tables are put together in the package's `__init__`.
KNOWN: dict[str, Function] = {}


def fallible(expression: Expression) -> bool:
    """Can some value make an expression end in an error? Then it must not be computed before its guard."""
    match expression:
        case Call():
            known = KNOWN.get(expression.function)
            own = known is None or known.fallible(expression)
            return own or any(fallible(argument) for argument in expression.arguments)
        case _:
            return False


def template(pattern: str, *, typed: bool = False) -> Write:
    """SQL with a place for each argument; `typed` casts it to Catalyst's type."""

    def write(call: Call, sql: Sequence[str]) -> str:
        written = pattern.format(*sql)
        return cast(written, call.type) if typed else written

    return write


def unsupported(call: Call) -> str:
    """The reason to refuse arguments of such types."""
    types = ", ".join(str(argument.type) for argument in call.arguments)
    return f"{call.function}({types}) is not supported"


def of_kinds(*places: Kind | tuple[Kind, ...]) -> Reason:
    """Refuses arguments that are not of these kinds; the last place stands for all further ones."""
    allowed = [place if isinstance(place, tuple) else (place,) for place in places]

    def reason(call: Call) -> str | None:
        for number, argument in enumerate(call.arguments):
            if argument.type.kind not in allowed[min(number, len(allowed) - 1)]:
                return unsupported(call)
        return None

    return reason
