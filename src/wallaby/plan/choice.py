"""What is worth running here: what it saves Spark, against what handing rows over costs, into the engine or back.

Both are estimated in seconds of one core, from the rows that the planner expects and from rates per row.
`wallaby bench pipelines --part rates` measures the rates (docs/bench-pipelines.md). They only decide between two ways
to the same rows: a sub-plan is taken if it saves clearly more than it costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.lineage.graph import LinkKind
from wallaby.plan.leaf import leaf_number
from wallaby.plan.physical import JoinFragment, PhysicalPlan, ReduceFragment, ScanFragment
from wallaby.relations.relation import Scan
from wallaby.relations.tree import width_bytes

#: A sub-plan that saves less than so many times its cost is left to Spark.
_CLEARLY: Final = 1.2


@dataclass(frozen=True, slots=True)
class Rates:
    """What a row costs, in seconds of one core."""

    #: What Spark needs beyond what the engine needs: to read a row, to bring it to a broadcast table, to exchange it
    #: for a join, and to exchange it for an aggregation, a window or a sort.
    read: float
    probe: float
    join: float
    reduce: float
    #: What a row and a byte cost on their way into Spark's tasks, and a row of Spark's on its way into the engine.
    row: float
    byte: float
    leaf_row: float
    #: What a sub-plan costs however small it is, in seconds during which all cores wait: a query is begun and ended,
    #: tasks connect.
    fixed: float


RATES: Final = Rates(
    read=0.13e-6,
    probe=0.04e-6,
    join=0.47e-6,
    reduce=1.07e-6,
    row=0.034e-6,
    byte=6.0e-9,
    leaf_row=1.5e-6,
    # Measured as 0: beginning and ending take as long as the two stages of Spark's that the part stands for. A part may
    # stand for less.
    fixed=0.06,
)


@dataclass(frozen=True, slots=True)
class PlanWork:
    """What a plan is expected to do: rows by what happens to them, and what is handed over in the end."""

    read: float
    probed: float
    joined: float
    reduced: float
    #: The rows that Spark has to make first, and those that it gets in the end.
    leaf_rows: float
    rows: float
    size_bytes: float
    #: On how many cores.
    channels: int


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


def worth(plan: PhysicalPlan, rates: Rates = RATES, *, to_driver: bool = False) -> Worth:
    """What a plan saves and costs if Spark's tasks read its result, or if it goes `to_driver`, as Spark's own would."""
    work = work_of(plan)
    saves = (
        work.read * rates.read
        + work.probed * rates.probe
        + work.joined * rates.join
        + work.reduced * rates.reduce
    )
    costs = rates.fixed * work.channels + work.leaf_rows * rates.leaf_row
    if to_driver:
        return Worth(saves, costs, work.leaf_rows)
    return Worth(
        saves, costs + work.rows * rates.row + work.size_bytes * rates.byte, work.leaf_rows + work.rows
    )


def work_of(plan: PhysicalPlan) -> PlanWork:
    """What a plan is expected to do."""
    graph, last = plan.graph, len(plan.graph.stages) - 1
    rows = [_rows(plan, stage) for stage in range(last)]
    read = probed = joined = reduced = leaf_rows = 0.0
    for stage, fragment in enumerate(plan.fragments[:last]):
        mains = [link for link in graph.links if link.consumer == stage and link.kind is LinkKind.MAIN]
        sides = [link for link in graph.links if link.consumer == stage and link.kind is LinkKind.SIDE]
        taken = sum(rows[link.producer] for link in mains)
        match fragment:
            case ScanFragment(scan=scan, splits=splits):
                taken = float(sum(split.rows for split in splits))
                if isinstance(scan, Scan) and leaf_number(scan) is not None:
                    leaf_rows += taken
                else:
                    read += taken
            case JoinFragment():
                joined += taken
            case ReduceFragment(combine=None):
                reduced += taken
            case ReduceFragment() if graph.stages[stage].channels > 1:
                reduced += (
                    taken  # without keys there is one channel, and each task of the producer gives it one row
                )
            case _:
                pass
        probed += taken * len(sides) if not isinstance(fragment, ReduceFragment) else 0.0
    makers = {link.producer for link in graph.links if link.consumer == last}
    handed = sum(rows[stage] for stage in makers)
    width = sum(map(width_bytes, plan.columns))
    channels = max(stage.channels for stage in graph.stages)
    return PlanWork(read, probed, joined, reduced, leaf_rows, handed, handed * width, channels)


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
