"""Mathematical functions.

Java computes roots, products and whole numbers as everybody does. Exponential, logarithmic and trigonometric functions
it computes with methods of its own, whose last bit is not that of other libraries.
"""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.arithmetic import fails
from wallaby.catalyst.data_types import NUMERIC, TEXT
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded, unsupported
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, Expression, Literal
from wallaby.plan.types import INTEGER, DataType, Kind

_DOUBLE: Final = frozenset({Kind.DOUBLE})
_INT: Final = frozenset({Kind.INTEGER})
_LONG: Final = frozenset({Kind.LONG})
_LAST_BIT: Final = "Java's result differs in the last bit from that of the kernels"

_PLACES: Final = "to a number of places, not by a pattern"
_SIXTY_FOUR: Final = "in 64 bits; an overflow is an error (ANSI) or the greatest number (LEGACY)"


def _format(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """With Java's version, since it begins with Java's digits."""
    if arguments[1].type.kind is not Kind.INTEGER:
        return Refusal("a pattern for numbers has no kernel yet", "give the number of places")
    return Call(entry.function, (*arguments, Literal(node.java, INTEGER)), kind, node.nullable)


ENTRIES: Final = (
    exact("Sqrt", "sqrt", _DOUBLE),
    guarded("Signum", "sign", _DOUBLE, guard="of NaN and the two zeros they themselves"),
    guarded("Rint", "rint", _DOUBLE, guard="halves go to the even number"),
    guarded("ToDegrees", "degrees", _DOUBLE, guard="by Java's constant"),
    guarded("ToRadians", "radians", _DOUBLE, guard="by Java's constant"),
    guarded("Factorial", "factorial", _INT, guard="of 0 to 20, else NULL"),
    guarded(
        "WidthBucket", "width_bucket", _DOUBLE, _DOUBLE, _DOUBLE, _LONG, guard="NULL for impossible bounds"
    ),
    guarded(
        "FormatNumber",
        "format_number",
        NUMERIC,
        _INT | TEXT,
        guard="to a number of places, not by a pattern",
        build=_format,
    ),
    exact("Bin", "bin", _LONG),
    guarded("Conv", "conv", TEXT, _INT, guard=_SIXTY_FOUR, build=fails),
    *(
        unsupported(name, _LAST_BIT)
        for name in (
            *("Exp", "Expm1", "Log", "Log10", "Log1p", "Log2", "Logarithm", "Pow", "Cbrt", "Hypot"),
            *("Sin", "Cos", "Tan", "Cot", "Sec", "Csc", "Asin", "Acos", "Atan", "Atan2"),
            *("Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh"),
        )
    ),
)
