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
    "IntegralDivide": ("{whole} div {whole}", "{decimal_9_0} div {decimal_5_2}"),
    "Pmod": ("pmod({number}, {number})",),
    "Abs": ("abs({number})",),
    "Round": ("round({number})", "round({number}, 2)", "round({number}, -1)", "round({double}, 9)"),
    "BRound": ("bround({number})", "bround({number}, 1)", "bround({number}, -2)"),
    "RoundCeil": ("ceil({decimal}, 1)", "ceil({small}, -1)"),
    "RoundFloor": ("floor({decimal}, 1)", "floor({double}, 2)"),
    "Ceil": ("ceil({number})",),
    "Floor": ("floor({number})",),
    "BitwiseAnd": ("{whole} & {whole}",),
    "BitwiseOr": ("{whole} | {whole}",),
    "BitwiseXor": ("{whole} ^ {whole}",),
    "BitwiseNot": ("~{whole}",),
    "BitwiseCount": ("bit_count({whole})", "bit_count({boolean})"),
    "BitwiseGet": ("bit_get({whole}, 5)", "getbit({bigint}, abs({small}))"),
    "ShiftLeft": ("{int} << {small}", "shiftleft({bigint}, {int})"),
    "ShiftRight": ("{int} >> 3", "{bigint} >> 70", "{int} >> -1", "shiftright({bigint}, {int})"),
    "ShiftRightUnsigned": ("{int} >>> {small}", "shiftrightunsigned({bigint}, {int})"),
    "Sqrt": ("sqrt({number})",),
    "Signum": ("sign({number})",),
    "Rint": ("rint({double})",),
    "ToDegrees": ("degrees({double})",),
    "ToRadians": ("radians({double})",),
    "Factorial": ("factorial({small})", "factorial({int})"),
    "WidthBucket": (
        "width_bucket({double}, -10, 10, 7)",
        "width_bucket({double}, {double}, {double}, {bigint})",
    ),
    "FormatNumber": ("format_number({number}, 2)", "format_number({double}, {small})"),
    "Bin": ("bin({whole})",),
    "Conv": ("conv({digits}, 10, 16)", "conv({string}, 36, -2)", "conv({digits}, {small}, {small})"),
}
