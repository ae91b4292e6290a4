"""Random queries in a row: those whose joins could have too many rows are not asked, and do not count."""

from __future__ import annotations

import math
import re
from typing import Any

from wallaby_lab.differential import campaign
from wallaby_lab.differential.arena import Comparison
from wallaby_lab.differential.generated.functions import ExampleFunction

FUNCTIONS = [
    ExampleFunction("{0} + {1}", ("int", "int"), "int", native=True, risky=True, exact=True),
    ExampleFunction("upper({0})", ("string",), "string", native=True, risky=False, exact=True),
]


class FakeArena:
    """Every query is native, and none is different."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def use(self, *_: object) -> None:
        """Tables are of no concern."""

    def leave(self) -> None:
        """Nor are settings."""

    def ask(self, query: str, _order: object) -> Comparison:
        self.asked.append(query)
        return Comparison("native")


def test_what_could_have_too_many_rows_is_not_asked() -> None:
    arena: Any = FakeArena()
    found = campaign.run(arena, FUNCTIONS, range(400), lambda _line: None)
    assert found.queries == found.how["native"] == len(arena.asked) == 400 - found.how["large"]
    assert 0 < found.how["large"] < 40, "few, and the generator does make some"


def test_seeds_are_parted_by_the_tables_that_they_share_and_counts_add_up() -> None:
    seeds = range(20, 60)
    parts = list(campaign.parts(seeds))
    assert parts == [range(20, 25), range(25, 50), range(50, 60)]
    whole, total = campaign.CampaignResult(), campaign.CampaignResult()
    for target, these in ((whole, [seeds]), (total, parts)):
        for some in these:
            arena: Any = FakeArena()
            target.add(campaign.run(arena, FUNCTIONS, some, lambda _line: None))
    assert whole == total
    assert total.queries == 40 - total.how["large"]


def test_a_query_reaches_the_product_of_its_tables_and_more_if_it_is_joined_with_itself() -> None:
    again = 0
    for seed in range(300):
        group = campaign.group_of(seed // campaign.TOGETHER)
        query = campaign.query_of(seed, group, FUNCTIONS)
        rows = {table.name: max(1, len(table.rows)) for table in group.tables}
        once = math.prod(rows[name] for name in re.findall(r"\b(t\d) n\d+", str(query.piece)))
        again += query.reach > once
        assert query.reach == once or " as (" in str(query.piece)
        assert query.reach >= once
    assert again
