"""A query that is a long chain: one table in many splits, and several stateful operators in a row.

Its channels have many tasks, so there are saved states to continue from; and a consumer may have to start further back
than its producer did.
"""

from __future__ import annotations

from random import Random

from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby_lab.simulation.drawn.workload import Operator, Rows, ToyWorkload

_STATEFUL = (Operator.DISTINCT, Operator.DISTINCT, Operator.MAP, Operator.SUM, Operator.SUM)


def draw_chain(random: Random) -> ToyWorkload:
    """Draw a chain of two or three operators; the first passes its input on unchanged."""
    splits = random.randint(8, 14)
    inner = [Operator.DISTINCT, *(random.choice(_STATEFUL) for _ in range(random.choice((1, 1, 2))))]
    table: tuple[Rows, ...] = tuple(
        tuple((random.randrange(40), random.randrange(100)) for _ in range(random.choice((1, 2, 3))))
        for _ in range(splits)
    )
    stages = (
        Stage(StageKind.READ, 2, splits),
        *(Stage(StageKind.EXECUTE, random.choice((1, 2))) for _ in inner),
        Stage(StageKind.COLLECT, 1),
    )
    graph = StageGraph(stages, tuple(Link(stage, stage + 1) for stage in range(len(stages) - 1)))
    return ToyWorkload(graph, (Operator.SCAN, *inner, Operator.COLLECT), {0: table}, limit=1)
