"""The rules that rewrite a relation before it is cut into stages, in order.

A rule takes a relation and the statistics of the tables, and returns a relation with the same rows and the same
columns, by id. The order of columns may differ, except below a union; at the root, planning looks columns up by id. One
rule is one file, with fixtures of trees before and after under `tests/plan/fixtures/rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.rules.aggregate_below_joins import aggregate_below_joins
from wallaby.plan.rules.delay_semi_joins import delay_semi_joins
from wallaby.plan.rules.drop_null_checks import drop_null_checks
from wallaby.plan.rules.flip_right_joins import flip_right_joins
from wallaby.plan.rules.narrow_decimals import narrow_decimals
from wallaby.plan.rules.order_joins import order_joins
from wallaby.plan.rules.prune_columns import prune_columns
from wallaby.plan.rules.push_filters import push_filters
from wallaby.plan.rules.push_limits import push_limits
from wallaby.relations.relation import Relation

Rule = Callable[[Relation, Statistics], Relation]

RULES: Final[tuple[Rule, ...]] = (
    flip_right_joins,
    push_limits,
    push_filters,
    drop_null_checks,
    order_joins,
    delay_semi_joins,
    aggregate_below_joins,
    narrow_decimals,
    prune_columns,
)
