"""Write a physical plan as text: each stage with what it computes, and where its rows go.

Stages come in their order; a stage's tree is indented below it, outermost step first, as people read queries:

    s0 scan lineitem, partial aggregate: 4 channels, 12 splits
        aggregate by l_returnflag#8: sum(l_quantity#4) as sum#17
          filter le(l_shipdate#10, 1998-09-02)
            input 0: l_quantity#4, l_returnflag#8, l_shipdate#10
      prunes row groups by le(l_shipdate#10, 1998-09-02)
      to s1 by hash(l_returnflag#8)

A stage also shows its estimated number of rows, if there is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wallaby.lineage.graph import LinkKind, Routing, StageKind
from wallaby.plan.leaf import SparkLeaf, leaf_number
from wallaby.plan.physical import (
    CollectFragment,
    Fragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    PhysicalPlan,
    ReduceFragment,
    ScanFragment,
    WriteFragment,
)
from wallaby.relations.expression import Column
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
    WindowCall,
    children_of,
)
from wallaby.relations.target import MANIFEST

_STEP = "  "


def explain(plan: PhysicalPlan, leaves: tuple[SparkLeaf, ...] = ()) -> str:
    """The whole plan, one line per step; scans of Spark leaves show why Spark runs them."""
    lines = (line for stage in range(len(plan.fragments)) for line in _stage(plan, stage, leaves))
    return "\n".join(lines) + "\n"


def output_columns(fragment: Fragment) -> tuple[Column, ...]:
    """What a fragment gives, in order."""
    match fragment:
        case ScanFragment(tree=tree) | JoinFragment(tree=tree) | MapFragment(tree=tree):
            return tree.columns
        case ReduceFragment(finish=finish):
            return finish.columns
        case LimitFragment(columns=columns) | CollectFragment(columns=columns):
            return columns
        case WriteFragment():
            return MANIFEST


def _stage(plan: PhysicalPlan, number: int, leaves: tuple[SparkLeaf, ...]) -> Iterator[str]:
    stage = plan.graph.stages[number]
    size = _counted(stage.channels, "channel")
    if stage.kind is StageKind.READ:
        size += f", {_counted(stage.splits, 'split')}"
    if plan.rows[number] is not None:
        size += f", about {_counted(_rounded(plan.rows[number] or 0), 'row')}"
    yield f"s{number} {plan.labels[number]}: {size}"
    fragment = plan.fragments[number]
    if isinstance(fragment, ScanFragment) and isinstance(fragment.scan, Scan):
        yield from _leaf(fragment.scan, leaves)
    yield from _fragment(fragment)
    for link in range(len(plan.graph.links)):
        if plan.graph.links[link].producer == number:
            yield _link(plan, link)


def _leaf(scan: Scan, leaves: tuple[SparkLeaf, ...]) -> Iterator[str]:
    number = leaf_number(scan)
    for leaf in leaves:
        if leaf.number == number:
            yield f"{_STEP}Spark runs {' ← '.join(leaf.operators)} first; rows and splits are known then"
            yield from (f"{_STEP * 2}{reason}" for reason in leaf.reasons)


def _fragment(fragment: Fragment) -> Iterator[str]:
    match fragment:
        case ScanFragment(tree=tree, conditions=conditions):
            yield from relation_lines(tree, 2)
            if conditions:
                yield f"{_STEP}prunes row groups by {_listed(conditions)}"
        case JoinFragment(tree=tree) | MapFragment(tree=tree):
            yield from relation_lines(tree, 2)
        case ReduceFragment(combine=combine, finish=finish):
            if combine is not None:
                yield f"{_STEP}combine"
                yield from relation_lines(combine, 2)
            yield f"{_STEP}finish"
            yield from relation_lines(finish, 2)
        case LimitFragment(columns=columns, count=count, offset=offset):
            yield f"{_STEP * 2}limit {_all(count)}{_offset(offset)}: {_listed(columns)}"
        case WriteFragment(columns=columns, target=target):
            by = f", partitioned by {', '.join(target.partitions)}" if target.partitions else ""
            yield f"{_STEP * 2}write to files{by}: {_listed(columns)}"
        case CollectFragment(columns=columns):
            yield f"{_STEP * 2}{_listed(columns)}"


def _link(plan: PhysicalPlan, number: int) -> str:
    link = plan.graph.links[number]
    columns = output_columns(plan.fragments[link.producer])
    keys = _listed(columns[position] for position in plan.partition_keys[number])
    phases = len(plan.graph.phases(link.consumer))
    notes = ["as the build side" if link.phase == 0 else "as the probe side"] if phases > 1 else []
    if link.kind is LinkKind.SIDE:
        notes = ["beside its rows"]
    return f"{_STEP}to s{link.consumer} {', '.join([_route(link.routing, keys), *notes])}"


def _route(routing: Routing, keys: str) -> str:
    match routing:
        case Routing.HASH:
            return f"by hash({keys})" if keys else "to its only channel"
        case Routing.BROADCAST:
            return "to every channel"
        case Routing.PASS_THROUGH:
            return "to the same channel"


def relation_lines(relation: Relation, depth: int) -> Iterator[str]:
    """A tree, one line per relation, indented by its depth."""
    yield _STEP * depth + _relation(relation)
    for child in children_of(relation):
        yield from relation_lines(child, depth + 1)


def _relation(relation: Relation) -> str:
    match relation:
        case Scan() | Rows() | Range() | Input():
            return _source(relation)
        case Filter(condition=condition):
            return f"filter {condition}"
        case Project(outputs=outputs):
            return f"project {_listed(outputs)}"
        case Join():
            pairs = zip(relation.left_keys, relation.right_keys, strict=True)
            on = _listed(f"{left} = {right}" for left, right in pairs)
            residual = f" if {relation.residual}" if relation.residual is not None else ""
            return f"{relation.kind.value} join{f' on {on}' if on else ''}{residual}"
        case Aggregate(keys=keys, aggregations=aggregations):
            by = f" by {_listed(keys)}" if keys else ""
            return f"aggregate{by}" + (f": {_listed(aggregations)}" if aggregations else "")
        case Sort(keys=sort_keys):
            return f"sort by {_listed(sort_keys)}"
        case Limit(count=count, offset=offset):
            return f"limit {_all(count)}{_offset(offset)}"
        case Single():
            return "single row"
        case Window(partition=partition, order=order, calls=calls):
            by = f" by {_listed(partition)}" if partition else ""
            ordered = f" in the order of {_listed(order)}" if order else ""
            return f"window{by}{ordered}: {_listed(map(_call, calls))}"
        case Expand() | Unnest():
            return _multiplied(relation)
        case Union(columns=columns):
            return f"union: {_listed(columns)}"


def _multiplied(relation: Expand | Unnest) -> str:
    match relation:
        case Expand(projections=projections, columns=columns):
            return f"expand to {_listed(columns)}: {'; '.join(map(_listed, projections))}"
        case Unnest(array=array, outer=outer):
            new = relation.columns[len(relation.kept) :]
            return f"unnest {'outer ' if outer else ''}{array}: {_listed(new)}"


def _source(relation: Source | Input) -> str:
    match relation:
        case Scan(label=label, columns=columns):
            return f"scan {label}: {_listed(columns)}"
        case Rows(rows=rows, columns=columns):
            return f"{_counted(len(rows), 'row')}: {_listed(columns)}"
        case Range(start=start, step=step, count=count):
            return f"{_counted(count, 'number')} from {start} by {step}: {_listed(relation.columns)}"
        case Input(number=number, columns=columns):
            return f"input {number}: {_listed(columns)}"


def _call(call: WindowCall) -> str:
    frame = call.frame
    ends = (
        f"{frame.unit.value} {'all' if frame.begin is None else frame.begin}"
        f"..{'all' if frame.end is None else frame.end}"
    )
    nulls = " ignoring nulls" if call.ignore_nulls else ""
    return f"{call.function}{nulls} over {ends} as {call.column}"


def _listed(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rounded(rows: int) -> int:
    """A number rounded to the precision that an estimate has."""
    return int(float(f"{rows:.1e}"))


def _all(count: int | None) -> str:
    return "all" if count is None else str(count)


def _offset(offset: int) -> str:
    return f" after {offset}" if offset else ""
