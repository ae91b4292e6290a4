"""Arithmetic and mathematics."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "Add": ("{number} + {number}", "try_add({number}, {number})"),
    "Subtract": ("{number} - {number}", "try_subtract({number}, {number})"),
    "Multiply": ("{number} * {number}", "try_multiply({number}, {number})"),
    "Divide": ("{number} / {number}", "try_divide({number}, {number})"),
    "Remainder": ("{number} % {number}", "try_mod({number}, {number})"),
    "UnaryMinus": ("-{number}",),
    "UnaryPositive": ("+{number}",),
    "BitwiseAnd": ("{whole} & {whole}",),
    "ShiftRight": ("{int} >> 3", "{bigint} >> 70", "{int} >> -1"),
}
