"""Preflight: what leaves have to be worth, and that a bug in planning is a reason."""

from __future__ import annotations

from wallaby.frontend.preflight import LeafChecks, guarded
from wallaby.plan.leaf import SparkLeaf
from wallaby.relations.expression import Column
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation, Sort
from wallaby.relations.types import LONG

ODD = Reason("UnknownSource", "Wallaby cannot read it")
LEAF = SparkLeaf(0, (0,), (1,), (ODD,), ("UnknownSource",), 1 << 20)
SCAN = LEAF.scan((Column(1, "a", LONG, nullable=True),))


def reasons(
    relation: Relation,
    minimum_bytes: int,
    leaves: tuple[SparkLeaf, ...] = (LEAF,),
    missing: Reason | None = None,
) -> list[str]:
    """The reasons against leaves, without those of the leaf itself."""
    found = LeafChecks(lambda: missing, minimum_bytes).leaf_reasons(relation, leaves)
    assert not found or found[0] == ODD
    return [str(reason) for reason in found[1:]]


def test_leaves_need_a_directory_work_above_them_and_enough_to_read() -> None:
    sort = Sort(SCAN, ())
    assert reasons(sort, 1 << 20) == []
    assert reasons(sort, 1 << 20, missing=Reason("Spark leaf", "no directory")) == [
        "Spark leaf: no directory"
    ]
    assert reasons(SCAN, 0) == ["Spark leaf: there is no join, aggregation or sort above it"]
    assert "a hand-over would not pay" in reasons(sort, 1 << 30)[0]


def test_a_query_without_leaves_needs_none_of_it() -> None:
    assert reasons(SCAN, 1 << 30, leaves=()) == []


def test_a_bug_in_planning_leaves_the_query_to_spark() -> None:
    def broken() -> tuple[Reason, ...]:
        raise KeyError(3)

    (reason,) = guarded(broken, lambda found: found)
    assert str(reason) == "plan: planning it failed with KeyError: 3 (please report it with the query)"
