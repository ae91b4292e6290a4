"""Many random queries, each from its own seed: the same seed always gives the same query over the same rows.

Some queries share their tables. A difference is reduced, and kept with a script that shows it.
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

#: How many queries share tables and settings.
TOGETHER: Final = 25
#: Queries whose joins could have more rows are skipped, because they would take minutes.
REACH_MAX: Final = 1_000_000
_TRIALS: Final = 400


@dataclass(slots=True)
class CampaignResult:
    """The results of a campaign."""

    queries: int = 0
    how: Counter[str] = field(default_factory=Counter)
    raised: int = 0
    #: The number of queries in which a worker was lost.
    struck: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    invalid: Counter[str] = field(default_factory=Counter)
    #: For each difference: its seed, what differs, and the script.
    differences: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, more: CampaignResult) -> None:
        """Add the results of another campaign."""
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
    #: Settings of the engine: with default settings it would never partition joins of such small tables.
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
    """Run the queries of these seeds on both engines; reduce differences in a number of trials.

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
        # The columns of the order may be gone; a wrong order would then go unnoticed, so the case is not used.
        now = arena.ask(str(case.query), query.order)
        alike = ("instead of" in now.different) == ("instead of" in verdict.different)
        return bool(now.different) and alike and "are not all columns" not in now.different

    small = shrink(Case(query.piece, group.tables), still_different, trials)
    return script(str(small.query), small.tables, group.settings, group.planning, verdict.different)
