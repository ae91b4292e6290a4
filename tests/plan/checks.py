"""What holds for every physical plan, whatever the query."""

from __future__ import annotations

from wallaby.lineage.graph import LinkKind, Routing
from wallaby.plan.explain import output_columns
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
from wallaby.relations.expression import Column, columns_in
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Input, Join, Relation, Scan, children_of
from wallaby.relations.tree import expressions_of, ids_of


def check_plan(plan: PhysicalPlan) -> None:
    """Every needed column is produced, inputs are what arrives, keys of both join sides agree."""
    stages = len(plan.graph.stages)
    assert stages == len(plan.fragments) == len(plan.labels)
    assert len(plan.graph.links) == len(plan.partition_keys)
    for stage, fragment in enumerate(plan.fragments):
        for tree in trees_of(fragment):
            check_tree(tree)
            for leaf in inputs_of(tree):
                check_input(plan, stage, leaf)
        check_links_into(plan, stage)
    collect = plan.fragments[-1]
    assert isinstance(collect, CollectFragment)
    assert [(c.name, c.type) for c in collect.columns] == [(c.name, c.type) for c in plan.columns]


def trees_of(fragment: Fragment) -> tuple[Relation, ...]:
    match fragment:
        case ScanFragment(tree=tree) | JoinFragment(tree=tree) | MapFragment(tree=tree):
            return (tree,)
        case ReduceFragment(combine=combine, finish=finish):
            if combine is not None:
                assert typed(combine.columns) == typed(next(inputs_of(combine)).columns), (
                    "combine changes no columns"
                )
            return (finish,) if combine is None else (combine, finish)
        case LimitFragment() | WriteFragment() | CollectFragment():
            return ()


def typed(columns: tuple[Column, ...]) -> list[tuple[int, object]]:
    return [(column.id, column.type) for column in columns]


def check_tree(relation: Relation) -> None:
    assert not isinstance(relation, Scan), "rows of a scan come as an input"
    assert relation.columns, "rows have at least one column"
    assert len(set(ids_of(relation.columns))) == len(relation.columns), "no column twice"
    there = {column.id for child in children_of(relation) for column in child.columns}
    for expression in expressions_of(relation):
        assert columns_in(expression) <= there, f"{expression} needs what is not there"
    if isinstance(relation, Join):
        left, right = ids_of(relation.left.columns), ids_of(relation.right.columns)
        shown = (*left, *right)
        if relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
            shown = left
        elif relation.kind is JoinKind.EXISTENCE:
            shown = (*left, relation.columns[-1].id)
        assert ids_of(relation.columns) == shown
        assert [k.type for k in relation.left_keys] == [k.type for k in relation.right_keys]
    for child in children_of(relation):
        check_tree(child)


def inputs_of(relation: Relation):  # type: ignore[no-untyped-def]
    if isinstance(relation, Input):
        yield relation
    for child in children_of(relation):
        yield from inputs_of(child)


def check_input(plan: PhysicalPlan, stage: int, leaf: Input) -> None:
    fragment, graph = plan.fragments[stage], plan.graph
    mains = [list(links) for links in graph.phases(stage)]
    if isinstance(fragment, ScanFragment):
        if leaf.number == 0:
            assert typed(leaf.columns) == typed(fragment.scan.columns)
            return
        mains = [[]]
    links = (mains + [[side] for side in graph.sides(stage)])[leaf.number]
    for link in links:
        sent = output_columns(plan.fragments[graph.links[link].producer])
        assert typed(leaf.columns) == typed(sent), (
            f"input {leaf.number} of s{stage} is what link {link} brings"
        )


def check_links_into(plan: PhysicalPlan, stage: int) -> None:
    graph = plan.graph
    hashed = []
    for number, link in enumerate(graph.links):
        if link.consumer != stage:
            continue
        keys, sent = plan.partition_keys[number], output_columns(plan.fragments[link.producer])
        assert all(0 <= key < len(sent) for key in keys)
        is_joined = isinstance(plan.fragments[stage], JoinFragment) and link.kind is LinkKind.MAIN
        if link.routing is Routing.HASH:
            assert keys or graph.stages[stage].channels == 1, "only one channel needs no keys"
        assert not is_joined or keys, (
            "a join that is too large for memory is divided by the keys of both sides"
        )
        if link.routing is Routing.HASH or is_joined:
            hashed.append([sent[key].type for key in keys])
        if link.routing is not Routing.HASH:
            assert is_joined or not keys
            assert (link.kind is LinkKind.SIDE) == (link.routing is Routing.BROADCAST)
    assert all(types == hashed[0] for types in hashed), "both sides hash keys of the same types"
