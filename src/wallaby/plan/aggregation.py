"""Split an aggregation: what each task computes from its own rows, how partial results merge, how they are finished.

Kernels are given count, sum, min, max and others by name; an average becomes a sum and a count. With `a` an
argument, and every type as Catalyst has it:

| function | partial             | merged by | finished as                                                   |
|----------|---------------------|-----------|---------------------------------------------------------------|
| count    | count(a): bigint    | sum       | the sum; 0 where there was no row at all                      |
| sum      | sum(a): its own type| sum       | the sum: decimal(min(38, p+10), s), bigint or double          |
| min, max | min(a), max(a)      | min, max  | itself; likewise bit_and, bit_or and bit_xor                  |
| avg      | sum(a), count(a)    | sum       | divide(sum, cast(count as decimal(20,0))) with the average's  |
|          |                     |           | type, decimal(p+4, s+4): exact, rounded half up; for other    |
|          |                     |           | types sum(cast(a as double)), divide(sum, cast(count as double)) |

A merging sum has the type of what it merges, not a wider one, and raises what the first sum would raise on
overflow. The division cannot fail (a sum is NULL where its count is 0, and NULL divided by 0 is NULL) unless
the quotient is a decimal(38, …) and overflows; then it does what the average's mode says.

DISTINCT over one list of arguments becomes grouping by keys and arguments first, then by keys: the first
grouping is partial and merged like any other, so kernels see neither DISTINCT nor avg there.
An aggregation that cannot be merged (DISTINCT over several lists, other functions, sums that turn to NULL on overflow)
is `whole`: its rows are brought together and aggregated at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Column, EvalMode, Expression, Literal, Named, walk
from wallaby.relations.relation import Aggregate, Project, Relation
from wallaby.relations.tree import kept, substitute
from wallaby.relations.types import DOUBLE, LONG, DataType, Kind, decimal

NewColumn = Callable[[str, DataType], Column]

_MERGED_BY = {
    functions.COUNT: functions.SUM,
    functions.SUM: functions.SUM,
    functions.TOTAL: functions.TOTAL,
    functions.MIN: functions.MIN,
    functions.MAX: functions.MAX,
    **{name: name for name in functions.BITWISE},
}
_PRECISION_MAX = 38


@dataclass(frozen=True, slots=True)
class AggregationParts:
    """The parts of an aggregation. `keys` and `arguments` are computed from the child's columns."""

    keys: tuple[Named, ...]
    #: The arguments of DISTINCT, by which partial results are grouped as well.
    arguments: tuple[Named, ...]
    #: From the child's columns.
    partials: tuple[Named, ...]
    #: From the partial columns, to the same columns.
    merges: tuple[Named, ...]
    #: The DISTINCT aggregations, over `arguments`, of which each combination occurs once by then.
    distincts: tuple[Named, ...]
    #: The outputs, computed from keys, merged and distinct columns.
    outputs: tuple[Named, ...]
    mergeable: bool

    def partial(self, child: Relation) -> Relation:
        """What a task does with its own rows."""
        return Aggregate(child, (*self.keys, *self.arguments), self.partials)

    def combine(self, partial: Relation) -> Relation:
        """Partial results into fewer of the same kind."""
        return Aggregate(partial, (*_same(self.keys), *_same(self.arguments)), self.merges)

    def finish(self, partial: Relation) -> Relation:
        """All partial results of some groups into the answer."""
        return self._merged(self.combine(partial) if self.arguments else partial)

    def _merged(self, partial: Relation) -> Relation:
        """The answer from partial results in which no arguments of DISTINCT repeat."""
        merged = Aggregate(partial, _same(self.keys), (*self.merges, *self.distincts))
        return Project(merged, self.outputs)

    def whole(self, child: Relation) -> Relation:
        """The answer from all rows of some groups."""
        if self.arguments:
            return self._merged(self.partial(child))
        return Project(Aggregate(child, self.keys, (*self.partials, *self.distincts)), self.outputs)


def take_apart(aggregate: Aggregate, new_column: NewColumn) -> AggregationParts:
    """The parts of an aggregation."""
    return _Taker(aggregate, new_column).parts()


def with_arguments_computed(
    aggregate: Aggregate, new_column: NewColumn
) -> tuple[tuple[Named, ...], Aggregate]:
    """For rows that are sent whole: the columns to send, and the aggregation over those.

    Keys come first, so that rows can be partitioned by them. Arguments are computed before sending, because they are
    mostly smaller than the columns that they are computed from.
    """
    sent = {named.expression: named.column for named in aggregate.keys}
    needed: dict[Expression, Column] = {}
    for found in _aggregations(aggregate):
        for argument in (*found.arguments, *(() if found.filter is None else (found.filter,))):
            if not isinstance(argument, Literal) and argument not in sent and argument not in needed:
                own = isinstance(argument, Column)
                needed[argument] = argument if own else new_column("argument", argument.type)
    if not sent and not needed:
        needed[Literal(1, LONG)] = new_column("row", LONG)
    outputs = (*aggregate.keys, *(Named(column, expression) for expression, column in needed.items()))
    replacements = dict[Expression, Expression]({**sent, **needed})

    def over_sent(named: Named) -> Named:
        return replace(named, expression=substitute(named.expression, replacements))

    return outputs, replace(
        aggregate,
        keys=_same(aggregate.keys),
        aggregations=tuple(map(over_sent, aggregate.aggregations)),
    )


class _Taker:
    """Collects the parts; the same aggregation, used twice, is computed once."""

    def __init__(self, aggregate: Aggregate, new_column: NewColumn) -> None:
        self._aggregate = aggregate
        self._new_column = new_column
        self._partials: dict[Aggregation, Column] = {}
        self._distincts: dict[Aggregation, Column] = {}
        self._arguments: dict[Expression, Column] = {}
        #: With keys, every group has a row; a merged count can be NULL only without keys.
        self._counts_may_lack = not aggregate.keys

    def parts(self) -> AggregationParts:
        found = [_without_needless_distinct(a) for a in _aggregations(self._aggregate)]
        lists = dict.fromkeys(a.arguments for a in found if a.distinct)
        mergeable = is_mergeable(self._aggregate)
        if mergeable:
            for argument in (argument for arguments in lists for argument in arguments):
                if argument not in self._arguments:
                    self._arguments[argument] = self._new_column("distinct", argument.type)
        else:
            self._counts_may_lack = False
        replacements: dict[Expression, Expression] = {k.expression: k.column for k in self._aggregate.keys}
        for aggregation in _aggregations(self._aggregate):
            replacements[aggregation] = self._finished(_without_needless_distinct(aggregation))
        outputs = tuple(
            Named(named.column, substitute(named.expression, replacements))
            for named in self._aggregate.aggregations
        )
        partials = tuple(Named(column, aggregation) for aggregation, column in self._partials.items())
        return AggregationParts(
            keys=self._aggregate.keys,
            arguments=tuple(Named(column, argument) for argument, column in self._arguments.items()),
            partials=partials,
            merges=tuple(map(_merge, partials)) if mergeable else (),
            distincts=tuple(Named(column, aggregation) for aggregation, column in self._distincts.items()),
            outputs=tuple({n.column.id: n for n in (*_same(self._aggregate.keys), *outputs)}.values()),
            mergeable=mergeable,
        )

    def _finished(self, aggregation: Aggregation) -> Expression:
        """The value of an aggregation, from merged columns."""
        if aggregation.function == functions.AVG and (not aggregation.distinct or self._arguments):
            return self._average(aggregation)
        if aggregation.function == functions.COUNT and not aggregation.distinct and self._counts_may_lack:
            count = self._column(aggregation)
            return Call(functions.COALESCE, (count, Literal(0, LONG)), LONG, nullable=False)
        return self._column(aggregation)

    def _average(self, average: Aggregation) -> Expression:
        (argument,) = average.arguments
        if argument.type.kind is Kind.DECIMAL:
            precision = argument.type.precision
            sum_type = decimal(min(_PRECISION_MAX, precision + 10), argument.type.scale)
            count_type, summed = decimal(20, 0), argument
            fits = precision + 4 <= _PRECISION_MAX
            function = functions.SUM if precision + 10 <= _PRECISION_MAX else functions.TOTAL
        else:
            function = functions.SUM
            sum_type = count_type = DOUBLE
            summed, fits = _as(DOUBLE, argument), True
        total = self._column(
            replace(average, function=function, arguments=(summed,), type=sum_type, nullable=True)
        )
        count = self._column(replace(average, function=functions.COUNT, type=LONG, nullable=False))
        return Call(
            functions.DIVIDE,
            (total, _as(count_type, count)),
            average.type,
            nullable=True,
            mode=EvalMode.ANSI if fits else average.mode,
        )

    def _column(self, aggregation: Aggregation) -> Column:
        """The column that holds an aggregation that kernels compute."""
        if aggregation.distinct and self._arguments:
            over = dict[Expression, Expression](self._arguments)
            aggregation = replace(
                aggregation,
                arguments=tuple(substitute(argument, over) for argument in aggregation.arguments),
                distinct=False,
            )
            table = self._distincts
        else:
            table = self._partials
        if aggregation not in table:
            table[aggregation] = self._new_column(aggregation.function, aggregation.type)
        return table[aggregation]


def _aggregations(aggregate: Aggregate) -> tuple[Aggregation, ...]:
    """The aggregations in the outputs, each once."""
    parts = (part for named in aggregate.aggregations for part in walk(named.expression))
    return tuple(dict.fromkeys(part for part in parts if isinstance(part, Aggregation)))


def _without_needless_distinct(aggregation: Aggregation) -> Aggregation:
    """Drop DISTINCT from min and max, which do not depend on repeated values."""
    needless = aggregation.function in (functions.MIN, functions.MAX)
    return replace(aggregation, distinct=False) if needless else aggregation


def is_mergeable(aggregate: Aggregate) -> bool:
    """Can tasks aggregate their own rows first?"""
    found = [_without_needless_distinct(aggregation) for aggregation in _aggregations(aggregate)]
    lists = {aggregation.arguments for aggregation in found if aggregation.distinct}
    return len(lists) <= 1 and all(map(_is_mergeable, found))


def _is_mergeable(aggregation: Aggregation) -> bool:
    if aggregation.function not in (*_MERGED_BY, functions.AVG):
        return False
    if aggregation.distinct and aggregation.filter is not None:
        return False
    if aggregation.function not in (functions.SUM, functions.AVG) or aggregation.mode is EvalMode.ANSI:
        return True
    # Where an overflow is no error, it is NULL for decimals and TRY, and merging would mistake it for "no rows".
    # Wrapped bigints and floating point have no such value; an average's sum is a double unless it is a decimal. The
    # sum of a decimal has ten digits more: it overflows only where its type cannot have them.
    decimals = [a.type for a in aggregation.arguments if a.type.kind is Kind.DECIMAL]
    if decimals:
        return all(type_.precision + 10 <= _PRECISION_MAX for type_ in decimals)
    return (
        aggregation.mode is EvalMode.LEGACY
        or aggregation.type.is_floating
        or aggregation.function == functions.AVG
    )


def _merge(partial: Named) -> Named:
    """A partial column, merged with others of its kind."""
    made = partial.expression
    assert isinstance(made, Aggregation)
    function = _MERGED_BY[made.function]
    # Of decimals only those are merged whose sum cannot overflow, so any mode would do.
    mode = EvalMode.ANSI if made.type.kind is Kind.DECIMAL else made.mode
    merged = Aggregation(function, (partial.column,), made.type, nullable=True, mode=mode)
    return Named(partial.column, merged)


def _same(named: tuple[Named, ...]) -> tuple[Named, ...]:
    """Columns as they are, once they have been computed."""
    return kept(n.column for n in named)


def _as(type_: DataType, expression: Expression) -> Expression:
    if expression.type == type_:
        return expression
    return Call(functions.CAST, (expression,), type_, expression.nullable)
