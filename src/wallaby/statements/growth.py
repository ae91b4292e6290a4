"""Functions whose results may be much larger than their arguments, and how to compute that size beforehand.

DuckDB computes a function for a whole vector of rows at once, so the results of `sequence`, `repeat` and the like for
too many rows exist before their size can be checked. But their arguments determine the size. If the arguments depend
only on the columns of a task's rows, they are computed first, and only as many rows are taken as there is room for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.batches.sizes import is_varying, sizes_of_values
from wallaby.errors import QueryError
from wallaby.relations import functions
from wallaby.relations.expression import Call, Column, Expression, Literal, Named, columns_in
from wallaby.relations.relation import Filter, Input, Project, Relation, children_of
from wallaby.relations.tree import by_ids, expressions_of, largest_id
from wallaby.sql.types import arrow_schema, column_name
from wallaby.statements.connection import KernelSettings, thread_session
from wallaby.statements.relation import input_name, inputs_of, relation_sql

Weights = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.float64]
#: Functions whose result may be many times as large as their arguments, and which argument determines how many times.
_GROWING: Final = {"repeat": 1, "space": 0, "pad_left": 1, "pad_right": 1, "array_repeat": 1, "sequence": 1}
#: With a constant up to this value, a result is not large.
_GROWN_MAX: Final = 256
#: The result for a single row may be at most this many times what a kernel may hold.
_GROWN_PARTS: Final = 2
#: Functions that do not compute all their arguments for all rows.
_CONDITIONAL: Final = frozenset({"case", "if", "coalesce", "nanvl", functions.AND, functions.OR})
#: DuckDB computes sequences in 64 bits.
_NUMBER_BYTES: Final = 8


def grown_bytes_max(settings: KernelSettings) -> int:
    """The largest result of a function for a single row: DuckDB holds it twice while it grows."""
    return _GROWN_PARTS * settings.memory_bytes


def grows(part: Expression) -> bool:
    """May an expression's result be much larger than its arguments?"""
    if not isinstance(part, Call) or part.function not in _GROWING:
        return False
    times = part.arguments[_GROWING[part.function]]
    constant = part.function != "sequence" and isinstance(times, Literal) and isinstance(times.value, int)
    return not (constant and times.value <= _GROWN_MAX)  # type: ignore[union-attr,operator]  # a whole number


@dataclass(frozen=True, slots=True)
class _Growing:
    """A growing function, with its arguments in terms of an input's columns."""

    function: str
    arguments: tuple[Expression, ...]
    #: Is it computed for every row, or only where a condition holds?
    always: bool


class Growth:
    """The results of a tree's growing functions for the rows of one of its inputs."""

    def __init__(self, tree: Relation, number: int, settings: KernelSettings) -> None:
        self._settings = settings
        self._number = number
        self.most_bytes = grown_bytes_max(settings)
        found = dict.fromkeys(_growing(tree, number))
        feet = [source for source in inputs_of(tree) if source.number == number]
        known = {column.id for foot in feet for column in foot.columns}
        self._calls = tuple(
            call for call in found if len(feet) == 1 and all(columns_in(a) <= known for a in call.arguments)
        )
        if not self._calls:
            return
        first = largest_id(tree) + 1
        arguments = dict.fromkeys(argument for call in self._calls for argument in call.arguments)
        self._columns = {
            argument: Column(first + at, f"argument {at}", argument.type, argument.nullable)
            for at, argument in enumerate(arguments)
        }
        outputs = tuple(Named(column, argument) for argument, column in self._columns.items())
        self._sql = relation_sql(Project(feet[0], outputs))
        self._schema = arrow_schema(feet[0].columns)

    def weigh(self, rows: Sequence[pa.RecordBatch]) -> Weights | None:
        """The bytes of results for each row; None if nothing grows, or if it cannot be computed."""
        if not self._calls:
            return None
        table = pa.Table.from_batches(rows, self._schema)
        try:
            made = thread_session(self._settings).query(self._sql, {input_name(self._number): table})
        except (
            QueryError
        ):  # perhaps for a row that a filter would drop: the real computation will raise the error if not
            return None
        values = {a: made.column(column_name(c.id)).combine_chunks() for a, c in self._columns.items()}
        weights = np.zeros(table.num_rows)
        for call in self._calls:
            own = _weights(call.function, [values[argument] for argument in call.arguments])
            weights += own if call.always else np.minimum(own, self.most_bytes)
        return weights


def _growing(tree: Relation, number: int) -> Iterator[_Growing]:
    """The growing functions whose arguments are computed from an input alone, through filters and projections."""
    children = children_of(tree)
    for child in children:
        yield from _growing(child, number)
    if len(children) != 1:
        return
    below = _from_input(children[0], number)
    everywhere = not isinstance(tree, Filter) and not _has_filter(children[0])
    for expression in expressions_of(tree):
        for call, always in _calls_in(expression, always=everywhere):
            if below is not None:
                yield _Growing(call.function, tuple(map(below, call.arguments)), always)


def _calls_in(expression: Expression, *, always: bool) -> Iterator[tuple[Call, bool]]:
    if isinstance(expression, Call):
        if grows(expression):
            yield expression, always
        for argument in expression.arguments:
            yield from _calls_in(argument, always=always and expression.function not in _CONDITIONAL)


def _has_filter(relation: Relation) -> bool:
    return isinstance(relation, Filter) or any(map(_has_filter, children_of(relation)))


def _from_input(relation: Relation, number: int) -> Callable[[Expression], Expression] | None:
    """Rewrites expressions over a relation's columns in terms of an input; None if that is not possible."""
    match relation:
        case Input():
            return (lambda expression: expression) if relation.number == number else None
        case Filter():
            return _from_input(relation.child, number)
        case Project():
            below = _from_input(relation.child, number)
            if below is None:
                return None
            inline = by_ids({named.column.id: named.expression for named in relation.outputs})
            return lambda expression: below(inline(expression))
        case _:
            return None


def _weights(function: str, arguments: list[pa.Array]) -> Weights:
    match function:
        case "sequence":
            first, last = _numbers(arguments[0]), _numbers(arguments[1])
            step = np.abs(_numbers(arguments[2])) if len(arguments) > 2 else np.ones(len(first))
            return (np.abs(last - first) / np.maximum(step, 1) + 1) * _NUMBER_BYTES
        case "repeat" | "array_repeat":
            value = arguments[0]
            size = sizes_of_values(value) if is_varying(value.type) else np.full(len(value), _NUMBER_BYTES)
            return np.asarray(np.maximum(_numbers(arguments[1]), 0) * size, np.float64)
        case _:
            return np.maximum(_numbers(arguments[_GROWING[function]]), 0)


def _numbers(array: pa.Array) -> _Numbers:
    """Whole numbers or days, and 0 for NULL."""
    if pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    return np.asarray(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), np.float64)
