"""The few functions that planning itself knows: those it makes, and those whose selectivity it can guess.

All others are only names to it; the expression registry says what they are. A name that is missing here costs
speed, never correctness.
"""

from __future__ import annotations

from typing import Final

# What planning makes.
CAST: Final = "cast"
COALESCE: Final = "coalesce"
DIVIDE: Final = "divide"

#: A function of its own: the body, then the parameters, columns that nothing outside of it has.
LAMBDA: Final = "lambda"

# What planning looks into.
AND: Final = "and"
OR: Final = "or"
NOT: Final = "not"
EQUAL: Final = "eq"
NOT_EQUAL: Final = "ne"
LESS: Final = "lt"
LESS_OR_EQUAL: Final = "le"
GREATER: Final = "gt"
GREATER_OR_EQUAL: Final = "ge"
EQUAL_NULL_SAFE: Final = "eq_null_safe"
IN: Final = "in"
IS_NULL: Final = "is_null"
IS_NOT_NULL: Final = "is_not_null"
NORMALIZE: Final = "normalize"
ADD: Final = "add"
SUBTRACT: Final = "subtract"
MULTIPLY: Final = "multiply"
DATE_ADD: Final = "date_add"
DATE_SUB: Final = "date_sub"
#: Texts, and what is looked for in them.
TEXT: Final = ("substring", "upper", "lower", "contains", "starts_with", "ends_with")

#: A comparison and the one that says the same with its sides exchanged.
MIRRORED: Final = {
    EQUAL: EQUAL,
    LESS: GREATER,
    LESS_OR_EQUAL: GREATER_OR_EQUAL,
    GREATER: LESS,
    GREATER_OR_EQUAL: LESS_OR_EQUAL,
}

# Parts of nested values.
FIELD: Final = "field"
SIZE: Final = "size"

# The aggregate functions that planning can split into a partial and a final part.
COUNT: Final = "count"
SUM: Final = "sum"
AVG: Final = "avg"
#: The sum of decimals in an average: only its end has to fit.
TOTAL: Final = "total"
MIN: Final = "min"
MAX: Final = "max"
#: These merge with themselves.
BITWISE: Final = ("bit_and", "bit_or", "bit_xor")

#: Functions that raise no error, whatever values they are applied to.
INFALLIBLE: Final = frozenset(
    (
        *(*MIRRORED, NOT_EQUAL, EQUAL_NULL_SAFE, AND, OR, NOT, IN, IS_NULL, IS_NOT_NULL),
        *(COALESCE, NORMALIZE, FIELD, SIZE, *TEXT),
    )
)
