"""Find relations that cannot be planned, before planning begins, and list all reasons at once."""

from __future__ import annotations

from collections.abc import Iterator

from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Input, Join, Relation, Scan, children_of


def unplannable(relation: Relation, statistics: Statistics) -> tuple[Reason, ...]:
    """Why a relation cannot be planned, outermost first; empty if it can."""
    return tuple(dict.fromkeys(_reasons(relation, statistics)))


def _reasons(relation: Relation, statistics: Statistics) -> Iterator[Reason]:
    match relation:
        case Join():
            yield from _of_join(relation)
        case Scan() if statistics.of(relation) is None:
            yield Reason(f"Scan {relation.label}".rstrip(), "nothing is known of its files")
        case Input():
            yield Reason(f"Input {relation.number}", "it is part of a stage, not of a query")
        case _:
            pass
    for child in children_of(relation):
        yield from _reasons(child, statistics)


def _of_join(join: Join) -> Iterator[Reason]:
    what = f"Join ({join.kind.value})"
    for left, right in zip(join.left_keys, join.right_keys, strict=True):
        if left.type != right.type:
            yield Reason(
                what,
                f"its keys {left}: {left.type} and {right}: {right.type} differ in type",
                "cast one of them",
            )
