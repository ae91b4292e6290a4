"""Aggregations in parts: computed over pieces of the rows apart, then put together to exactly the same result.

That needs functions whose partial results associate without rounding: counts, sums of whole numbers and decimals, the
least and the greatest value, the first and the last. A sum of floating-point numbers depends on the order of additions,
so it has no parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wallaby.sql.words import case

#: How the results of two pieces are put together.
_OPERATORS: Final = {
    "count": "{0} + {1}",
    "sum": "{0} + {1}",
    "bit_and": "{0} & {1}",
    "bit_or": "{0} | {1}",
    "bit_xor": "xor({0}, {1})",
}
#: Which of two values is taken; the earlier one if they are equal.
_COMPARISONS: Final = {"min": "<", "arg_min": "<", "max": ">", "arg_max": ">"}


@dataclass(frozen=True, slots=True)
class AggregatePart:
    """One function of DuckDB's over pieces of the rows. NULL is the result of no rows, except for a count."""

    #: count, sum, min, max, arg_min or arg_max of a value by itself, bit_and, bit_or, bit_xor; first or last: of the
    #: values that are not NULL.
    function: str
    #: The SQL of the values.
    argument: str
    #: DuckDB's type of the result.
    type: str

    def over_window(self, over: str) -> str:
        """The SQL over a window, given the text after the function."""
        match self.function:
            case "first" | "last":
                return f"{self.function}_value({self.argument} IGNORE NULLS){over}"
            case _:
                return f"{_plain(self.function, self.argument)}{over}"

    def over_rows(self) -> str:
        """The SQL over a piece of the rows, which come in their order."""
        return self._cast(_grouped(self.function, self.argument))

    def over_results(self, column: str) -> str:
        """The SQL that puts the results of several pieces together, which come in their order."""
        return self._cast(_grouped("sum" if self.function == "count" else self.function, column))

    def both(self, earlier: str, later: str) -> str:
        """The SQL of the result over two pieces."""
        match self.function:
            case "first":
                return f"coalesce({earlier}, {later})"
            case "last":
                return f"coalesce({later}, {earlier})"
            case function if function in _COMPARISONS:
                other = f"{earlier} IS NULL OR {later} {_COMPARISONS[function]} {earlier}"
                return case([(other, later)], earlier)
            case function:
                together = _OPERATORS[function].format(earlier, later)
                return self._cast(f"coalesce({together}, {earlier}, {later})")

    def _cast(self, sql: str) -> str:
        return f"CAST({sql} AS {self.type})"


def _plain(function: str, argument: str) -> str:
    return f"{function}({argument}, {argument})" if function.startswith("arg_") else f"{function}({argument})"


def _grouped(function: str, argument: str) -> str:
    if function not in ("first", "last"):
        return _plain(function, argument)
    # DuckDB's first and last keep structs as sort keys, in which a zero has no sign.
    return f"(list({argument}) FILTER (WHERE {argument} IS NOT NULL))[{1 if function == 'first' else -1}]"


@dataclass(frozen=True, slots=True)
class AggregateParts:
    """How an aggregation is put together."""

    parts: tuple[AggregatePart, ...]
    #: The SQL of the aggregation, given that of the parts.
    finish: Callable[[Sequence[str]], str]
    #: With more rows than this, a sum may overflow on its way; None: with no number of rows.
    rows_max: int | None = None
    #: The SQL of a sum over all rows that must not be larger than `EXACT_MAX`, or the result may be rounded
    #: differently.
    magnitude: str | None = None


#: Up to this, sums of whole numbers are exact as doubles.
EXACT_MAX: Final = 1 << 53


def only(part: AggregatePart, finish: Callable[[str], str] = lambda sql: sql) -> AggregateParts:
    """An aggregation of a single part."""
    return AggregateParts((part,), lambda parts: finish(parts[0]))
