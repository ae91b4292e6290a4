"""What a stage does, in the words of Spark's users: for messages that name the operator at fault."""

from __future__ import annotations

from wallaby.plan.physical import (
    CollectFragment,
    Fragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    ReduceFragment,
    ScanFragment,
    WriteFragment,
)
from wallaby.relations.relation import Aggregate, Join, Limit, Relation, Sort, Window, children_of


def operator_word(fragment: Fragment) -> str:
    """The operator of a fragment; of several in one stage, the one that holds most rows."""
    match fragment:
        case ScanFragment():
            return "scan"
        case JoinFragment():
            return "join"
        case ReduceFragment(finish=finish):
            return _reducing(finish)
        case MapFragment():
            return "exchange"
        case LimitFragment():
            return "limit"
        case WriteFragment():
            return "write"
        case CollectFragment():
            return "collect"


def _reducing(relation: Relation) -> str:
    """The lowest operator of a tree that needs all rows: what it collects is most."""
    for child in children_of(relation):
        word = _reducing(child)
        if word != "exchange":
            return word
    match relation:
        case Join():
            return "join"
        case Window():
            return "window"
        case Aggregate():
            return "aggregation"
        case Sort():
            return "sort"
        case Limit():
            return "limit"
        case _:
            return "exchange"
