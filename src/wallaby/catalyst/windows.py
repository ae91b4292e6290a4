"""Reading window functions: Catalyst wraps each in its frame, and may compute with the result in the same place."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import DATES, INTEGRAL, data_type
from wallaby.catalyst.expressions import ExpressionReader
from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.plan.expression import Aggregation, Call, Column, Expression, Literal, Named
from wallaby.plan.relation import Frame, FrameUnit, WindowCall
from wallaby.plan.types import INTEGER, DataType

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
#: The window functions that are run here, beside all aggregate functions.
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
        """What the operator adds to its input, in terms of the functions that are found on the way."""
        outputs: list[Named] = []
        self._reader.window = self._call
        try:
            for node in nodes:
                column = self._reader.column(node)
                # A function that stands alone becomes the output itself.
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
            return self._value(inner, kind, filtered=len(node.children) > 1 and inner is not node)
        made = self._reader.read(node)
        if made is not None and not isinstance(made, Aggregation):
            self._reader.refuse(str(node), "it is no window function that is known here")
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

    def _value(self, node: Node, kind: DataType, *, filtered: bool) -> tuple[Aggregation, bool] | None:
        arguments = self._reader.read_all(node.children)
        if filtered:
            self._reader.refuse(str(node), "a filter in a window function is not run here yet")
        if arguments is None or filtered:
            return None
        if not all(isinstance(argument, Literal) for argument in arguments[1:]):
            self._reader.refuse(str(node), "its position is not a constant")
            return None
        name = _VALUES.get(node.name, "ntile")
        ignore_nulls = name != "ntile" and node.flag("ignoreNulls")
        return Aggregation(name, arguments, kind, nullable=True), ignore_nulls

    def _frame(self, spec: Node) -> Frame | None:
        frame = spec.children[-1] if spec.children else spec
        if frame.name != "SpecifiedWindowFrame":
            raise UnreadablePlanError("A window has no frame.")
        unit = _UNITS.get(frame.word("frameType"))
        lower, upper = (self._bound(bound) for bound in frame.children)
        if unit is FrameUnit.RANGE and (lower or upper) and not _counts_in_whole_numbers(spec):
            self._reader.refuse(
                "Window", "a RANGE frame with an offset is run here only over a whole number or a date"
            )
            return None
        if unit is None or lower is _UNKNOWN or upper is _UNKNOWN:
            self._reader.refuse("Window", "the ends of its frame are not constants")
            return None
        return Frame(unit, lower, upper)

    def _bound(self, node: Node) -> int | None:
        if node.name in _UNBOUNDED:
            return None
        if node.name == "CurrentRow$":
            return 0
        found = _whole(self._reader.read(node))
        return _UNKNOWN if found is None else found


#: No frame has an end so far away.
_UNKNOWN: Final = 1 << 80


def _counts_in_whole_numbers(spec: Node) -> bool:
    """Is a window ordered by one key, to which whole numbers can be added?"""
    orders = [child for child in spec.children if child.name == "SortOrder"]
    kinds = [data_type(order.children[0].type) for order in orders]
    return len(kinds) == 1 and kinds[0] is not None and kinds[0].kind in INTEGRAL | DATES


def _whole(expression: Expression | None) -> int | None:
    match expression:
        case Literal(value=int(number)):
            return number
        case Call(function="negate", arguments=(Literal(value=int(number)),)):
            return -number
        case _:
            return None
