"""Mathematical functions.

Roots, products and whole numbers have one correct result. For exponentials, logarithms, powers and arcs Spark calls
`StrictMath`, or methods of `Math` that do: these are Sun's published methods, which are in `strict_math`. Sines,
cosines and tangents are those of `Math`, whose last bit depends on the virtual machine; in newer versions of Java so do
some others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import DOUBLES, INTS, LONGS
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import per_value
from wallaby.functions.entry import Entry, Refusal, exact, guarded, plain, unsupported
from wallaby.functions.family import Family
from wallaby.functions.numbers import strict_math
from wallaby.functions.scalar_sql import ScalarSql, Write, template
from wallaby.relations.expression import Call, Expression
from wallaby.relations.types import DOUBLE, LONG, DataType
from wallaby.sql.words import case, cast

_STRICT: Final = "by the methods of Java's StrictMath"
_LAST_BIT: Final = "the last bit of Java's result depends on the virtual machine"
#: The last version of Java in which some functions of `Math` have no code of their own.
_JAVA_MAX: Final = 23


def _by_version(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Accept a function only with a Java that computes it by `StrictMath`."""
    if not 0 < node.java <= _JAVA_MAX:
        return Refusal(_LAST_BIT)
    return plain(entry, node, arguments, kind)


def width_bucket(value: float, low: float, high: float, count: int) -> int | None:
    """The number of the bucket, among buckets of equal width, of a value; 0 and n + 1 are outside."""
    bad_count = count <= 0 or count == (1 << 63) - 1
    if bad_count or math.isnan(value) or low == high or not (math.isfinite(low) and math.isfinite(high)):
        return None
    if low < high:
        if value < low:
            return 0
        return count + 1 if value >= high else _next_long(float(count) * (value - low) / (high - low))
    if value > low:
        return 0
    return count + 1 if value <= high else _next_long(float(count) * (low - value) / (low - high))


def _next_long(value: float) -> int:
    """One more than a number truncated to a long, saturated as in Java; after the greatest long comes the least."""
    if math.isnan(value):
        return 1
    whole = int(min(max(value, -(2.0**63)), 2.0**63))
    return whole + 1 if whole < (1 << 63) - 1 else -(1 << 63)


#: Java's constants: `Math.toDegrees` and `Math.toRadians` multiply by them.
_DEGREES: Final = "57.29577951308232"
_RADIANS: Final = "0.017453292519943295"
#: Java's logarithm of 2.
_LN2: Final = "0.6931471805599453"


def _sign(call: Call, sql: Sequence[str]) -> str:
    value = sql[0]
    return cast(
        case([(f"isnan({value})", value), (f"{value} > 0", "1"), (f"{value} < 0", "-1")], value), call.type
    )


def _factorial(call: Call, sql: Sequence[str]) -> str:
    return case([(f"{sql[0]} BETWEEN 0 AND 20", cast(f"factorial({sql[0]})", call.type))])


def _logarithm(name: str, least: str) -> Write:
    """A logarithm, NULL where it is undefined."""

    def write(_call: Call, sql: Sequence[str]) -> str:
        return case([(f"{sql[0]} <= {least}", "NULL")], f"wallaby_{name}({sql[0]})")

    return write


def _log2(_call: Call, sql: Sequence[str]) -> str:
    return case([(f"{sql[0]} <= 0", "NULL")], f"(wallaby_log({sql[0]}) / CAST('{_LN2}' AS DOUBLE))")


def _log_to_base(_call: Call, sql: Sequence[str]) -> str:
    return case([(f"{sql[0]} <= 0 OR {sql[1]} <= 0", "NULL")], f"wallaby_logarithm({sql[0]}, {sql[1]})")


FAMILY: Final = Family(
    "Mathematics",
    (
        guarded(
            "Exp",
            "exp",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(1, template("wallaby_exp({0})")),
            examples=("exp({double})", "exp({small})"),
        ),
        guarded(
            "Expm1",
            "expm1",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(1, template("wallaby_expm1({0})")),
            examples=("expm1({double})",),
        ),
        guarded(
            "Asin",
            "asin",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(1, template("wallaby_asin({0})")),
            examples=("asin({double})", "asin({double} / 1000)"),
        ),
        guarded(
            "Acos",
            "acos",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(1, template("wallaby_acos({0})")),
            examples=("acos({double})", "acos({small} / 10)"),
        ),
        guarded(
            "Atan",
            "atan",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(1, template("wallaby_atan({0})")),
            examples=("atan({double})",),
        ),
        guarded(
            "Atanh",
            "atanh",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(1, template("wallaby_atanh({0})")),
            examples=("atanh({double} / 1000)",),
        ),
        guarded(
            "Sinh",
            "sinh",
            DOUBLES,
            guard=f"{_STRICT}, with Java up to {_JAVA_MAX}",
            build=_by_version,
            sql=ScalarSql(1, template("wallaby_sinh({0})")),
            examples=("sinh({double})",),
        ),
        guarded(
            "Cosh",
            "cosh",
            DOUBLES,
            guard=f"{_STRICT}, with Java up to {_JAVA_MAX}",
            build=_by_version,
            sql=ScalarSql(1, template("wallaby_cosh({0})")),
            examples=("cosh({double})",),
        ),
        guarded(
            "Tanh",
            "tanh",
            DOUBLES,
            guard=f"{_STRICT}, with Java up to {_JAVA_MAX}",
            build=_by_version,
            sql=ScalarSql(1, template("wallaby_tanh({0})")),
            examples=("tanh({double})",),
        ),
        guarded(
            "Cbrt",
            "cbrt",
            DOUBLES,
            guard=f"{_STRICT}, with Java up to {_JAVA_MAX}",
            build=_by_version,
            sql=ScalarSql(1, template("wallaby_cbrt({0})")),
            examples=("cbrt({double})",),
        ),
        guarded(
            "Log",
            "log",
            DOUBLES,
            guard=f"{_STRICT}; NULL where there is none",
            sql=ScalarSql(1, _logarithm("log", "0")),
            examples=("ln({double})", "log({decimal})"),
        ),
        guarded(
            "Log10",
            "log10",
            DOUBLES,
            guard=f"{_STRICT}; NULL where there is none",
            sql=ScalarSql(1, _logarithm("log10", "0")),
            examples=("log10({double})",),
        ),
        guarded(
            "Log1p",
            "log1p",
            DOUBLES,
            guard=f"{_STRICT}; NULL where there is none",
            sql=ScalarSql(1, _logarithm("log1p", "-1")),
            examples=("log1p({double})",),
        ),
        guarded(
            "Log2",
            "log2",
            DOUBLES,
            guard=f"{_STRICT}; NULL where there is none",
            sql=ScalarSql(1, _log2),
            examples=("log2({double})",),
        ),
        guarded(
            "Logarithm",
            "logarithm",
            DOUBLES,
            guard=f"{_STRICT}; NULL where there is none",
            sql=ScalarSql(2, _log_to_base),
            examples=("log({double}, {double})", "log(3, {int})"),
        ),
        guarded(
            "Pow",
            "power",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(2, template("wallaby_power({0}, {1})")),
            examples=("pow({double}, {double})", "power({int}, 2)", "pow({double}, {small})"),
        ),
        guarded(
            "Hypot",
            "hypot",
            DOUBLES,
            guard=_STRICT,
            sql=ScalarSql(2, template("wallaby_hypot({0}, {1})")),
            examples=("hypot({double}, {double})",),
        ),
        guarded(
            "Atan2",
            "atan2",
            DOUBLES,
            guard=f"{_STRICT}, without negative zeros",
            sql=ScalarSql(2, template("wallaby_atan2({0}, {1})")),
            examples=("atan2({double}, {double})",),
        ),
        exact("Sqrt", "sqrt", DOUBLES, sql=ScalarSql(1, template("sqrt({0})")), examples=("sqrt({number})",)),
        guarded(
            "Signum",
            "sign",
            DOUBLES,
            guard="NaN and both zeros are returned unchanged",
            sql=ScalarSql(1, _sign),
            examples=("sign({number})",),
        ),
        guarded(
            "Rint",
            "rint",
            DOUBLES,
            guard="halves go to the even number",
            sql=ScalarSql(1, template("round_even({0}, 0)")),
            examples=("rint({double})",),
        ),
        guarded(
            "ToDegrees",
            "degrees",
            DOUBLES,
            guard="by Java's constant",
            sql=ScalarSql(1, template("({0} * CAST('" + _DEGREES + "' AS DOUBLE))")),
            examples=("degrees({double})",),
        ),
        guarded(
            "ToRadians",
            "radians",
            DOUBLES,
            guard="by Java's constant",
            sql=ScalarSql(1, template("({0} * CAST('" + _RADIANS + "' AS DOUBLE))")),
            examples=("radians({double})",),
        ),
        guarded(
            "Factorial",
            "factorial",
            INTS,
            guard="of 0 to 20, else NULL",
            sql=ScalarSql(1, _factorial),
            examples=("factorial({small})", "factorial({int})"),
        ),
        guarded(
            "WidthBucket",
            "width_bucket",
            DOUBLES,
            DOUBLES,
            DOUBLES,
            LONGS,
            guard="NULL for impossible bounds",
            sql=ScalarSql(4, template("wallaby_width_bucket({0}, {1}, {2}, {3})")),
            examples=(
                "width_bucket({double}, -10, 10, 7)",
                "width_bucket({double}, {double}, {double}, {bigint})",
            ),
        ),
        unsupported("Sin", _LAST_BIT),
        unsupported("Cos", _LAST_BIT),
        unsupported("Tan", _LAST_BIT),
        unsupported("Cot", _LAST_BIT),
        unsupported("Sec", _LAST_BIT),
        unsupported("Csc", _LAST_BIT),
        unsupported("Asinh", _LAST_BIT),
        unsupported("Acosh", _LAST_BIT),
    ),
    arrow_functions=(
        per_value("wallaby_width_bucket", (DOUBLE, DOUBLE, DOUBLE, LONG), LONG, width_bucket),
        *strict_math.FUNCTIONS,
    ),
)
