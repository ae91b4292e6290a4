"""Which sub-plans are worth running here: what they save Spark, against what handing their rows over costs.

Both are estimated in seconds of one core, from the rows that the planner expects. The rates are rough, from a few runs
by hand; no command measures them yet (see docs/decisions/0034). They only decide between two ways to the same rows: a
sub-plan is taken if it saves clearly more than it costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.lineage.graph import LinkKind
from wallaby.plan.physical import JoinFragment, PhysicalPlan, ReduceFragment, ScanFragment
from wallaby.relations.tree import width_bytes

#: What Spark needs for a row, in seconds of one core, beyond what the engine needs: to read it, to bring it to a
#: broadcast table, to exchange it for a join, and to exchange it for an aggregation, a window or a sort.
_READ: Final = 0.10e-6
_PROBE: Final = 0.10e-6
_JOIN: Final = 1.20e-6
_REDUCE: Final = 0.60e-6
#: What a row and a byte cost on their way into Spark's tasks.
_ROW: Final = 0.07e-6
_BYTE: Final = 4.0e-9
#: What a sub-plan costs however small it is: a query is begun and ended, tasks connect.
_FIXED: Final = 0.12
#: A sub-plan that saves less than so many times its cost is left to Spark.
_CLEARLY: Final = 1.2


@dataclass(frozen=True, slots=True)
class Worth:
    """What a sub-plan is estimated to save and to cost, in seconds of one core."""

    saves: float
    costs: float
    rows: float

    @property
    def is_taken(self) -> bool:
        """Is it worth running here?"""
        return self.saves > _CLEARLY * self.costs

    def __str__(self) -> str:
        return f"about {self.rows:,.0f} rows to hand over: saves {self.saves:.2f} s, costs {self.costs:.2f} s"


def worth(plan: PhysicalPlan) -> Worth:
    """What a plan saves and costs if Spark reads its result."""
    graph, last = plan.graph, len(plan.graph.stages) - 1
    rows = [_rows(plan, stage) for stage in range(last)]
    saves = 0.0
    for stage, fragment in enumerate(plan.fragments[:last]):
        mains = [link for link in graph.links if link.consumer == stage and link.kind is LinkKind.MAIN]
        sides = [link for link in graph.links if link.consumer == stage and link.kind is LinkKind.SIDE]
        taken = sum(rows[link.producer] for link in mains)
        match fragment:
            case ScanFragment(splits=splits):
                read = float(sum(split.rows for split in splits))
                saves += read * (_READ + len(sides) * _PROBE)
            case JoinFragment():
                saves += taken * (_JOIN + len(sides) * _PROBE)
            case ReduceFragment():
                saves += taken * _REDUCE
            case _:
                saves += taken * len(sides) * _PROBE
    makers = {link.producer for link in graph.links if link.consumer == last}
    handed = sum(rows[stage] for stage in makers)
    width = sum(map(width_bytes, plan.columns))
    return Worth(saves, _FIXED + handed * (_ROW + width * _BYTE), handed)


def _rows(plan: PhysicalPlan, stage: int) -> float:
    """About how many rows a stage gives; as many as it gets, if nobody has guessed."""
    guessed = plan.rows[stage] if stage < len(plan.rows) else None
    if guessed is not None:
        return float(guessed)
    fragment = plan.fragments[stage]
    if isinstance(fragment, ScanFragment):
        return float(sum(split.rows for split in fragment.splits))
    mains = [n for n in plan.graph.links if n.consumer == stage and n.kind is LinkKind.MAIN]
    return max((_rows(plan, link.producer) for link in mains), default=0.0)
