"""Mathematical functions.

Java computes roots, products and whole numbers as everybody does. For exponentials, logarithms, powers and arcs Spark
calls `StrictMath`, or methods of `Math` that do: these are Sun's published methods, which the kernels have too. Sines,
cosines and tangents are those of `Math`, whose last bit is up to the virtual machine; so are some others from newer
versions of Java on.
"""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import NUMERIC, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.arithmetic import fails
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded, plain, unsupported
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind

_DOUBLE: Final = frozenset({Kind.DOUBLE})
_INT: Final = frozenset({Kind.INTEGER})
_LONG: Final = frozenset({Kind.LONG})
_LAST_BIT: Final = "the last bit of Java's result depends on the virtual machine"
_STRICT: Final = "by the methods of Java's StrictMath"
#: The last version of Java that computes some functions of `Math` by no code of its own.
_JAVA_MAX: Final = 23

_PLACES: Final = "to a number of places, not by a pattern"
_SIXTY_FOUR: Final = "in 64 bits; an overflow is an error (ANSI) or the greatest number (LEGACY)"


def _format(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """With Java's version, since it begins with Java's digits."""
    if arguments[1].type.kind is not Kind.INTEGER:
        return Refusal("a pattern for numbers has no kernel yet", "give the number of places")
    return Call(entry.function, (*arguments, Literal(node.java, INTEGER)), kind, node.nullable)


def _by_version(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Only with a Java that computes it by `StrictMath`."""
    if not 0 < node.java <= _JAVA_MAX:
        return Refusal(_LAST_BIT)
    return plain(entry, node, arguments, kind)


ENTRIES: Final = (
    *(
        guarded(name, name.lower(), _DOUBLE, guard=_STRICT)
        for name in ("Exp", "Expm1", "Asin", "Acos", "Atan", "Atanh")
    ),
    *(
        guarded(
            name, name.lower(), _DOUBLE, guard=f"{_STRICT}, with Java up to {_JAVA_MAX}", build=_by_version
        )
        for name in ("Sinh", "Cosh", "Tanh", "Cbrt")
    ),
    *(
        guarded(name, name.lower(), _DOUBLE, guard=f"{_STRICT}; NULL where there is none")
        for name in ("Log", "Log10", "Log1p", "Log2", "Logarithm")
    ),
    guarded("Pow", "power", _DOUBLE, guard=_STRICT),
    guarded("Hypot", "hypot", _DOUBLE, guard=_STRICT),
    guarded("Atan2", "atan2", _DOUBLE, guard=f"{_STRICT}, without negative zeros"),
    exact("Sqrt", "sqrt", _DOUBLE),
    guarded("Signum", "sign", _DOUBLE, guard="NaN and both zeros are returned unchanged"),
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
            *("Sin", "Cos", "Tan", "Cot", "Sec", "Csc"),
            *("Asinh", "Acosh"),
        )
    ),
)
