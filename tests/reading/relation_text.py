"""Write a relation as text, one operator per line, inputs indented below: for people and for golden files.

Column ids differ from session to session, so columns are numbered in the order in which they appear; `?` marks those
that may be NULL.
"""

from __future__ import annotations

from wallaby.relations.expression import (
    Aggregation,
    Call,
    Column,
    EvalMode,
    Expression,
    Literal,
    Named,
    SortKey,
)
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Join,
    Limit,
    Project,
    Range,
    Relation,
    Rows,
    Scan,
    Single,
    Sort,
    Source,
    Union,
    Unnest,
    Window,
    children_of,
)


def format_relation(relation: Relation) -> str:
    """The whole tree, root first."""
    return "\n".join(_Printer().lines(relation, 0)) + "\n"


class _Printer:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def lines(self, relation: Relation, depth: int) -> list[str]:
        # Inputs first, so that columns are numbered where they come from.
        below = [line for child in children_of(relation) for line in self.lines(child, depth + 1)]
        return ["  " * depth + self._line(relation), *below]

    def _line(self, relation: Relation) -> str:
        match relation:
            case Scan() | Rows() | Range() | Input():
                return f"{_source(relation)} [{self._columns(relation.columns)}]"
            case Filter():
                return f"filter {self._expression(relation.condition)}"
            case Project():
                return f"project [{self._named(relation.outputs)}]"
            case Join():
                return self._join(relation)
            case Aggregate():
                return (
                    f"aggregate by [{self._named(relation.keys)}] of [{self._named(relation.aggregations)}]"
                )
            case Sort():
                return f"sort [{self._order(relation.keys)}]"
            case Window():
                calls = (
                    f"{self._expression(call.function)} as {self._columns((call.column,))}"
                    for call in relation.calls
                )
                by = f"by [{self._list(relation.partition)}] order [{self._order(relation.order)}]"
                return f"window {by} of [{', '.join(calls)}]"
            case Limit():
                count = "all" if relation.count is None else relation.count
                return f"limit {count}" + (f" offset {relation.offset}" if relation.offset else "")
            case Single():
                return f"single row [{self._columns(relation.columns)}]"
            case Expand() | Unnest():
                return f"{self._multiplied(relation)} → [{self._columns(relation.columns)}]"
            case Union():
                return f"union [{self._columns(relation.columns)}]"

    def _multiplied(self, relation: Expand | Unnest) -> str:
        match relation:
            case Expand(projections=projections):
                return f"expand [{'; '.join(map(self._list, projections))}]"
            case Unnest(array=array, outer=outer):
                return f"unnest {'outer ' if outer else ''}[{self._expression(array)}]"

    def _join(self, join: Join) -> str:
        pairs = (
            f"{self._expression(left)} = {self._expression(right)}"
            for left, right in zip(join.left_keys, join.right_keys, strict=True)
        )
        residual = "" if join.residual is None else f" where {self._expression(join.residual)}"
        return f"{join.kind.value} join on [{', '.join(pairs)}]{residual} → [{self._columns(join.columns)}]"

    def _order(self, keys: tuple[SortKey, ...]) -> str:
        return ", ".join(
            f"{self._expression(key.expression)} {'asc' if key.ascending else 'desc'}"
            f" nulls {'first' if key.nulls_first else 'last'}"
            for key in keys
        )

    def _columns(self, columns: tuple[Column, ...]) -> str:
        return ", ".join(f"{self._expression(c)} {c.type}{'?' if c.nullable else ''}" for c in columns)

    def _named(self, outputs: tuple[Named, ...]) -> str:
        return ", ".join(map(self._one, outputs))

    def _one(self, named: Named) -> str:
        expression = self._expression(named.expression)
        if isinstance(named.expression, Column) and named.expression.id == named.column.id:
            return expression
        return f"{expression} as {self._columns((named.column,))}"

    def _expression(self, expression: Expression) -> str:
        match expression:
            case Column():
                number = self._numbers.setdefault(expression.id, len(self._numbers) + 1)
                return f"{expression.name}#{number}"
            case Literal():
                return f"{expression!s}:{expression.type}"
            case Call():
                mode = "" if expression.mode is EvalMode.ANSI else f"{expression.mode.value}_"
                target = f" as {expression.type}" if expression.function == "cast" else ""
                return f"{mode}{expression.function}({self._list(expression.arguments)}{target})"
            case Aggregation():
                mode = "" if expression.mode is EvalMode.ANSI else f"{expression.mode.value}_"
                distinct = "distinct " if expression.distinct else ""
                where = "" if expression.filter is None else f" filter {self._expression(expression.filter)}"
                return f"{mode}{expression.function}({distinct}{self._list(expression.arguments)}){where}"

    def _list(self, expressions: tuple[Expression, ...]) -> str:
        return ", ".join(map(self._expression, expressions))


def _source(relation: Source | Input) -> str:
    match relation:
        case Scan():
            return f"scan {relation.label}"
        case Rows():
            return f"rows {len(relation.rows)}"
        case Range():
            return f"range {relation.start} by {relation.step}, {relation.count} numbers"
        case Input():
            return f"input {relation.number}"
