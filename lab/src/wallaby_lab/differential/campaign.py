"""Many random queries, each from its own seed: the same seed is the same query over the same rows, whenever it is run.

Some queries share their tables. A difference is made small, and kept with the script that shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Final

from wallaby_lab.differential.arena import Comparison, ComparisonArena
from wallaby_lab.differential.generated.expressions import Expressions
from wallaby_lab.differential.generated.functions import ExampleFunction
from wallaby_lab.differential.generated.queries import Queries, RandomQuery
from wallaby_lab.differential.generated.schemas import RandomTable, random_tables
from wallaby_lab.differential.losses import Losses
from wallaby_lab.differential.script import script
from wallaby_lab.differential.shrink import Case, shrink

#: As many queries share tables and settings.
TOGETHER: Final = 25
#: What could join to more rows is not asked: minutes would go by.
REACH_MAX: Final = 1_000_000
_TRIALS: Final = 400


@dataclass(slots=True)
class CampaignResult:
    """What a campaign has seen."""

    queries: int = 0
    how: Counter[str] = field(default_factory=Counter)
    raised: int = 0
    #: In how many a worker was lost.
    struck: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    invalid: Counter[str] = field(default_factory=Counter)
    #: For each difference its seed, what is different, and the script.
    differences: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, more: CampaignResult) -> None:
        """Count what another one has seen as well."""
        self.queries += more.queries
        self.how += more.how
        self.raised += more.raised
        self.struck += more.struck
        self.reasons += more.reasons
        self.invalid += more.invalid
        self.differences += more.differences


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Tables and settings that some queries share."""

    tables: tuple[RandomTable, ...]
    settings: dict[str, str]
    #: Settings of the engine: its tables are so small that it would never send both sides of a join, else.
    planning: dict[str, int]

    @property
    def ansi(self) -> bool:
        """Do errors count?"""
        return self.settings["spark.sql.ansi.enabled"] == "true"


def group_of(number: int) -> QueryGroup:
    """The tables and settings of a group of queries."""
    random = Random(f"group {number}")
    ansi = random.random() < 0.7
    zone = random.choice(("UTC", "America/Los_Angeles", "Asia/Kolkata"))
    tables = random_tables(random)
    planning = {
        "broadcast": random.choice((0, 128 << 20)),
        "split": random.choice((1, 64 << 20, 64 << 20)),
    }
    return QueryGroup(
        tables,
        {"spark.sql.ansi.enabled": str(ansi).lower(), "spark.sql.session.timeZone": zone},
        planning,
    )


def query_of(seed: int, group: QueryGroup, functions: Sequence[ExampleFunction]) -> RandomQuery:
    """The query of a seed."""
    random = Random(f"query {seed}")
    return Queries(random, group.tables, Expressions(random, functions, ansi=group.ansi)).query()


def parts(seeds: range) -> Iterator[range]:
    """The seeds of a campaign by their groups."""
    for number in range(seeds.start // TOGETHER, -(-seeds.stop // TOGETHER)):
        yield range(max(seeds.start, number * TOGETHER), min(seeds.stop, (number + 1) * TOGETHER))


def run(
    arena: ComparisonArena,
    functions: Sequence[ExampleFunction],
    seeds: Sequence[int],
    say: Callable[[str], None],
    trials: int = _TRIALS,
    losses: Losses | None = None,
) -> CampaignResult:
    """The queries of these seeds, by both engines; a difference is made small in so many trials.

    With losses, a worker is lost in each.
    """
    found = CampaignResult()
    try:
        for number, together in groupby(seeds, key=lambda seed: seed // TOGETHER):
            group = group_of(number)
            arena.use(group.tables, group.settings, group.planning)
            for seed in together:
                query = query_of(seed, group, functions)
                if losses is not None:
                    losses.order(seed)
                verdict = (
                    arena.ask(str(query.piece), query.order)
                    if query.reach <= REACH_MAX
                    else Comparison("large")
                )
                found.struck += losses is not None and losses.end()
                _count(found, verdict)
                if verdict.different:
                    say(f"seed {seed} ({verdict.how}): {verdict.different}")
                    text = _made_small(arena, query, group, verdict, trials)
                    say(text)
                    found.differences.append((seed, verdict.different, text))
                    arena.use(group.tables, group.settings)
    finally:
        arena.leave()
    return found


def _count(found: CampaignResult, verdict: Comparison) -> None:
    if verdict.how == "invalid":
        found.invalid.update(verdict.reasons)
        return
    found.how[verdict.how] += 1
    if verdict.how == "large":
        return
    found.queries += 1
    found.raised += verdict.raised
    found.reasons.update(set(verdict.reasons))


def _made_small(
    arena: ComparisonArena, query: RandomQuery, group: QueryGroup, verdict: Comparison, trials: int
) -> str:
    known: tuple[RandomTable, ...] = group.tables

    def still_different(case: Case) -> bool:
        nonlocal known
        if case.tables != known:
            arena.use(case.tables, group.settings)
            known = case.tables
        # The order's columns may be gone; rows that are out of order are then not noticed, and the case is not taken.
        now = arena.ask(str(case.query), query.order)
        alike = ("instead of" in now.different) == ("instead of" in verdict.different)
        return bool(now.different) and alike and "are not all columns" not in now.different

    small = shrink(Case(query.piece, group.tables), still_different, trials)
    return script(str(small.query), small.tables, group.settings, group.planning, verdict.different)
