"""Relations and physical plans, evaluated row by row in Python: slow, simple, and independent of any kernel.

A row is a dict from column ids to values. `run` executes a plan as the engine would: splits and batches one by
one, rows routed by hash, build sides before probe sides, `combine` applied to odd parts of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from functools import cmp_to_key

from wallaby.lineage.graph import LinkKind, Routing
from wallaby.plan.physical import (
    CollectFragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    PhysicalPlan,
    ReduceFragment,
    RowSplit,
    ScanFragment,
    Split,
    WriteFragment,
)
from wallaby.relations.expression import Aggregation, Call, Column, Expression, Literal, SortKey, walk
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
    Scan,
    Single,
    Sort,
    Source,
    Union,
    Unnest,
    Window,
    WindowCall,
)
from wallaby.relations.relation import Rows as LocalRows
from wallaby.relations.tree import substitute
from wallaby.relations.types import Kind

Value = object
Row = dict[int, Value]
Rows = list[Row]
#: The rows of a scan's split: by file path, by number of the split.
Tables = dict[str, list[Rows]]


# --- expressions -------------------------------------------------------------------------------------------


def _divide(a: Decimal, b: Decimal) -> Decimal:
    return a / b


_STRICT: dict[str, Callable[..., Value]] = {
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "in": lambda a, *values: a in values,
    "not": lambda a: not a,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "add_64": lambda a, b: a + b,
    "subtract_64": lambda a, b: a - b,
    "multiply_64": lambda a, b: a * b,
    "divide": _divide,
    "starts_with": lambda a, b: a.startswith(b),
}


def value_of(expression: Expression, row: Row) -> Value:
    match expression:
        case Column(id=id_):
            return row[id_]
        case Literal(value=value):
            return value
        case Aggregation():
            raise AssertionError("an aggregation outside of an aggregate")
        case Call(function=function, arguments=arguments):
            return _typed(_call(function, [value_of(a, row) for a in arguments]), expression)


def _call(function: str, values: list[Value]) -> Value:
    match function:
        case "and":
            return False if False in values else None if None in values else True
        case "or":
            return True if True in values else None if None in values else False
        case "coalesce":
            return next((value for value in values if value is not None), None)
        case "if":
            return values[1] if values[0] else values[2]
        case "is_null":
            return values[0] is None
        case "is_not_null":
            return values[0] is not None
        case "cast":
            return values[0]
        case _:
            return None if None in values else _STRICT[function](*values)


def _typed(value: Value, expression: Expression) -> Value:
    kind = expression.type.kind
    if value is None or isinstance(value, bool) or kind not in (Kind.DECIMAL, Kind.DOUBLE):
        return value
    if kind is Kind.DOUBLE:
        return float(str(value))
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-expression.type.scale), ROUND_HALF_UP)


def _aggregated(aggregation: Aggregation, rows: Rows) -> Value:
    if aggregation.filter is not None:
        rows = [row for row in rows if value_of(aggregation.filter, row) is True]
    if not aggregation.arguments:
        return len(rows)
    tuples = [tuple(value_of(a, row) for a in aggregation.arguments) for row in rows]
    present = [values for values in tuples if None not in values]
    if aggregation.distinct:
        present = list(dict.fromkeys(present))
    if aggregation.function == "count":
        return len(present)
    if not present:
        return None
    values: list[Decimal] = [values[0] for values in present]  # type: ignore[misc]  # numbers, as far as + goes
    match aggregation.function:
        case "sum":
            return _typed(sum(values[1:], values[0]), aggregation)
        case "avg":
            return _typed(Decimal(str(sum(values[1:], values[0]))) / len(values), aggregation)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case function:
            raise AssertionError(function)


# --- relations ---------------------------------------------------------------------------------------------


def evaluate(relation: Relation, leaf: Callable[[Scan | Input], Rows]) -> Rows:  # noqa: C901 - a case each
    """All rows of a relation, each with exactly its columns."""
    match relation:
        case Scan() | Input():
            return [{c.id: row[c.id] for c in relation.columns} for row in leaf(relation)]
        case LocalRows() | Range():
            return made(relation)
        case Expand(child=child, projections=projections, columns=columns):
            return [
                {c.id: value_of(e, row) for c, e in zip(columns, projection, strict=True)}
                for row in evaluate(child, leaf)
                for projection in projections
            ]
        case Unnest(child=child):
            return [made for row in evaluate(child, leaf) for made in _unnested(relation, row)]
        case Filter(child=child, condition=condition):
            return [row for row in evaluate(child, leaf) if value_of(condition, row) is True]
        case Project(child=child, outputs=outputs):
            return [
                {n.column.id: value_of(n.expression, row) for n in outputs} for row in evaluate(child, leaf)
            ]
        case Join():
            return _join(relation, evaluate(relation.left, leaf), evaluate(relation.right, leaf))
        case Aggregate():
            return _aggregate(relation, evaluate(relation.child, leaf))
        case Sort(child=child, keys=keys):
            compare: Callable[[Row, Row], int] = lambda a, b: _order(keys, a, b)  # noqa: E731 - it carries the type
            return sorted(evaluate(child, leaf), key=cmp_to_key(compare))
        case Limit(child=child, count=count, offset=offset):
            return _limited(evaluate(child, leaf), count, offset)
        case Single(child=child):
            return _single(relation, evaluate(child, leaf))
        case Window(child=child):
            return _window(relation, evaluate(child, leaf))
        case Union(children=children, columns=columns):
            return [
                {to.id: row[own.id] for to, own in zip(columns, child.columns, strict=True)}
                for child in children
                for row in evaluate(child, leaf)
            ]


def _unnested(unnest: Unnest, row: Row) -> Rows:
    assert not unnest.fields, "no plan of these tests takes structs apart"
    found = value_of(unnest.array, row)
    assert found is None or isinstance(found, tuple)
    places: list[tuple[Value, Value]] = list(enumerate(found or ()))
    kept = {column.id: row[column.id] for column in unnest.kept}
    return [
        {**kept, **({} if unnest.position is None else {unnest.position.id: at}), unnest.values[0].id: value}
        for at, value in places or ([(None, None)] if unnest.outer else [])
    ]


def _limited(rows: Rows, count: int | None, offset: int) -> Rows:
    return rows[offset:] if count is None else rows[offset : offset + count]


def made(source: LocalRows | Range) -> Rows:
    if isinstance(source, Range):
        return [{source.column.id: source.start + i * source.step} for i in range(source.count)]
    return [dict(zip((c.id for c in source.columns), row, strict=True)) for row in source.rows]


def _split(source: Source, split: Split | RowSplit, number: int, tables: Tables) -> Rows:
    if isinstance(source, Scan):
        return tables[source.files[0].path][number]
    assert isinstance(split, RowSplit)
    return made(source)[split.first : split.first + split.rows]


def _single(single: Single, rows: Rows) -> Rows:
    assert len(rows) <= 1, "more than one row"
    return rows or [{c.id: None for c in single.columns}]


def _window(window: Window, rows: Rows) -> Rows:
    """Ranks, and aggregations over all rows before the current one and those that tie with it."""
    groups: dict[tuple[Value, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(value_of(key, row) for key in window.partition), []).append(row)
    compare: Callable[[Row, Row], int] = lambda a, b: _order(window.order, a, b)  # noqa: E731 - it carries the type
    return [
        {**row, **{call.column.id: _over(call, row, group, compare) for call in window.calls}}
        for group in groups.values()
        for row in group
    ]


def _over(call: WindowCall, row: Row, group: Rows, compare: Callable[[Row, Row], int]) -> Value:
    if call.function.function == "rank":
        return 1 + sum(compare(other, row) < 0 for other in group)
    assert (call.frame.begin, call.frame.end) == (None, 0)
    return _aggregated(call.function, [other for other in group if compare(other, row) <= 0])


def _join(join: Join, lefts: Rows, rights: Rows) -> Rows:
    def partners(left: Row) -> Rows:
        key = [value_of(k, left) for k in join.left_keys]
        found = [r for r in rights if None not in key and key == [value_of(k, r) for k in join.right_keys]]
        return [r for r in found if join.residual is None or value_of(join.residual, {**left, **r}) is True]

    pairs: list[tuple[Row, Rows]] = [(left, partners(left)) for left in lefts]
    nothing: Row = {c.id: None for c in join.right.columns}
    match join.kind:
        case JoinKind.SEMI:
            return [left for left, found in pairs if found]
        case JoinKind.ANTI:
            return [left for left, found in pairs if not found]
        case JoinKind.LEFT:
            return [{**left, **right} for left, found in pairs for right in found or [nothing]]
        case JoinKind.SINGLE:
            assert all(len(found) <= 1 for _, found in pairs), "more than one partner"
            return [{**left, **right} for left, found in pairs for right in found or [nothing]]
        case JoinKind.EXISTENCE:
            return [{**left, join.columns[-1].id: bool(found)} for left, found in pairs]
        case JoinKind.INNER | JoinKind.CROSS:
            return [{**left, **right} for left, found in pairs for right in found]
        case JoinKind.RIGHT | JoinKind.FULL:
            rest = [nothing] if join.kind is JoinKind.FULL else []
            matched = [{**left, **right} for left, found in pairs for right in found or rest]
            used = {id(right) for _, found in pairs for right in found}
            missing: Row = {c.id: None for c in join.left.columns}
            return matched + [{**missing, **right} for right in rights if id(right) not in used]


def _aggregate(aggregate: Aggregate, rows: Rows) -> Rows:
    groups: dict[tuple[Value, ...], Rows] = {} if aggregate.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(value_of(k.expression, row) for k in aggregate.keys), []).append(row)
    made: Rows = []
    for key, members in groups.items():
        row = dict(zip((k.column.id for k in aggregate.keys), key, strict=True))
        for output in aggregate.aggregations:
            parts = {p for p in walk(output.expression) if isinstance(p, Aggregation)}
            found: dict[Expression, Expression] = {p: Literal(_aggregated(p, members), p.type) for p in parts}
            found |= {
                k.expression: k.column for k in aggregate.keys if not isinstance(k.expression, Aggregation)
            }
            row[output.column.id] = value_of(substitute(output.expression, found), row)
        made.append(row)
    return made


def _order(keys: tuple[SortKey, ...], a: Row, b: Row) -> int:
    for key in keys:
        x, y = value_of(key.expression, a), value_of(key.expression, b)
        if x == y:
            continue
        if x is None or y is None:
            return -1 if (x is None) == key.nulls_first else 1
        return -1 if (x < y) == key.ascending else 1  # type: ignore[operator]  # values of one type
    return 0


# --- plans -------------------------------------------------------------------------------------------------


def run(plan: PhysicalPlan, tables: Tables) -> Rows:
    """What the collector gets, in order."""
    outputs: list[list[Rows]] = []  # by stage, by channel
    for stage in range(len(plan.fragments)):
        channels = range(plan.graph.stages[stage].channels)
        outputs.append([_channel(plan, stage, channel, outputs, tables) for channel in channels])
    return outputs[-1][0]


def _channel(plan: PhysicalPlan, stage: int, channel: int, outputs: list[list[Rows]], tables: Tables) -> Rows:
    sides = [_arrived(plan, link, channel, outputs) for link in plan.graph.sides(stage)]
    phases = [
        [row for link in links for row in _arrived(plan, link, channel, outputs)]
        for links in plan.graph.phases(stage)
    ]
    match plan.fragments[stage]:
        case ScanFragment(scan=scan, splits=splits, tree=tree):
            mine = range(channel, len(splits), plan.graph.stages[stage].channels)
            return _each(
                [_split(scan, splits[i], i, tables) for i in mine], tree, lambda rows: [rows, *sides]
            )
        case JoinFragment(tree=tree):
            return _each(_batches(phases[1]), tree, lambda rows: [phases[0], rows, *sides])
        case MapFragment(tree=tree):
            return _each(_batches(phases[0]), tree, lambda rows: [rows, *sides])
        case ReduceFragment(combine=combine, finish=finish):
            state: Rows = []
            for batch in _batches(phases[0]) if combine is not None else ():
                assert combine is not None
                state = _on(combine, [state + _on(combine, [batch])])
            return _on(finish, [state if combine is not None else phases[0]])
        case LimitFragment(count=count, offset=offset):
            return _limited(phases[0], count, offset)
        case WriteFragment():
            raise AssertionError("only kernels write files")
        case CollectFragment(columns=columns):
            assert all(list(row) == [c.id for c in columns] for row in phases[0]), (
                "columns come in their order"
            )
            return phases[0]


def _arrived(plan: PhysicalPlan, number: int, channel: int, outputs: list[list[Rows]]) -> Rows:
    link, keys = plan.graph.links[number], plan.partition_keys[number]
    channels = plan.graph.stages[link.consumer].channels
    made = outputs[link.producer]
    if link.routing is Routing.PASS_THROUGH:
        return made[channel]
    rows = [row for part in made for row in part]
    if link.routing is Routing.BROADCAST:
        return rows
    assert link.kind is LinkKind.MAIN
    assert keys or channels == 1, "without keys there is one channel to go to"
    return [row for row in rows if hash(tuple(list(row.values())[k] for k in keys)) % channels == channel]


def _each(parts: Iterable[Rows], tree: Relation, inputs: Callable[[Rows], list[Rows]]) -> Rows:
    return [row for part in parts for row in _on(tree, inputs(part))]


def _on(tree: Relation, inputs: list[Rows]) -> Rows:
    def leaf(relation: Scan | Input) -> Rows:
        assert isinstance(relation, Input)
        return inputs[relation.number]

    # Rows leave a stage with their columns in the order of its tree.
    return [{c.id: row[c.id] for c in tree.columns} for row in evaluate(tree, leaf)]


def _batches(rows: Rows) -> list[Rows]:
    return [rows[i : i + 7] for i in range(0, len(rows), 7)] or [[]]
