"""The few functions that planning itself knows: those that it creates, and those whose selectivity it can guess.

All others are only names to it, defined by the expression registry. A name that is missing here costs speed, never
correctness.
"""

from __future__ import annotations

from typing import Final

# Functions that planning creates.
CAST: Final = "cast"
COALESCE: Final = "coalesce"
DIVIDE: Final = "divide"

#: A lambda: its body, then its parameters, which are columns that occur nowhere else.
LAMBDA: Final = "lambda"

# Functions that planning inspects.
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
#: The same on decimals whose result has at most 18 digits, as bounds of columns say: it fits into 64 bits.
IN_64_BITS: Final = {ADD: "add_64", SUBTRACT: "subtract_64", MULTIPLY: "multiply_64"}
DATE_ADD: Final = "date_add"
DATE_SUB: Final = "date_sub"
#: The digits of a decimal as a whole number.
UNSCALED: Final = "unscaled"
#: Texts, and what is looked for in them.
TEXT: Final = ("substring", "upper", "lower", "contains", "starts_with", "ends_with")

#: Each comparison, and its mirror image with the sides exchanged.
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
#: The sum of decimals in an average: only the final sum has to fit.
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
