"""SQL that computes how large the results of growing functions are, without computing these results.

Sizes are computed from the inside out: a column has the length that it has, and a call the size that its function's
formula gives for the sizes of its arguments. So a call over the result of another growing call is measured although
neither exists. Only expressions whose results are small are computed themselves, such as the number of repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wallaby.functions.registry import SCALARS
from wallaby.functions.size import (
    JOINING,
    REDUCED_TIMES,
    VALUE_BYTES,
    LambdaShape,
    ResultSize,
    Sizes,
    constant_size,
    held_times,
    value_size,
    varies,
)
from wallaby.functions.spread import Spread, Spreads
from wallaby.functions.words import let
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, columns_in, walk
from wallaby.relations.types import Kind
from wallaby.sql.words import column_identifier, field_sql
from wallaby.statements.expression import expression_sql

#: Functions that do not compute all their arguments for all rows.
_CONDITIONAL = frozenset({"case", "if", "coalesce", "nanvl", functions.AND, functions.OR})
#: A value that is multiplied by more than e to this power is too large anyway, and this is still a number.
_POWER_MAX = 400
#: Texts are computed beforehand if they are at most so many times as long as their columns.
_COMPUTED_TIMES_MAX = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """SQL of a size. `is_exact`: the result will have it; otherwise it will not have more."""

    sql: str
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class GrowingResult:
    """The result of a growing call: its size, None if nobody knows, and whether it is computed for every row."""

    measure: Measure | None
    always: bool
    #: How many times DuckDB holds it while it is made.
    times: int = 1


class Sizing:
    """The sizes of expressions over the columns of one relation."""

    def __init__(self, known: Mapping[int, Spread | None], sized: Mapping[int, str]) -> None:
        """`known` are the sizes of columns by static analysis; `sized` are columns of which there is only the size."""
        self._known = known
        self._sized = sized

    def results(self, expression: Expression, *, always: bool) -> Iterator[GrowingResult]:
        """The results of the growing calls in an expression, those for all elements of an array together."""
        found = Spreads(self._known)
        found.of(expression)
        if found.growing:
            yield from self._results(expression, found.growing, always=always)

    def _results(self, expression: Expression, growing: set[int], *, always: bool) -> Iterator[GrowingResult]:
        if isinstance(expression, Aggregation):
            for argument in (*expression.arguments, *((expression.filter,) if expression.filter else ())):
                yield from self._results(argument, growing, always=always)
        if not isinstance(expression, Call):
            return
        if id(expression) in growing:
            declared = SCALARS[expression.function].size
            reduced = declared is not None and declared.shape is LambdaShape.REDUCED
            times = held_times(expression) * (REDUCED_TIMES if reduced else 1)
            yield GrowingResult(self.size(expression), always, times)
        always = always and expression.function not in _CONDITIONAL
        for argument in expression.arguments:
            if isinstance(argument, Call) and argument.function == functions.LAMBDA:
                yield from self._inside(expression, argument, growing)
            else:
                yield from self._results(argument, growing, always=always)

    def _inside(self, call: Call, function: Call, growing: set[int]) -> Iterator[GrowingResult]:
        """The intermediate results of a lambda, for all elements together."""
        if not any(id(part) in growing for part in walk(function)):
            return
        inner = self._with({c.id: self._element_bytes(call) for c in _parameters(function) if varies(c.type)})
        count = self._count(call.arguments[0])
        for result in inner._results(function.arguments[0], growing, always=False):
            size = None if result.measure is None or count is None else result.measure.sql
            measure = None if size is None else Measure(f"({count}) * ({size})")
            yield GrowingResult(measure, always=False, times=result.times)

    def size(self, expression: Expression) -> Measure | None:
        """The size of an expression's result; None if it cannot be known before the result is there."""
        match expression:
            case Column(id=id_) if id_ in self._sized:
                return Measure(self._sized[id_])
            case Column():
                return Measure(value_size(column_identifier(expression.id), expression.type), is_exact=True)
            case Literal():
                return Measure(f"{float(constant_size(expression.value))}", is_exact=True)
            case Call():
                if not varies(expression.type):
                    return Measure(f"{float(VALUE_BYTES)}", is_exact=True)
                declared = SCALARS[expression.function].size
                return None if declared is None else self._of_call(expression, declared)
            case Aggregation():
                return None

    def _of_call(self, call: Call, declared: ResultSize) -> Measure | None:
        if declared.shape is LambdaShape.CHOICE:
            return _bound(self.size(call.arguments[0]))
        if declared.shape is LambdaShape.EACH:
            return self._of_each(call)
        if declared.shape is LambdaShape.REDUCED:
            return self._of_reduction(call)
        sizes = [self.size(argument) for argument in call.arguments]
        within = declared.times(call)
        if within is not None:
            times, plus = within
            pairs = [(by, size) for by, size in zip(times, sizes, strict=True) if by]
            if any(size is None for _, size in pairs):
                return None
            parts = [
                f"{size.sql} * {float(by)}" if by != 1 else size.sql for by, size in pairs if size is not None
            ]
            joined = f"greatest({', '.join(parts)}, 0)" if declared.largest else " + ".join((*parts, "0"))
            is_exact = declared.exact and all(size is not None and size.is_exact for size in sizes)
            return Measure(f"({joined} + {float(plus)})", is_exact)
        if declared.formula is None or None in sizes:
            return None
        known = [size for size in sizes if size is not None]
        counts = [self._count(argument) or "0" for argument in call.arguments]
        values = [self._value(argument) for argument in call.arguments]
        made = declared.formula(call, Sizes([size.sql for size in known], counts, values))
        if made is None:
            return None
        return Measure(f"({made[0]})", made[1] and all(size.is_exact for size in known))

    # ------------------------------------------------------------------------------------------------ lambdas
    def _of_each(self, call: Call) -> Measure | None:
        """The results for all elements; each is measured where the array can be computed beforehand."""
        *arrays, function = call.arguments
        assert isinstance(function, Call), "the reader puts a lambda there"
        own = self._count(arrays[0])
        sizes = [self.size(array) for array in arrays]
        if own is None or None in sizes:
            return None
        total = " + ".join(size.sql for size in sizes if size is not None)
        places = f"{total} + ({' + '.join(filter(None, map(self._count, arrays)))}) * {float(VALUE_BYTES)}"
        value = self._value(arrays[0])
        parameters = _parameters(function)
        if call.function == "transform" and value is not None and len(parameters) == 1:
            body = self._hiding(function).size(function.arguments[0])
            if body is None:
                return None
            name = column_identifier(parameters[0].id)
            each = (
                f"coalesce(list_sum(list_transform({value}, lambda {name}: CAST({body.sql} AS DOUBLE))), 0)"
            )
            return Measure(f"({each} + {own} * {float(VALUE_BYTES)})", body.is_exact)
        if call.function in ("transform_values", "transform_keys") and value is not None:
            body = self._hiding(function).size(function.arguments[0])
            if body is None:
                return None
            key, item = (column_identifier(parameter.id) for parameter in parameters)
            inside = let(field_sql("z", 0), key, let(field_sql("z", 1), item, f"CAST({body.sql} AS DOUBLE)"))
            each = f"coalesce(list_sum(list_transform({value}, lambda z: {inside})), 0)"
            return Measure(f"({each} + {places})")
        unknown = {parameter.id: total for parameter in parameters}
        body = self._with(unknown).size(function.arguments[0])
        count = " + ".join(filter(None, map(self._count, arrays)))
        return None if body is None else Measure(f"({places} + ({count}) * {body.sql})")

    def _of_reduction(self, call: Call) -> Measure | None:
        """What is collected: by a formula if each step multiplies it by a constant, otherwise step by step."""
        array, first, merge, finish = call.arguments
        assert isinstance(merge, Call), "the reader puts a lambda there"
        assert isinstance(finish, Call), "the reader puts a lambda there"
        sofar, element = _parameters(merge)
        (result,) = _parameters(finish)
        begin, count, total = self.size(first), self._count(array), self.size(array)
        if begin is None or count is None or total is None:
            return None
        is_exact = False
        step = Spreads().of(merge.arguments[0]) if varies(merge.type) else Spread(plus=VALUE_BYTES)
        if step is not None:
            by = step.times.get(sofar.id, 0.0)
            others = self._columns(merge, step, (sofar.id, element.id))
            each = " + ".join((f"{float(step.plus)}", *others))
            added = f"{begin.sql} + {count} * ({each}) + {step.times.get(element.id, 0.0)} * {total.sql}"
            grown = f"exp(least({count} * ln({float(by)}), {_POWER_MAX}))" if by > 1 else "1"
            collected = f"(({added}) * {grown})"
            # An aggregation by these alone has exactly the size that is computed.
            joined = all(p.function in JOINING for p in walk(merge.arguments[0]) if isinstance(p, Call))
            is_exact = joined and begin.is_exact and set(step.times) <= {sofar.id}
        else:
            value = self._value(array)
            inner = self._hiding(merge)._with({sofar.id: column_identifier(sofar.id)})
            body = inner.size(merge.arguments[0])
            if value is None or body is None:
                return None
            names = f"{column_identifier(sofar.id)}, {column_identifier(element.id)}"
            stepped = f"lambda {names}: CAST({body.sql} AS DOUBLE)"
            collected = f"coalesce(list_reduce({value}, {stepped}, CAST({begin.sql} AS DOUBLE)), 0)"
        name = column_identifier(result.id)
        made = self._with({result.id: name}).size(finish.arguments[0])
        if made is None:
            return None
        is_exact = is_exact and finish.arguments[0] == result
        return Measure(let(collected, name, made.sql), is_exact)

    def _columns(self, merge: Call, step: Spread, own: tuple[int, ...]) -> list[str]:
        """The sizes of the columns that each step of a reduction adds, beside its own parameters."""
        columns = {part.id: part for part in walk(merge) if isinstance(part, Column) and part.id not in own}
        sizes = {id_: self.size(column) for id_, column in columns.items()}
        return [
            f"{step.times[id_]} * {size.sql}" for id_, size in sizes.items() if size and id_ in step.times
        ]

    # ----------------------------------------------------------------------------------------------- arguments
    def _with(self, sized: Mapping[int, str]) -> Sizing:
        return Sizing(self._known, {**self._sized, **sized})

    def _hiding(self, function: Call) -> Sizing:
        """The same with the parameters of a lambda as values."""
        own = {parameter.id for parameter in _parameters(function)}
        return Sizing(self._known, {id_: sql for id_, sql in self._sized.items() if id_ not in own})

    def _element_bytes(self, call: Call) -> str:
        size = self.size(call.arguments[0])
        return "0" if size is None else size.sql

    def _count(self, expression: Expression) -> str | None:
        """The number of an array's elements, or more."""
        if expression.type.kind not in (Kind.ARRAY, Kind.MAP):
            return None
        value = self._value(expression)
        if value is not None:
            return f"coalesce(len({value}), 0)"
        size = self.size(expression)
        return None if size is None else f"({size.sql} / {float(VALUE_BYTES)})"

    def _value(self, expression: Expression) -> str | None:
        """An expression that may be computed for all rows at once; None if it is large or of sizes only."""
        return f"({expression_sql(expression)})" if self.is_computed(expression) else None

    def is_computed(self, expression: Expression) -> bool:
        """May an expression be computed for all rows at once? Not if a text is several times as long as its columns."""
        if columns_in(expression) & self._sized.keys():
            return False
        found = Spreads(self._known)
        spread = found.of(expression)
        if found.growing or spread is None:
            return False
        return (
            expression.type.kind is not Kind.STRING
            or max(spread.times.values(), default=0) <= _COMPUTED_TIMES_MAX
        )


def _parameters(function: Call) -> list[Column]:
    return [part for part in function.arguments[1:] if isinstance(part, Column)]


def _bound(size: Measure | None) -> Measure | None:
    return None if size is None else Measure(size.sql)
