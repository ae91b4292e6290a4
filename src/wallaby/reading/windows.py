"""Read window functions: Catalyst wraps each in its frame, and may compute with the result in the same expression."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from wallaby.catalyst.data_types import data_type
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.reading.expressions import ExpressionReader
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, Named
from wallaby.relations.relation import Frame, FrameUnit, WindowCall
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.relations.zone import is_fixed

_RANKS: Final = {
    "CumeDist": "cume_dist",
    "DenseRank": "dense_rank",
    "PercentRank": "percent_rank",
    "Rank": "rank",
    "RowNumber": "row_number",
}
_OFFSETS: Final = {"Lag": "lag", "Lead": "lead"}
_OPPOSITE: Final = {"lag": "lead", "lead": "lag"}
_VALUES: Final = {"First": "first_value", "Last": "last_value", "NthValue": "nth_value"}
#: The window functions that run here, besides all aggregate functions.
FUNCTIONS: Final = frozenset({*_RANKS, *_OFFSETS, *_VALUES, "NTile"})
_UNITS: Final = {"RowFrame": FrameUnit.ROWS, "RangeFrame": FrameUnit.RANGE}
_UNBOUNDED: Final = ("UnboundedPreceding$", "UnboundedFollowing$")


class WindowCalls:
    """The window functions of one operator."""

    def __init__(self, reader: ExpressionReader) -> None:
        self._reader = reader
        self.found: list[WindowCall] = []
        self._column: Column | None = None

    def read(self, nodes: tuple[Node, ...]) -> list[Named] | None:
        """Read the columns that the operator adds to its input, in terms of the window functions found in them."""
        outputs: list[Named] = []
        self._reader.window = self._call
        try:
            for node in nodes:
                column = self._reader.column(node)
                # A function that is the whole expression becomes the output itself.
                self._column = (
                    column if node.children and node.children[0].name == "WindowExpression" else None
                )
                expression = self._reader.read(node)
                if column is not None and expression is not None:
                    outputs.append(Named(column, expression))
        finally:
            self._reader.window = None
        return outputs if len(outputs) == len(nodes) else None

    def _call(self, node: Node) -> Expression | None:
        function, spec = node.children
        kind = data_type(node.type)
        frame = self._frame(spec)
        if kind is None:
            self._reader.refuse(str(function), f"the type {node.type} is not supported yet")
        if kind is None or frame is None:
            return None
        read = self._function(function, kind)
        if read is None:
            return None
        made, ignore_nulls = read
        column = self._column or Column(self._reader.fresh_id(), made.function, kind, node.nullable)
        self.found.append(WindowCall(column, made, frame, ignore_nulls))
        return column

    def _function(self, node: Node, kind: DataType) -> tuple[Aggregation, bool] | None:
        inner = node.children[0] if node.name == "AggregateExpression" else node
        if inner.name in _RANKS:
            return Aggregation(_RANKS[inner.name], (), kind, nullable=False), False
        if inner.name in _OFFSETS:
            return self._offset(inner, kind)
        if inner.name in _VALUES or inner.name == "NTile":
            return self._value(inner, kind, node.children[1:] if inner is not node else ())
        made = self._reader.read(node)
        if made is not None and not isinstance(made, Aggregation):
            self._reader.refuse(str(node), "this window function is not supported")
        return (made, False) if isinstance(made, Aggregation) else None

    def _offset(self, node: Node, kind: DataType) -> tuple[Aggregation, bool] | None:
        arguments = self._reader.read_all(node.children[:3])
        if arguments is None:
            return None
        value, offset, default = arguments
        distance = _whole(offset)
        if distance is None:
            self._reader.refuse(str(node), "its offset is not a constant")
            return None
        name = _OFFSETS[node.name] if distance >= 0 else _OPPOSITE[_OFFSETS[node.name]]
        default = Literal(None, kind) if default == Literal(None, default.type) else default
        taken = (value, Literal(abs(distance), INTEGER), default)
        return Aggregation(name, taken, kind, nullable=True), node.flag("ignoreNulls")

    def _value(
        self, node: Node, kind: DataType, filters: tuple[Node, ...]
    ) -> tuple[Aggregation, bool] | None:
        arguments = self._reader.read_all(node.children)
        conditions = self._reader.read_all(filters)
        if arguments is None or conditions is None:
            return None
        if not all(isinstance(argument, Literal) for argument in arguments[1:]):
            self._reader.refuse(str(node), "its position is not a constant")
            return None
        name = _VALUES.get(node.name, "ntile")
        ignore_nulls = name != "ntile" and node.flag("ignoreNulls")
        condition = conditions[0] if conditions else None
        return Aggregation(name, arguments, kind, nullable=True, filter=condition), ignore_nulls

    def _frame(self, spec: Node) -> Frame | None:
        frame = spec.children[-1] if spec.children else spec
        if frame.name != "SpecifiedWindowFrame":
            raise UnreadablePlanError("A window has no frame.")
        unit = _UNITS.get(frame.word("frameType"))
        bounds = [self._bound(bound) for bound in frame.children]
        if unit is FrameUnit.RANGE and any(isinstance(bound, Literal) for bound in bounds):
            return self._distance(spec, bounds)
        lower, upper = (None if bound is None else _whole(bound) for bound in bounds)
        if unit is None or any(b is not None and _whole(b) is None for b in bounds):
            self._reader.refuse("Window", "the ends of its frame are not constants")
            return None
        return Frame(unit, lower, upper)

    def _bound(self, node: Node) -> Expression | None:
        """An end of a frame; None if the frame has no end."""
        if node.name in _UNBOUNDED:
            return None
        if node.name == "CurrentRow$":
            return _HERE
        return _constant(self._reader.read(node)) or _UNKNOWN

    def _distance(self, spec: Node, bounds: list[Expression | None]) -> Frame | None:
        """A frame whose ends lie at a distance in values of its sort key."""
        orders = [child for child in spec.children if child.name == "SortOrder"]
        key = data_type(orders[0].children[0].type) if len(orders) == 1 else None
        fixed = is_fixed(self._reader.session_zone)
        found = [0 if bound is _HERE else _steps(bound, key, fixed=fixed) for bound in bounds]
        if key is None or any(f is None and b is not None for f, b in zip(found, bounds, strict=True)):
            self._reader.refuse("Window", _NO_DISTANCE)
            return None
        months = any(b is not None and b.type.kind is Kind.YEAR_MONTH for b in bounds)
        begin, end = found
        return Frame(FrameUnit.RANGE, begin, end, months=months and key.kind is not Kind.YEAR_MONTH)


#: The current row, and an end that is no constant.
_HERE: Final = Call("current_row", (), INTEGER, nullable=False)
_UNKNOWN: Final = Call("unknown", (), INTEGER, nullable=False)
_NO_DISTANCE: Final = (
    "a RANGE frame with an offset is supported only over numbers, dates, intervals and timestamps, and in a zone "
    "that changes its clocks only with an offset of less than a day"
)
_DAY: Final = 86_400_000_000


def _steps(bound: Expression | None, key: DataType | None, *, fixed: bool) -> int | float | None:
    """The distance of an end from the current row in the smallest units of the key; None if there is no such number."""
    if not isinstance(bound, Literal) or key is None:
        return None
    match key.kind, bound.type.kind, bound.value:
        case ((Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG), _, int(number)):
            return number
        case (Kind.FLOAT, Kind.FLOAT, float(number)) | (Kind.DOUBLE, Kind.DOUBLE, float(number)):
            return number if math.isfinite(number) else None
        case Kind.DECIMAL, Kind.DECIMAL, Decimal() as number:
            scaled = number.scaleb(key.scale)
            return int(scaled) if scaled == int(scaled) else None
        case Kind.DATE, (Kind.INTEGER | Kind.SHORT | Kind.BYTE | Kind.YEAR_MONTH), int(number):
            return number
        case Kind.DATE, Kind.DAY_TIME, int(number):
            return number // _DAY if bound.type.names == ("day",) else None
        case (Kind.DAY_TIME, Kind.DAY_TIME, int(number)) | (Kind.YEAR_MONTH, Kind.YEAR_MONTH, int(number)):
            return number
        case Kind.TIMESTAMP_NTZ, (Kind.DAY_TIME | Kind.YEAR_MONTH), int(number):
            return number
        case Kind.TIMESTAMP, Kind.DAY_TIME, int(number):
            # Days are days of the clock, hours are not.
            return number if fixed or abs(number) < _DAY else None
        case _:
            return None


def _constant(expression: Expression | None) -> Literal | None:
    """A constant, perhaps negated."""
    match expression:
        case Literal():
            return expression
        case Call(
            function="negate", arguments=(Literal(value=int() | float() | Decimal() as number) as literal,)
        ):
            return Literal(-number, literal.type)
        case _:
            return None


def _whole(expression: Expression | None) -> int | None:
    if expression is _HERE:
        return 0
    constant = _constant(expression)
    return constant.value if constant is not None and isinstance(constant.value, int) else None
