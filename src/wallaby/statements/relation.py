"""Write relations as one SELECT: each relation is a subquery, each column is named by its id, each input is a table.

Inside a statement no relation has a column twice; `result_columns` lists the columns of the result, and the caller
restores repeated columns. Rows without columns have the column `rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wallaby.errors import InternalError
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Named, walk
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
from wallaby.relations.tree import expressions_of
from wallaby.relations.types import INTEGER, array
from wallaby.sql.types import ROWS_ONLY, duckdb_type, is_carried
from wallaby.sql.words import (
    TOO_MANY_ROWS,
    case,
    cast,
    column_identifier,
    field_sql,
    identifier,
    names_of,
    with_signs,
    without_signs,
)
from wallaby.statements.expression import (
    Resolve,
    aggregation_sql,
    expression_sql,
    filter_sql,
    key_sql,
    output_sql,
    plain_column,
    supports,
)
from wallaby.statements.window import order_sql, plain_parts, window_reason, window_sql

_JOINS = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "SEMI JOIN",
    JoinKind.ANTI: "ANTI JOIN",
    JoinKind.CROSS: "INNER JOIN",
}


def input_name(number: int) -> str:
    """The table that holds an input's rows."""
    return f"input_{number}"


def result_columns(relation: Relation) -> tuple[Column, ...]:
    """The columns of the statement of a relation, each once."""
    return tuple({column.id: column for column in relation.columns}.values())


def relation_sql(relation: Relation) -> str:
    """The SELECT of a relation that `relation_reason` accepts."""
    match relation:
        case Input():
            return _select(_list(relation.columns), identifier(input_name(relation.number)))
        case Filter() | Project() | Sort():
            return _plain(relation)
        case Join():
            return _join(relation)
        case Aggregate():
            return _aggregate(relation)
        case Limit():
            return _limit(relation)
        case Single():
            return _single(relation)
        case Expand():
            return _expand(relation)
        case Unnest():
            return _unnest(relation)
        case Window():
            return _window(relation)
        case Union():
            return _union(relation)
        case Scan() | Rows() | Range():
            raise InternalError("A statement cannot read a source: its rows come as an input.")


def inputs_of(relation: Relation) -> Iterator[Input]:
    """All inputs of a tree."""
    if isinstance(relation, Input):
        yield relation
    for child in children_of(relation):
        yield from inputs_of(child)


def relation_reason(relation: Relation) -> str | None:
    """Why a relation of a tree cannot be computed here as on Spark; None if all can."""
    for child in children_of(relation):
        reason = relation_reason(child)
        if reason is not None:
            return reason
    odd = [column for column in relation.columns if not is_carried(column.type)]
    if odd:
        return f"the type {odd[0].type} of {odd[0]} is not supported"
    if isinstance(relation, Window):
        reason = window_reason(relation)
        if reason is not None:
            return reason
        return next(
            (reason for part in plain_parts(relation) if (reason := supports(part)) is not None), None
        )
    return next((reason for part in expressions_of(relation) if (reason := supports(part)) is not None), None)


# ---------------------------------------------------------------------------------------------------- pieces
def _select(outputs: str, source: str) -> str:
    return f"SELECT {outputs} FROM {source}"  # noqa: S608 - from typed trees, identifiers quoted


def _over(outputs: str, child: Relation) -> str:
    return _select(outputs, f"({relation_sql(child)}) AS t")


def _list(columns: Sequence[Column]) -> str:
    return ", ".join(names_of(columns)) or identifier(ROWS_ONLY)


def _named(outputs: Sequence[Named], resolve: Resolve = plain_column) -> str:
    written = {
        named.column.id: f"{output_sql(named.expression, resolve)} AS {column_identifier(named.column.id)}"
        for named in outputs
    }
    return ", ".join(written.values()) or f"CAST(NULL AS TINYINT) AS {identifier(ROWS_ONLY)}"


def _renamed(child: Relation, columns: Sequence[Column]) -> str:
    """A union's child: its columns take the union's ids by position."""
    pairs = zip(columns, child.columns, strict=True)
    return _over(_named([Named(column, source) for column, source in pairs]), child)


def _join(join: Join) -> str:
    left, right = (frozenset(column.id for column in side.columns) for side in (join.left, join.right))

    def either(column: Column) -> str:
        if column.id in left and column.id in right:
            raise InternalError(f"{column} is on both sides of a join.")
        return _qualified("l" if column.id in left else "r", column)

    pairs = zip(join.left_keys, join.right_keys, strict=True)
    conditions = [
        f"{expression_sql(a, lambda column: _qualified('l', column))} = "
        f"{expression_sql(b, lambda column: _qualified('r', column))}"
        for a, b in pairs
    ]
    if join.residual is not None:
        conditions.append(expression_sql(join.residual, either))
    on = " AND ".join(conditions) or "TRUE"
    lefts, rights = f"({relation_sql(join.left)}) AS l", f"({relation_sql(join.right)}) AS r"
    if join.kind is JoinKind.EXISTENCE:
        found = f"EXISTS ({_select('1', rights)} WHERE {on})"
        shown = [_qualified("l", column) for column in join.columns[:-1]]
        return _select(", ".join([*shown, f"{found} AS {column_identifier(join.columns[-1].id)}"]), lefts)
    if join.kind is JoinKind.SINGLE:
        return _single_partner(join, lefts, rights, on)
    outputs = {
        column.id: f"{_qualified('l' if column.id in left else 'r', column)} AS {column_identifier(column.id)}"
        for column in join.columns
    }
    shown_columns = ", ".join(outputs.values()) or f"CAST(NULL AS TINYINT) AS {identifier(ROWS_ONLY)}"
    return _select(shown_columns, f"{lefts} {_JOINS[join.kind]} {rights} ON {on}")


def _single_partner(join: Join, lefts: str, rights: str, on: str) -> str:
    """Each left row beside the number of its partners and one of them, whose columns are shown if there is no other."""
    columns = result_columns(join.right)
    places = {
        column.id: without_signs(f"p[2][{place + 1}]", column.type) for place, column in enumerate(columns)
    }
    # DuckDB's first keeps a row as a sort key, in which a zero has no sign.
    packed = ", ".join(with_signs(_qualified("r", column), column.type) for column in columns) or "NULL"
    found = _select(f"row(count(*), first(row({packed})))", rights)
    beside = _select(f"l.*, ({found} WHERE {on}) AS p", lefts)
    ours = frozenset(column.id for column in join.left.columns)
    shown = {
        column.id: f"{column_identifier(column.id) if column.id in ours else places[column.id]} AS "
        f"{column_identifier(column.id)}"
        for column in join.columns
    }
    one = case([("p[1] > 1", TOO_MANY_ROWS)], "TRUE")
    return f"{_select(', '.join(shown.values()), f'({beside}) AS s')} WHERE {one}"


def _single(single: Single) -> str:
    """The only row: an aggregation without keys gives a row even if its child has none."""
    values = []
    for column in {column.id: column for column in single.columns}.values():
        name = column_identifier(column.id)
        kept = with_signs(name, column.type) if column.type.is_nested else name
        first = without_signs(f"first({kept})", column.type) if column.type.is_nested else f"first({name})"
        values.append(f"{case([('count(*) > 1', TOO_MANY_ROWS)], first)} AS {name}")
    return _over(", ".join(values), single.child)


def _limit(limit: Limit) -> str:
    # Directly on the sort, not on a subquery, so that DuckDB keeps only the first rows.
    inner = relation_sql(limit.child) if isinstance(limit.child, Sort) else None
    rows = inner or _over(_list(limit.columns), limit.child)
    count = "" if limit.count is None else f" LIMIT {limit.count}"
    return f"{rows}{count} OFFSET {limit.offset}"


def _plain(relation: Filter | Project | Sort) -> str:
    match relation:
        case Project():
            return _over(_named(relation.outputs), relation.child)
        case Filter(condition=condition):
            return f"{_over(_list(relation.columns), relation.child)} WHERE {filter_sql(condition)}"
        case Sort(keys=keys):
            return f"{_over(_list(relation.columns), relation.child)} ORDER BY {order_sql(keys)}"


def _union(union: Union) -> str:
    return " UNION ALL ".join(f"({_renamed(child, union.columns)})" for child in union.children)


def _window(window: Window) -> str:
    return _over(", ".join([*names_of(window.child.columns), *window_sql(window)]), window.child)


def _expand(expand: Expand) -> str:
    """Combine each row with the numbers of all projections; the number selects the expressions to compute."""
    numbers = ", ".join(f"({number})" for number in range(len(expand.projections)))
    shown = []
    for place, column in enumerate(expand.columns):
        values = [output_sql(projection[place]) for projection in expand.projections]
        pairs = [(f"e.n = {number}", value) for number, value in enumerate(values)]
        value = values[0] if len(set(values)) == 1 else cast(case(pairs), column.type)
        shown.append(f"{value} AS {column_identifier(column.id)}")
    source = f"({relation_sql(expand.child)}) AS t CROSS JOIN (VALUES {numbers}) AS e(n)"
    return _select(", ".join(shown), source)


def _unnest(unnest: Unnest) -> str:
    """Compute the array once, then its elements with their positions, then their fields."""
    listed = [*names_of(unnest.kept)]
    begin = _over(", ".join([*listed, f"{expression_sql(unnest.array)} AS a"]), unnest.child)
    places = f"CAST(range(len(a)) AS {duckdb_type(array(INTEGER))})"
    elements = "a"
    if unnest.outer:
        none = "a IS NULL OR len(a) = 0"
        elements, places = case([(none, "[NULL]")], "a"), case([(none, "[NULL]")], places)
    numbered = [] if unnest.position is None else [f"unnest({places}) AS p"]
    rows = _select(", ".join([*listed, f"unnest({elements}) AS e", *numbered]), f"({begin}) AS t")
    shown = [] if unnest.position is None else [f"p AS {column_identifier(unnest.position.id)}"]
    values = [field_sql("e", place) for place in range(len(unnest.values))] if unnest.fields else ["e"]
    pairs = zip(values, unnest.values, strict=True)
    shown += [f"{value} AS {column_identifier(column.id)}" for value, column in pairs]
    return _select(", ".join([*listed, *shown]), f"({rows}) AS u")


def _qualified(side: str, column: Column) -> str:
    return f"{side}.{column_identifier(column.id)}"


def _aggregate(aggregate: Aggregate) -> str:
    """Two levels: keys and bare aggregations inside, expressions over them outside."""
    bare = list(
        dict.fromkeys(
            part
            for named in aggregate.aggregations
            for part in walk(named.expression)
            if isinstance(part, Aggregation)
        )
    )
    inner = {
        named.column.id: f"{key_sql(named.expression)} AS {column_identifier(named.column.id)}"
        for named in aggregate.keys
    }
    keys = len(inner)
    made = {part: f"a{number}" for number, part in enumerate(bare)}
    written = [
        *inner.values(),
        *(f"{aggregation_sql(part)} AS {identifier(name)}" for part, name in made.items()),
    ]
    grouping = f" GROUP BY {', '.join(str(position) for position in range(1, keys + 1))}" if keys else ""
    shown = ", ".join(written) or f"count(*) AS {identifier(ROWS_ONLY)}"
    groups = _over(shown, aggregate.child) + grouping
    known = {named.expression: column_identifier(named.column.id) for named in aggregate.keys}
    known |= {part: identifier(name) for part, name in made.items()}
    outputs = [column_identifier(column_id) for column_id in inner]
    outputs += {
        named.column.id: f"{_computed(named.expression, known)} AS {column_identifier(named.column.id)}"
        for named in aggregate.aggregations
        if named.column.id not in inner
    }.values()
    return _select(
        ", ".join(outputs) or f"CAST(NULL AS TINYINT) AS {identifier(ROWS_ONLY)}", f"({groups}) AS g"
    )


def _computed(expression: Expression, known: dict[Expression, str]) -> str:
    """The SQL of an aggregation's output, in which keys and aggregations are columns of the inner level."""
    replaced = _replace(expression, known)
    return output_sql(replaced, lambda column: column.name if column.id < 0 else plain_column(column))


def _replace(expression: Expression, known: dict[Expression, str]) -> Expression:
    if expression in known:
        return Column(-1, known[expression], expression.type, nullable=True)
    if isinstance(expression, Call):
        arguments = tuple(_replace(argument, known) for argument in expression.arguments)
        return Call(expression.function, arguments, expression.type, expression.nullable, expression.mode)
    return expression
