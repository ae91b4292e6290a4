"""Many queries with tops: TPC-H with every top, and random queries whose tops are drawn from their seeds.

A block of cases shares tables. After each block nothing may be left in the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from wallaby.engine import Engine
from wallaby_lab import tpch
from wallaby_lab.differential.campaign import TOGETHER, QueryGroup, group_of, query_of
from wallaby_lab.differential.generated.functions import ExampleFunction
from wallaby_lab.differential.generated.queries import RandomQuery
from wallaby_lab.differential.generated.schemas import RandomTable
from wallaby_lab.differential.shrink import Case, shrink
from wallaby_lab.differential.tops.arena import TopArena, TopCase, TopComparison, kinds
from wallaby_lab.differential.tops.blocks import TpchBlock
from wallaby_lab.differential.tops.catalogue import top_of
from wallaby_lab.differential.tops.leftovers import leftovers
from wallaby_lab.differential.tops.script import random_script, tpch_script

#: Queries whose joins could have more rows are skipped: each row goes through Python.
REACH_MAX: Final = 100_000
_TRIALS: Final = 60


@dataclass(slots=True)
class TopTally:
    """The results of many cases."""

    cases: int = 0
    how: Counter[str] = field(default_factory=Counter)
    #: By the name of a top, how its cases ran.
    tops: dict[str, Counter[str]] = field(default_factory=dict)
    #: What the parts did that ran here.
    parts: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    #: How many blocks left nothing behind.
    clean: int = 0
    #: For each difference: its seed or TPC-H query, what differs, and a script. A block that left something is one too.
    differences: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, more: TopTally) -> None:
        """Add other results."""
        self.cases += more.cases
        self.how += more.how
        for name, counts in more.tops.items():
            self.tops.setdefault(name, Counter()).update(counts)
        self.parts += more.parts
        self.raised += more.raised
        self.reasons += more.reasons
        self.clean += more.clean
        self.differences += more.differences

    def count(self, names: Sequence[str], verdict: TopComparison) -> None:
        """Count a case with tops of these names."""
        self.how[verdict.how] += 1
        if verdict.how in ("large", "invalid"):
            return
        self.cases += 1
        for name in names:
            self.tops.setdefault(name, Counter())[verdict.how] += 1
        self.parts.update(kinds(verdict.parts))
        if verdict.raised:
            self.raised[verdict.raised] += 1
        if verdict.how in ("none", "doubt"):
            self.reasons.update(set(verdict.reasons))


@dataclass(frozen=True, slots=True)
class TopCampaign:
    """The sessions and settings that cases run with."""

    arena: TopArena
    engine: Engine
    #: The directory that contains the scratch directories.
    local: Path
    say: Callable[[str], None]
    trials: int = _TRIALS

    def run_random(self, functions: Sequence[ExampleFunction], seeds: Sequence[int]) -> TopTally:
        """The random queries of some seeds, each with the top of its seed."""
        found = TopTally()
        for number, together in groupby(seeds, key=lambda seed: seed // TOGETHER):
            group = group_of(number)
            self.arena.tables.use(group.tables, group.settings, group.planning)
            try:
                for seed in together:
                    self._ask_random(found, functions, group, seed)
                self._end_block(found, seed)
            finally:
                self.arena.tables.leave()
        return found

    def _ask_random(
        self, found: TopTally, functions: Sequence[ExampleFunction], group: QueryGroup, seed: int
    ) -> None:
        query, top = query_of(seed, group, functions), top_of(seed)
        case = _case(query, str(query.piece), seed)
        verdict = self.arena.ask(case) if query.reach <= REACH_MAX else TopComparison("large")
        found.count([name for name in (top.sink, top.transform) if name], verdict)
        if verdict.different:
            self.say(f"seed {seed}, {top} ({verdict.how}): {verdict.different}")
            text = self._made_small(query, group, seed, verdict)
            self.say(text)
            found.differences.append((seed, verdict.different, text))
            self.arena.tables.use(group.tables, group.settings)

    def _made_small(self, query: RandomQuery, group: QueryGroup, seed: int, verdict: TopComparison) -> str:
        known: tuple[RandomTable, ...] = group.tables

        def still_different(case: Case) -> bool:
            nonlocal known
            if case.tables != known:
                self.arena.tables.use(case.tables, group.settings)
                known = case.tables
            now = self.arena.ask(_case(query, str(case.query), seed))
            alike = ("instead of" in now.different) == ("instead of" in verdict.different)
            return bool(now.different) and alike and "are not all columns" not in now.different

        small = shrink(Case(query.piece, group.tables), still_different, self.trials)
        return random_script(
            _case(query, str(small.query), seed),
            small.tables,
            group.settings,
            group.planning,
            verdict.different,
        )

    def run_tpch(self, block: TpchBlock) -> TopTally:
        """A block of TPC-H, adapted by Spark or not in turn."""
        found = TopTally()
        number = block.query
        for top in block.tops():
            case = TopCase(tpch.query(number), top, tpch.ORDERS[number], wild=False)
            verdict = self.arena.ask(case)
            found.count([top.transform or top.sink], verdict)
            if verdict.different:
                self.say(f"TPC-H {number}, {top} ({verdict.how}): {verdict.different}")
                text = tpch_script(case, verdict.different)
                found.differences.append((number, f"{top}: {verdict.different}", text))
        self._end_block(found, number)
        return found

    def _end_block(self, found: TopTally, number: int) -> None:
        left = leftovers(self.engine, self.local)
        if left:
            self.say(f"left behind at {number}: {', '.join(left)}")
            found.differences.append((number, f"left behind: {', '.join(left)}", ""))
        found.clean += not left


def _case(query: RandomQuery, text: str, seed: int) -> TopCase:
    inexact = frozenset(column.sql for column in query.columns if not column.exact)
    return TopCase(text, top_of(seed), query.order, inexact)
