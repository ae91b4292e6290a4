"""Bounds for the size of a result as a multiple of its columns, which need no values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wallaby.functions.scalar_sql import SCALARS
from wallaby.functions.size import VALUE_BYTES, LambdaShape, constant_size, is_small, varies
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal
from wallaby.relations.types import DataType, parts_of


@dataclass(frozen=True, slots=True)
class Spread:
    """At most so many times each column, by its id, and so many bytes more."""

    times: Mapping[int, float] = field(default_factory=dict)
    plus: float = 0

    @property
    def is_small(self) -> bool:
        """Does nobody need to watch a result of this size?"""
        return is_small(tuple(self.times.values()), self.plus)

    def scaled(self, by: float) -> Spread:
        """So many times as much."""
        return Spread({column: by * times for column, times in self.times.items()}, by * self.plus)

    def __add__(self, other: Spread) -> Spread:
        ids = dict.fromkeys((*self.times, *other.times))
        times = {column: self.times.get(column, 0) + other.times.get(column, 0) for column in ids}
        return Spread(times, self.plus + other.plus)

    def or_more(self, other: Spread) -> Spread:
        """The larger of two."""
        ids = dict.fromkeys((*self.times, *other.times))
        times = {column: max(self.times.get(column, 0), other.times.get(column, 0)) for column in ids}
        return Spread(times, max(self.plus, other.plus))


NOTHING: Final = Spread()
#: The sizes of columns that are computed from others; None: unlimited.
Known = Mapping[int, "Spread | None"]
_NONE_KNOWN: Final[Known] = {}


def grows(expression: Expression, known: Known = _NONE_KNOWN) -> bool:
    """Can an expression, or a part of it, be much larger than the columns that it uses?"""
    found = Spreads(known)
    found.of(expression)
    return bool(found.growing)


class Spreads:
    """The sizes of expressions over columns, and the calls whose results may be large, by identity."""

    def __init__(self, known: Known = _NONE_KNOWN) -> None:
        self._known = known
        self.growing: set[int] = set()
        #: The other calls that make text, binary data, arrays or maps, and the sizes of their results.
        self.ordinary: list[tuple[Call, Spread]] = []

    def of(self, expression: Expression) -> Spread | None:
        """The size of an expression; None: unlimited."""
        match expression:
            case Column():
                return (
                    self._known.get(expression.id, _own(expression))
                    if varies(expression.type)
                    else _fixed(expression.type)
                )
            case Literal():
                return Spread(plus=constant_size(expression.value))
            case Aggregation():
                for part in (*expression.arguments, *((expression.filter,) if expression.filter else ())):
                    self.of(part)
                return _fixed(expression.type)
            case Call():
                arguments = [self.of(argument) for argument in expression.arguments]
                found = self._of_call(expression, arguments)
                if found is None or not found.is_small:
                    self.growing.add(id(expression))
                elif varies(expression.type):
                    self.ordinary.append((expression, found))
                return found

    def _of_call(self, call: Call, arguments: list[Spread | None]) -> Spread | None:
        if not varies(call.type):
            return _fixed(call.type)
        size = SCALARS[call.function].size
        if size is None:
            return None
        if size.shape is not None:
            return self._of_lambda(call, arguments, size.shape)
        bound = size.times(call)
        if bound is None:
            return None
        times, plus = bound
        together = NOTHING
        for by, argument in zip(times, arguments, strict=True):
            if not by:
                continue
            if argument is None:
                return None
            one = argument.scaled(by)
            together = together.or_more(one) if size.largest else together + one
        return together + Spread(plus=plus)

    def _of_lambda(self, call: Call, arguments: list[Spread | None], shape: LambdaShape) -> Spread | None:
        if shape is LambdaShape.CHOICE:
            return arguments[0]
        if shape is LambdaShape.REDUCED:
            return self._of_reduction(call, arguments)
        *arrays, _ = arguments
        body = self._body(call.arguments[-1])
        total = NOTHING
        for array in arrays:
            if array is None:
                return None
            total += array
        each = None if body is None else _per_element(body, call.arguments[-1])
        return None if each is None else total.scaled(1 + each)

    def _of_reduction(self, call: Call, arguments: list[Spread | None]) -> Spread | None:
        array, first, *_ = arguments
        merge, finish = call.arguments[2:]
        assert isinstance(merge, Call), "the reader puts a lambda there"
        assert isinstance(finish, Call), "the reader puts a lambda there"
        step = self._body(merge)
        sofar, result = merge.arguments[1], finish.arguments[1]
        assert isinstance(sofar, Column), "a parameter is a column"
        assert isinstance(result, Column), "a parameter is a column"
        if step is None or array is None or first is None or step.times.get(sofar.id, 0) > 1:
            return None
        rest = Spread({column: by for column, by in step.times.items() if column != sofar.id}, step.plus)
        each = _per_element(rest, merge)
        if each is None:
            return None
        made = first + array.scaled(each)
        return Spreads({**self._known, result.id: made}).of(finish.arguments[0])

    def _body(self, function: Expression) -> Spread | None:
        """The size of a lambda's result, in terms of its parameters."""
        assert isinstance(function, Call), "the reader puts a lambda there"
        return Spreads(self._known).of(function.arguments[0])


def _per_element(body: Spread, function: Expression) -> float | None:
    """How many times the size of an array its elements' results have; None if they have other columns in them."""
    assert isinstance(function, Call), "the reader puts a lambda there"
    own = {part.id for part in function.arguments[1:] if isinstance(part, Column)}
    if any(by and column not in own for column, by in body.times.items()):
        return None
    return sum(body.times.values()) + body.plus / VALUE_BYTES


def _own(column: Column) -> Spread:
    return Spread({column.id: 1.0})


def _fixed(type_: DataType) -> Spread:
    return Spread(plus=VALUE_BYTES * sum(not part.children for part in parts_of(type_)))
