"""Mathematical functions: by IEEE 754, in whole numbers and decimals, and by the methods of Java's `StrictMath`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.exact.decimals import DIGITS_MAX
from wallaby.functions.scalar.arithmetic import negative
from wallaby.functions.scalar.function import Function, Write, of_kinds, template, unsupported
from wallaby.functions.sql_decimal import by_zero, decimal_sql, from_digits, unscaled
from wallaby.functions.sql_integer import fitted
from wallaby.relations.expression import Call, EvalMode, Literal
from wallaby.relations.types import DOUBLE, LONG, DataType, Kind, decimal
from wallaby.sql.words import case, cast, error

_GREATEST: Final = (1 << 63) - 1
_OVERFLOW: Final = error("ARITHMETIC_OVERFLOW", "The number does not fit a bigint.")
_OUT_OF_RANGE: Final = error(
    "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION", "The rounded number has too many digits."
)
_TWO_63: Final = "CAST(9223372036854775808 AS DOUBLE)"
#: Java's constants: `Math.toDegrees` and `Math.toRadians` multiply by them.
_DEGREES: Final = "57.29577951308232"
_RADIANS: Final = "0.017453292519943295"
#: Java's logarithm of 2.
_LN2: Final = "0.6931471805599453"
#: Up to here a number times a power of ten is so exact that it is clear on which side of a half it is.
_CLEAR_MAX: Final = 1e9
_CLEAR_SCALE_MAX: Final = 9
_CLEAR: Final = "0.00001"
#: Rounding writes its argument several times, so a long one goes to the function that writes it once.
_REPEATED_MAX: Final = 500


def _abs(call: Call, sql: Sequence[str]) -> str:
    if call.type.is_floating:
        return cast(f"abs({sql[0]})", call.type)
    return case([(f"{sql[0]} < 0", negative(sql[0], call.type, call.mode))], sql[0])


def _integral_divide(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    zero = (f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode))
    if left.type.kind is Kind.DECIMAL:
        scale = max(left.type.scale, right.type.scale)
        lefts, rights = (
            unscaled(one, decimal(side.type.precision - side.type.scale + scale, scale))
            for one, side in zip(sql, call.arguments, strict=True)
        )
        return case([zero], fitted(f"({lefts} // {rights})", call.type, EvalMode.LEGACY))
    wide = f"(CAST({sql[0]} AS HUGEINT) // {sql[1]})"
    return case([zero], fitted(wide, call.type, call.mode))


def _integral_divide_reason(call: Call) -> str | None:
    left, right = (argument.type for argument in call.arguments)
    if left.kind is Kind.DECIMAL and right.kind is Kind.DECIMAL:
        scale = max(left.scale, right.scale)
        fits = all(side.precision - side.scale + scale <= DIGITS_MAX for side in (left, right))
        return None if fits else unsupported(call)
    return None if left.kind is Kind.LONG and right.kind is Kind.LONG else unsupported(call)


def _positive_modulo(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    if call.type.kind is Kind.DECIMAL:
        return decimal_sql("pmod", sql[0], left, sql[1], right, call.type, call.mode)
    branches = [(f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode, remainder=True))]
    rest = f"({sql[0]} % {sql[1]})"
    if not call.type.is_integral:
        again = f"(({rest} + {sql[1]}) % {sql[1]})"
        return case([*branches, (f"{rest} < 0", cast(again, call.type))], cast(rest, call.type))
    branches.append((f"{sql[1]} = -1 AND {sql[0]} IS NOT NULL", cast("0", call.type)))
    # Two negative numbers may leave their type, and come back as a positive one.
    wide = f"(CAST({rest} AS HUGEINT) + {sql[1]})"
    wrapped = wide if call.type.kind in (Kind.BYTE, Kind.SHORT) else fitted(wide, call.type, EvalMode.LEGACY)
    return case(
        [*branches, (f"{rest} < 0", cast(f"({wrapped} % {sql[1]})", call.type))], cast(rest, call.type)
    )


def _same_number(call: Call) -> str | None:
    kinds = {argument.type.kind for argument in call.arguments} | {call.type.kind}
    numeric = call.type.is_integral or call.type.is_floating or call.type.kind is Kind.DECIMAL
    return None if len(kinds) == 1 and numeric else unsupported(call)


def _can_overflow(call: Call) -> bool:
    return call.mode is EvalMode.ANSI


# -------------------------------------------------------------------------------------------------- rounding
def _can_grow(call: Call) -> bool:
    """Places before the point can make a decimal longer than its type, and that is an error in every mode."""
    return _can_overflow(call) or (call.type.kind is Kind.DECIMAL and _places(call) < 0)


def _digits_rounded(n: str, step: str, how: str) -> str:
    """A whole number divided by a power of ten, rounded to a whole one."""
    size, rest = f"(abs({n}) // {step})", f"(abs({n}) % {step})"
    match how:
        case "half_up":
            away = f"{rest} >= {step} - {rest}"
        case "half_even":
            away = f"{rest} > {step} - {rest} OR ({rest} = {step} - {rest} AND {size} % 2 = 1)"
        case "up":
            away = f"{rest} > 0 AND {n} > 0"
        case _:
            away = f"{rest} > 0 AND {n} < 0"
    sign = case([(f"{n} < 0", "CAST(-1 AS HUGEINT)")], "CAST(1 AS HUGEINT)")
    one_more = case([(away, f"{size} + 1")], size)
    return f"({sign} * {one_more})"


def _rounded(how: str) -> Write:
    """To so many places behind the point, or before it if they are negative."""

    def write(call: Call, sql: Sequence[str]) -> str:
        source, places = call.arguments[0].type, _places(call)
        if source.is_floating:
            return _floating_rounded(call, sql[0], how)
        scale = source.scale if source.kind is Kind.DECIMAL else 0
        if places >= scale:
            return cast(sql[0], call.type)
        if scale - places > DIGITS_MAX:
            beyond = {"up": f"{sql[0]} > 0", "down": f"{sql[0]} < 0"}.get(how, "FALSE")
            return case([(f"{sql[0]} IS NULL", "NULL"), (beyond, _OUT_OF_RANGE)], cast("0", call.type))
        n = unscaled(sql[0], source) if source.kind is Kind.DECIMAL else f"CAST({sql[0]} AS HUGEINT)"
        digits = _digits_rounded(n, _power(scale - places), how)
        if places < 0:
            digits = f"({digits} * {_power(-places)})"
        if call.type.is_integral:
            return fitted(digits, call.type, call.mode)
        if places < 0:
            too_long = f"abs({digits}) >= {_power(call.type.precision)}"
            return case([(too_long, _OUT_OF_RANGE)], cast(digits, call.type))
        return from_digits(digits, decimal(call.type.precision, max(places, 0)), call.type)

    return write


def _power(places: int) -> str:
    return f"CAST('1{'0' * places}' AS HUGEINT)"


def _places(call: Call) -> int:
    """Of an expression without an argument for it, none."""
    if len(call.arguments) == 1:
        return 0
    places = call.arguments[1]
    assert isinstance(places, Literal), "refused by the reason"
    assert isinstance(places.value, int), "refused by the reason"
    return places.value


def _floating_rounded(call: Call, value: str, how: str) -> str:
    places, java = _places(call), call.arguments[2]
    assert isinstance(java, Literal), "refused by the reason"
    wide = cast(value, DOUBLE)
    even = "TRUE" if how == "half_even" else "FALSE"
    slow = f"wallaby_round({wide}, {places}, {even}, {java.value})"
    if not 0 <= places <= _CLEAR_SCALE_MAX or len(value) > _REPEATED_MAX:
        return cast(slow, call.type)
    power = f"CAST({10**places} AS DOUBLE)"
    size = f"(abs({wide}) * {power})"
    clear = f"{size} < {_CLEAR_MAX} AND abs({size} - floor({size}) - 0.5) > {_CLEAR}"
    sign = case([(f"{wide} < 0", "-1")], "1")
    quick = f"({sign} * (floor({size} + 0.5) / {power}) + CAST(0 AS DOUBLE))"
    return cast(case([(clear, quick)], slow), call.type)


def _rounded_reason(call: Call) -> str | None:
    source = call.arguments[0].type
    if not all(
        isinstance(argument, Literal) and isinstance(argument.value, int) for argument in call.arguments[1:]
    ):
        return f"{call.function} to a scale that is not constant is not supported"
    if source.is_floating:
        return None if len(call.arguments) == 3 else unsupported(call)
    return None if source.is_integral or source.kind is Kind.DECIMAL else unsupported(call)


def _whole(name: str, how: str) -> Write:
    """Ceil and floor: of decimals a decimal, of doubles a long."""

    def write(call: Call, sql: Sequence[str]) -> str:
        if call.arguments[0].type.kind is Kind.DECIMAL:
            return _rounded(how)(call, sql)
        if call.arguments[0].type.is_integral:
            return cast(sql[0], call.type)
        rounded = f"{name}({sql[0]})"
        ansi = call.mode is EvalMode.ANSI
        return case(
            [
                (f"isnan({sql[0]})", "0"),
                (f"{sql[0]} >= {_TWO_63}", _OVERFLOW if ansi else str(_GREATEST)),
                (f"{sql[0]} < -{_TWO_63}", _OVERFLOW if ansi else str(-_GREATEST - 1)),
            ],
            cast(rounded, LONG),
        )

    return write


def _whole_reason(call: Call) -> str | None:
    source, result = call.arguments[0].type, call.type
    if source.kind is Kind.DECIMAL:
        return None if result.kind is Kind.DECIMAL else unsupported(call)
    floating = source.is_floating and result == LONG
    return None if floating or (source.is_integral and result == LONG) else unsupported(call)


# ------------------------------------------------------------------------------------------------- the others
def _sign(call: Call, sql: Sequence[str]) -> str:
    value = sql[0]
    return cast(
        case([(f"isnan({value})", value), (f"{value} > 0", "1"), (f"{value} < 0", "-1")], value), call.type
    )


def _factorial(call: Call, sql: Sequence[str]) -> str:
    return case([(f"{sql[0]} BETWEEN 0 AND 20", cast(f"factorial({sql[0]})", call.type))])


def _same_type(call: Call) -> str | None:
    types: set[DataType] = {argument.type for argument in call.arguments}
    return None if types == {call.type} else unsupported(call)


_OF_DOUBLE: Final = of_kinds(Kind.DOUBLE)


def _conv_fallible(call: Call) -> bool:
    return call.mode is EvalMode.ANSI


def _conv(call: Call, sql: Sequence[str]) -> str:
    return f"wallaby_conv({', '.join(sql)}, {'TRUE' if call.mode is EvalMode.ANSI else 'FALSE'})"


def _format(call: Call, sql: Sequence[str]) -> str:
    source = call.arguments[0].type
    if source.is_floating:
        return f"wallaby_format_floating({cast(sql[0], DOUBLE)}, {sql[1]}, {sql[2]})"
    return f"wallaby_format_decimal(CAST({cast(sql[0], source)} AS VARCHAR), {sql[1]})"


def _to_number(call: Call, sql: Sequence[str]) -> str:
    ansi = "TRUE" if call.mode is EvalMode.ANSI else "FALSE"
    return cast(f"wallaby_to_number({sql[0]}, {sql[1]}, {call.type.scale}, {ansi})", call.type)


def _to_character(call: Call, sql: Sequence[str]) -> str:
    number = cast(sql[0], call.arguments[0].type)
    return f"wallaby_to_character(CAST({number} AS VARCHAR), {sql[1]})"


_NUMBERS: Final = (
    *(Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG),
    *(Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL),
)


# ---------------------------------------------------------------------------------------- Java's StrictMath
def _logarithm(name: str, least: str) -> Write:
    """NULL where there is no logarithm."""

    def write(_call: Call, sql: Sequence[str]) -> str:
        return case([(f"{sql[0]} <= {least}", "NULL")], f"wallaby_{name}({sql[0]})")

    return write


def _log2(_call: Call, sql: Sequence[str]) -> str:
    return case([(f"{sql[0]} <= 0", "NULL")], f"(wallaby_log({sql[0]}) / CAST('{_LN2}' AS DOUBLE))")


def _log_to_base(_call: Call, sql: Sequence[str]) -> str:
    return case([(f"{sql[0]} <= 0 OR {sql[1]} <= 0", "NULL")], f"wallaby_logarithm({sql[0]}, {sql[1]})")


_STRICT: Final = ("exp", "expm1", "asin", "acos", "atan", "sinh", "cosh", "tanh", "atanh", "cbrt")

FUNCTIONS: dict[str, Function] = {
    **{name: Function((1, 1), template(f"wallaby_{name}({{0}})"), _OF_DOUBLE) for name in _STRICT},
    **{
        name: Function((2, 2), template(f"wallaby_{name}({{0}}, {{1}})"), _OF_DOUBLE)
        for name in ("power", "atan2", "hypot")
    },
    "log": Function((1, 1), _logarithm("log", "0"), _OF_DOUBLE),
    "log10": Function((1, 1), _logarithm("log10", "0"), _OF_DOUBLE),
    "log1p": Function((1, 1), _logarithm("log1p", "-1"), _OF_DOUBLE),
    "log2": Function((1, 1), _log2, _OF_DOUBLE),
    "logarithm": Function((2, 2), _log_to_base, _OF_DOUBLE),
    "to_number": Function((2, 2), _to_number, of_kinds(Kind.STRING), _can_overflow),
    "to_character": Function((2, 2), _to_character, of_kinds(Kind.DECIMAL, Kind.STRING)),
    "format_number": Function((3, 3), _format, of_kinds(_NUMBERS, Kind.INTEGER)),
    "abs": Function((1, 1), _abs, _same_number, _can_overflow),
    "integral_divide": Function((2, 2), _integral_divide, _integral_divide_reason, _can_overflow),
    "pmod": Function((2, 2), _positive_modulo, _same_number, _can_overflow),
    "round": Function((1, 3), _rounded("half_up"), _rounded_reason, _can_grow),
    "bround": Function((1, 3), _rounded("half_even"), _rounded_reason, _can_grow),
    "round_ceil": Function((1, 2), _rounded("up"), _rounded_reason, _can_grow),
    "round_floor": Function((1, 2), _rounded("down"), _rounded_reason, _can_grow),
    "ceil": Function((1, 1), _whole("ceil", "up"), _whole_reason, _can_overflow),
    "floor": Function((1, 1), _whole("floor", "down"), _whole_reason, _can_overflow),
    "rint": Function((1, 1), template("round_even({0}, 0)"), _OF_DOUBLE),
    "sqrt": Function((1, 1), template("sqrt({0})"), _OF_DOUBLE),
    "sign": Function((1, 1), _sign, _OF_DOUBLE),
    "degrees": Function((1, 1), template("({0} * CAST('" + _DEGREES + "' AS DOUBLE))"), _OF_DOUBLE),
    "radians": Function((1, 1), template("({0} * CAST('" + _RADIANS + "' AS DOUBLE))"), _OF_DOUBLE),
    "factorial": Function((1, 1), _factorial, of_kinds(Kind.INTEGER)),
    "width_bucket": Function(
        (4, 4),
        template("wallaby_width_bucket({0}, {1}, {2}, {3})"),
        of_kinds(Kind.DOUBLE, Kind.DOUBLE, Kind.DOUBLE, Kind.LONG),
    ),
    "bin": Function((1, 1), template("bin({0})"), of_kinds(Kind.LONG)),
    "conv": Function((3, 3), _conv, of_kinds(Kind.STRING, Kind.INTEGER), _conv_fallible),
}
