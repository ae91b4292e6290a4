"""Decide which parts of a Spark query pay: what they save Spark, against the cost of handing rows over, in or out.

Both are estimated in seconds of one core, from the rows that the planner expects and from rates per row.
`wallaby bench pipelines --part rates` measures the rates (docs/results/bench-pipelines.md). They only choose between
two ways to the same rows: a sub-plan runs here if it saves clearly more than it costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallaby.lineage.graph import LinkKind
from wallaby.plan.leaf import leaf_number, scans_in
from wallaby.plan.physical import JoinFragment, PhysicalPlan, ReduceFragment, ScanFragment
from wallaby.relations.relation import Aggregate, Join, Relation, Scan, Sort, Window, children_of
from wallaby.relations.tree import width_bytes

#: A sub-plan that saves less than this many times its cost is left to Spark.
_CLEARLY: Final = 1.2
#: The fewest bytes of a field in a text file: a character and what separates it from the next.
_FIELD_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Rates:
    """Costs per row, in seconds of one core."""

    #: The time that Spark needs beyond the engine's: to read a row, to broadcast it, to exchange it for a join, and to
    #: exchange it for an aggregation, a window or a sort.
    read: float
    probe: float
    join: float
    reduce: float
    #: The cost of a row and of a byte that Spark's tasks read, and of a row of Spark's that the engine reads.
    row: float
    byte: float
    leaf_row: float
    #: The time that Spark needs beyond the engine's to write a row and a byte to a file.
    write_row: float
    write_byte: float
    #: The fixed cost of a sub-plan, in seconds during which all cores wait: a query starts and ends, tasks connect.
    fixed: float


RATES: Final = Rates(
    read=0.13e-6,
    probe=0.04e-6,
    join=0.47e-6,
    reduce=1.07e-6,
    row=0.034e-6,
    byte=6.0e-9,
    leaf_row=1.5e-6,
    write_row=0.2e-6,
    write_byte=5.0e-9,
    # Measured as 0: starting and ending a query take as long as the two Spark stages that the part replaces. A part may
    # replace fewer.
    fixed=0.06,
)


@dataclass(frozen=True, slots=True)
class PlanWork:
    """The expected work of a plan: rows by operation, and the rows that are handed over at the end."""

    read: float
    probed: float
    joined: float
    reduced: float
    #: The rows that Spark has to compute first, and those that it gets at the end.
    leaf_rows: float
    rows: float
    size_bytes: float
    #: The number of cores.
    channels: int


@dataclass(frozen=True, slots=True)
class CostBenefit:
    """The estimated savings and costs of a sub-plan, in seconds of one core."""

    saves: float
    costs: float
    rows: float

    @property
    def is_taken(self) -> bool:
        """Does it pay to run the sub-plan here?"""
        return self.saves > _CLEARLY * self.costs

    def __str__(self) -> str:
        return f"about {self.rows:,.0f} rows to hand over: saves {self.saves:.2f} s, costs {self.costs:.2f} s"


def worth(
    plan: PhysicalPlan, rates: Rates = RATES, *, to_driver: bool = False, written: bool = False
) -> CostBenefit:
    """Estimate what a plan saves and costs.

    By default Spark's tasks read the result. With `to_driver` it goes to the driver, as Spark's own result would; with
    `written`, whoever computes it writes it to files.
    """
    return worth_of(work_of(plan), rates, to_driver=to_driver, written=written)


def worth_of(
    work: PlanWork, rates: Rates = RATES, *, to_driver: bool = False, written: bool = False
) -> CostBenefit:
    """Estimate what this work saves and costs; the options are those of `worth`."""
    saves = (
        work.read * rates.read
        + work.probed * rates.probe
        + work.joined * rates.join
        + work.reduced * rates.reduce
    )
    costs = rates.fixed * work.channels + work.leaf_rows * rates.leaf_row
    if to_driver:
        return CostBenefit(saves, costs, work.leaf_rows)
    if written:
        saves += work.rows * rates.write_row + work.size_bytes * rates.write_byte
        return CostBenefit(saves, costs, work.leaf_rows)
    return CostBenefit(
        saves, costs + work.rows * rates.row + work.size_bytes * rates.byte, work.leaf_rows + work.rows
    )


def may_pay(relation: Relation, channels: int, rates: Rates = RATES) -> bool:
    """Can it pay to run a part that reads only text files here, as far as their sizes tell?

    To know how many rows such a file has, it must be read. So this is asked first, with as many rows as fit into it.
    """
    scans = scans_in(relation)
    if not scans or not all(scan.format.has_lines for scan in scans):
        return True
    lines = (
        (file.size_bytes, _FIELD_BYTES * max(len(scan.names), 1)) for scan in scans for file in scan.files
    )
    rows = sum(size_bytes / line_bytes for size_bytes, line_bytes in lines)
    saves = rows * (rates.read + _operations(relation) * max(rates.join, rates.reduce))
    return saves > _CLEARLY * rates.fixed * channels


def _operations(relation: Relation) -> int:
    """How often a row may be joined, aggregated or sorted."""
    here = isinstance(relation, Join | Aggregate | Sort | Window)
    return here + max(map(_operations, children_of(relation)), default=0)


def work_of(plan: PhysicalPlan) -> PlanWork:
    """Estimate the work of a plan."""
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
    """Estimate the output rows of a stage; without an estimate, as many as its input rows."""
    guessed = plan.rows[stage] if stage < len(plan.rows) else None
    if guessed is not None:
        return float(guessed)
    fragment = plan.fragments[stage]
    if isinstance(fragment, ScanFragment):
        return float(sum(split.rows for split in fragment.splits))
    mains = [n for n in plan.graph.links if n.consumer == stage and n.kind is LinkKind.MAIN]
    return max((_rows(plan, link.producer) for link in mains), default=0.0)
