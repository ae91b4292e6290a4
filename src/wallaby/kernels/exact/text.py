"""Text as Java treats it."""

from __future__ import annotations

from typing import Final

from wallaby.kernels.exact.arrow_function import per_value
from wallaby.plan.types import STRING

UPPER: Final = "wallaby_upper"
LOWER: Final = "wallaby_lower"

FUNCTIONS: Final = (
    per_value(UPPER, (STRING,), STRING, str.upper),
    per_value(LOWER, (STRING,), STRING, str.lower),
)
