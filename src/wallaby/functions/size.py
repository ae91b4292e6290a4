"""Bounds for the size of a function's result, declared with the function.

DuckDB computes a function for a whole vector of 2048 rows at once. If the result may be many times as large as the
arguments, the results of a vector may exceed memory before anybody can measure them. So a function that gives text,
bytes, an array or a map declares a bound: so many times the size of its arguments, or a formula in SQL over the sizes,
lengths and values of the arguments. `statements/growth.py` computes it before the function runs, and takes only as many
rows as there is room for. A function that declares nothing runs on few rows at a time; a test refuses it.

A size counts the bytes of texts, and 8 bytes for each number and each element of an array, so an array of n elements
has at least 8 n bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from wallaby.relations.expression import Call, Literal
from wallaby.relations.types import DataType, Kind, parts_of
from wallaby.sql.types import entry_type
from wallaby.sql.words import field_sql

#: The size of a value of a type whose values all have one size, and of an array's element beside its own value.
VALUE_BYTES: Final = 8
#: A result up to this many times as large as its arguments, plus the bytes below, is not watched.
TIMES_MAX: Final = 20
PLUS_MAX: Final = 4096
#: A text that is cut into parts: each takes at least one byte of it, and beside that its place in an array.
PARTS_TIMES: Final = 1 + 2 * VALUE_BYTES
#: The largest result of a call for a single row. A statement may use this macro of DuckDB's; a session defines it.
LARGEST_SQL: Final = "wallaby_grown_max()"
#: How many times the result of an aggregation of an array DuckDB holds while it grows.
REDUCED_TIMES: Final = 4
#: How many times its values DuckDB takes for an array while it makes it: room for up to as many again, the smaller
#: array that it grew out of, and a copy where a condition decides. It counts none of that as its own memory.
ARRAY_TIMES: Final = 4
#: These join their arguments two by two, so that there are as many intermediate results.
JOINING: Final = frozenset({"concat", "array_concat"})
_VARYING: Final = frozenset({Kind.STRING, Kind.BINARY, Kind.ARRAY, Kind.MAP})


def varies(type_: DataType) -> bool:
    """Do values of a type differ in size?"""
    return any(part.kind in _VARYING for part in parts_of(type_))


def is_array(type_: DataType) -> bool:
    """Is a type's value an array or a map?"""
    return type_.kind in (Kind.ARRAY, Kind.MAP)


def held_times(call: Call) -> int:
    """How many times DuckDB holds the results of a call while it makes those of many rows."""
    joins = len(call.arguments).bit_length() if call.function in JOINING else 1
    return joins * (ARRAY_TIMES if is_array(call.type) else 1)


class LambdaShape(Enum):
    """How the result of a function follows from the results of its lambda."""

    #: As many results as elements.
    EACH = "each"
    #: Some of the elements, or a single value.
    CHOICE = "choice"
    #: What the first lambda has made of all elements, one after the other, and then the second one of that.
    REDUCED = "reduced"


@dataclass(frozen=True, slots=True)
class Sizes:
    """SQL about the arguments of a call: numbers of the type DOUBLE that are never NULL, and values."""

    bytes: Sequence[str]
    #: The number of elements of each argument, if that is an array or a map.
    counts: Sequence[str]
    #: None if an argument cannot be computed beforehand.
    values: Sequence[str | None]


#: The size of a call's result, and whether that is its size rather than a bound; None: it cannot be known.
Formula = Callable[[Call, Sizes], "tuple[str, bool] | None"]
#: How many times the size of each argument a result has at most, and how many bytes more; None: it may be larger.
Times = Callable[[Call], "tuple[Sequence[float], float] | None"]


@dataclass(frozen=True, slots=True)
class ResultSize:
    """The size of a function's results."""

    times: Times
    #: Is it that of the largest argument, not of all together?
    largest: bool = False
    #: Is the bound the size itself?
    exact: bool = False
    formula: Formula | None = None
    shape: LambdaShape | None = None


def at_most(times: float, plus: float = 0) -> ResultSize:
    """Up to so many times all arguments together, and so many bytes more."""
    return ResultSize(lambda call: ((times,) * len(call.arguments), plus))


def by_call(times: Times) -> ResultSize:
    """As a call's constants and types say."""
    return ResultSize(times)


def constant(plus: float) -> ResultSize:
    """At most so many bytes, whatever the arguments are."""
    return at_most(0, plus)


def growing(formula: Formula, unless: Times = lambda _: None) -> ResultSize:
    """Possibly much larger than the arguments, unless constants say otherwise."""
    return ResultSize(unless, formula=formula)


#: A part or a rearrangement of the arguments.
WITHIN: Final = at_most(1)
#: All arguments, one after the other.
TOGETHER: Final = ResultSize(lambda call: ((1,) * len(call.arguments), 0), exact=True)
#: One of the arguments.
ONE_OF: Final = ResultSize(lambda call: ((1,) * len(call.arguments), 0), largest=True)
#: A call with a lambda.
EACH: Final = ResultSize(lambda _: None, shape=LambdaShape.EACH)
CHOICE: Final = ResultSize(lambda _: None, shape=LambdaShape.CHOICE)
REDUCED: Final = ResultSize(lambda _: None, shape=LambdaShape.REDUCED)


def constant_number(call: Call, place: int) -> int | None:
    """A whole number that is a constant argument."""
    argument = call.arguments[place]
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return argument.value
    return None


def constant_bytes(call: Call, place: int) -> int | None:
    """The length of a text that is a constant argument."""
    argument = call.arguments[place]
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return int(constant_size(argument.value))
    return None


def number(sql: str) -> str:
    """A value as a number that is not NULL and not negative."""
    return f"greatest(coalesce(CAST({sql} AS DOUBLE), 0), 0)"


def is_small(times: Sequence[float], plus: float) -> bool:
    """Is a result so little larger than its arguments that nobody needs to watch it?"""
    return max(times, default=0) <= TIMES_MAX and plus <= PLUS_MAX


def value_size(sql: str, type_: DataType, depth: int = 0) -> str:
    """SQL of the size of a value that is there."""
    match type_.kind:
        case Kind.STRING:
            return f"coalesce(CAST(strlen({sql}) AS DOUBLE), 0)"
        case Kind.BINARY:
            return f"coalesce(CAST(octet_length({sql}) AS DOUBLE), 0)"
        case Kind.ARRAY | Kind.MAP:
            element = type_.element if type_.kind is Kind.ARRAY else entry_type(type_)
            each = VALUE_BYTES * max(sum(not part.children for part in parts_of(element)), 1)
            size = f"coalesce(len({sql}), 0) * {float(each)}"
            if not varies(element):
                return size
            name = f"z{depth}"
            inside = value_size(name, element, depth + 1)
            own = f"coalesce(list_sum(list_transform({sql}, lambda {name}: {inside})), 0)"
            return f"({own} + coalesce(len({sql}), 0) * {float(VALUE_BYTES)})"
        case Kind.STRUCT:
            fields = (
                value_size(field_sql(sql, place), part, depth) for place, part in enumerate(type_.children)
            )
            return f"({' + '.join(fields)})" if type_.children else f"{float(VALUE_BYTES)}"
        case _:
            return f"{float(VALUE_BYTES)}"


def constant_size(value: object) -> float:
    """The size of a constant's value."""
    match value:
        case str():
            return len(value.encode("utf-8", "surrogatepass"))
        case bytes():
            return len(value)
        case tuple():
            return sum(VALUE_BYTES + constant_size(part) for part in value)
        case _:
            return VALUE_BYTES
