"""Tools for the frozen trees: rebuild with other parts, substitute, choose and arrange columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, Named, walk
from wallaby.relations.functions import AND
from wallaby.relations.join_kind import JoinKind
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
    Union,
    Unnest,
    Window,
    children_of,
)
from wallaby.relations.types import BOOLEAN, DataType, Kind

Rewrite = Callable[[Relation], Relation]

#: Estimated bytes of one value; strings are guessed.
_WIDTHS = {
    Kind.NULL: 1,
    Kind.BOOLEAN: 1,
    Kind.BYTE: 1,
    Kind.SHORT: 2,
    Kind.INTEGER: 4,
    Kind.LONG: 8,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.DECIMAL: 16,
    Kind.DATE: 4,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMP_NTZ: 8,
    Kind.DAY_TIME: 8,
    Kind.YEAR_MONTH: 4,
}
_WIDTH_OTHERWISE = 24
#: The assumed number of elements of an array or a map.
LIST_VALUES = 8


def width_bytes(column: Column) -> int:
    """About how many bytes a value of a column takes in memory."""
    return _type_bytes(column.type)


def _type_bytes(type_: DataType) -> int:
    if type_.is_nested:
        values = 1 if type_.kind is Kind.STRUCT else LIST_VALUES
        return values * sum(map(_type_bytes, type_.children))
    return _WIDTHS.get(type_.kind, _WIDTH_OTHERWISE)


def ids_of(columns: Iterable[Column]) -> tuple[int, ...]:
    """The ids, in order."""
    return tuple(column.id for column in columns)


def kept(columns: Iterable[Column]) -> tuple[Named, ...]:
    """Columns as outputs of a projection that does not change them."""
    return tuple(Named(column, column) for column in columns)


def arrange(relation: Relation, columns: tuple[Column, ...]) -> Relation:
    """The same rows with exactly these columns, in this order."""
    if ids_of(relation.columns) == ids_of(columns):
        return relation
    by_id = {column.id: column for column in relation.columns}
    return Project(relation, kept(by_id[column.id] for column in columns))


def narrow(relation: Relation, needed: frozenset[int]) -> Relation:
    """Drop the columns that are not needed. If none is needed, keep the narrowest so that rows can be counted."""
    return arrange(relation, narrowed(relation.columns, needed))


def narrowed(columns: tuple[Column, ...], needed: frozenset[int]) -> tuple[Column, ...]:
    """The needed ones of some columns, at least one."""
    chosen = tuple(column for column in columns if column.id in needed)
    return chosen or ((min(columns, key=width_bytes),) if columns else ())


def with_children(relation: Relation, children: tuple[Relation, ...]) -> Relation:
    """The same relation over other children, which give the same columns in any order."""
    found = with_equal_children(relation, children)
    return (
        replace(found, columns=join_columns(found, found.left, found.right))
        if isinstance(found, Join)
        else found
    )


def with_equal_children(relation: Relation, children: Sequence[Relation]) -> Relation:
    """The same relation over other children, which give the same columns in the same order."""
    match relation:
        case Scan() | Rows() | Range() | Input():
            return relation
        case Join():
            left, right = children
            return replace(relation, left=left, right=right)
        case Union():
            return replace(relation, children=tuple(children))
        case (
            Filter() | Project() | Aggregate() | Sort() | Limit() | Single() | Expand() | Unnest() | Window()
        ):
            (child,) = children
            return replace(relation, child=child)


def join_columns(join: Join, left: Relation, right: Relation) -> tuple[Column, ...]:
    """The columns of a join over other sides: the left ones, then those that its kind adds."""
    known = {column.id: column for column in join.columns}
    lefts = tuple(known.get(column.id, column) for column in left.columns)
    if join.kind is JoinKind.EXISTENCE:
        return (*lefts, join.columns[-1])
    if not join.kind.shows_right:
        return lefts
    return (*lefts, *(known.get(c.id) or _padded(c, join.kind) for c in right.columns))


def _padded(column: Column, kind: JoinKind) -> Column:
    """A column of the right side of a join, as the join shows it."""
    return replace(column, nullable=True) if kind.pads_right and not column.nullable else column


def rewrite_up(relation: Relation, rule: Rewrite) -> Relation:
    """Apply a rewrite to every relation, children first."""
    children = children_of(relation)
    rewritten = tuple(rewrite_up(child, rule) for child in children)
    same = all(a is b for a, b in zip(children, rewritten, strict=True))
    return rule(relation if same else with_children(relation, rewritten))


def substitute(expression: Expression, replacements: Mapping[Expression, Expression]) -> Expression:
    """Replace parts of an expression, outermost first; replacements are not searched again."""
    if expression in replacements:
        return replacements[expression]
    match expression:
        case Column() | Literal():
            return expression
        case Call():
            arguments = tuple(substitute(a, replacements) for a in expression.arguments)
            return replace(expression, arguments=arguments)
        case Aggregation():
            arguments = tuple(substitute(a, replacements) for a in expression.arguments)
            where = expression.filter
            return replace(
                expression,
                arguments=arguments,
                filter=None if where is None else substitute(where, replacements),
            )


def by_ids(columns: Mapping[int, Expression]) -> Callable[[Expression], Expression]:
    """A function that replaces columns by their ids, whatever their nullability."""

    def apply(expression: Expression) -> Expression:
        found: dict[Expression, Expression] = {
            part: columns[part.id]
            for part in walk(expression)
            if isinstance(part, Column) and part.id in columns
        }
        return substitute(expression, found) if found else expression

    return apply


def is_choice(project: Project) -> bool:
    """Does a projection only select columns, without computing or renaming anything?"""
    return all(named.expression == named.column for named in project.outputs)


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a condition that must all be true."""
    if isinstance(condition, Call) and condition.function == AND:
        return tuple(part for argument in condition.arguments for part in conjuncts(argument))
    return (condition,)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """Combine several conditions into one; None if there are none."""
    whole: Expression | None = None
    for condition in conditions:
        nullable = condition.nullable or (whole is not None and whole.nullable)
        whole = condition if whole is None else Call(AND, (whole, condition), BOOLEAN, nullable)
    return whole


def filtered(relation: Relation, conditions: Iterable[Expression]) -> Relation:
    """Only the rows for which all conditions hold."""
    condition = conjunction(conditions)
    return relation if condition is None else Filter(relation, condition)


def expressions_of(relation: Relation) -> tuple[Expression, ...]:
    """The expressions that a relation itself computes, not those of its children."""
    match relation:
        case Scan() | Rows() | Range() | Input() | Limit() | Single() | Union():
            return ()
        case Expand():
            return tuple(expression for projection in relation.projections for expression in projection)
        case Unnest():
            return (relation.array,)
        case Filter():
            return (relation.condition,)
        case Project():
            return tuple(named.expression for named in relation.outputs)
        case Join():
            residual = () if relation.residual is None else (relation.residual,)
            return (*relation.left_keys, *relation.right_keys, *residual)
        case Aggregate():
            return tuple(named.expression for named in (*relation.keys, *relation.aggregations))
        case Sort():
            return tuple(key.expression for key in relation.keys)
        case Window():
            order = (key.expression for key in relation.order)
            return (*relation.partition, *order, *(call.function for call in relation.calls))


def largest_id(relation: Relation) -> int:
    """The largest column id in a tree; new columns are numbered above it."""
    own = (column.id for column in relation.columns)
    used = (p.id for e in expressions_of(relation) for p in walk(e) if isinstance(p, Column))
    below = (largest_id(child) for child in children_of(relation))
    return max((0, *own, *used, *below))
