"""Choose the parts of a Spark plan that run in the TaskManagers: each plan is read once and judged by cost.

Every plan of an enabled session comes here while Spark plans it, so a plan of which no part is taken must cost
little. A part that clearly cannot pay, by the estimates of one walk over it, is not planned. The others are
planned from the relation that was read with the whole plan; Spark is not asked to optimize it again. Only a part
that needs rows from Spark first (leaves) becomes a query of its own, and only if it pays by the estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wallaby.above.subplan import Subplan, text_of
from wallaby.catalyst.jvm import dotted, part_in, plan_in
from wallaby.config.settings import Settings
from wallaby.frontend.planning import nothing_against
from wallaby.frontend.read_query import read_parts
from wallaby.lineage.graph import StageKind
from wallaby.plan.choice import CostBenefit, may_pay, worth
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import has_work, not_worthwhile
from wallaby.plan.physical import PhysicalPlan
from wallaby.plan.planned import Planned
from wallaby.plan.promise import most_worth, prepared_worth
from wallaby.plan.rules.share_subplans import SharedParts
from wallaby.plan.settings import PlanSettings
from wallaby.reading.parts import NativePart
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation
from wallaby.runner import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows that only pass by can be written here, but are not handed over.
_NO_WORK: Final = Reason("part", "it has neither a join nor an aggregation nor a sort")
_LITTLE: Final = Reason("part", "it reads so little that handing its rows over would not pay")
ALWAYS: Final = "always"


@dataclass(frozen=True, slots=True)
class OfferFacts:
    """What Spark says about a plan that it offers, all in one text, because each question would cost a round trip."""

    #: The way to the part whose rows are written, if they may be written here.
    written: str | None
    #: Does this thread want everything to run here that can?
    forced: bool
    #: The session's `spark.wallaby.*` entries.
    entries: dict[str, str]

    @classmethod
    def read(cls, text: str) -> OfferFacts:
        """The text as `SparkAbove.java` writes it."""
        written, forced, *words = text.split("\0")
        return cls(
            None if written == "-" else written,
            forced == "forced",
            dict(zip(words[::2], words[1::2], strict=True)),
        )


@dataclass(frozen=True, slots=True)
class ConsideredPart:
    """A part of a plan, the sub-plan as which it runs here (None if Spark runs it), and a line that says why."""

    part: NativePart
    subplan: Subplan | None
    said: str


class Choosing:
    """Examines one plan that Spark is about to plan."""

    def __init__(
        self,
        java: Any,
        site: Site,
        settings: Settings,
        never: tuple[Reason, ...],
        as_query: Callable[[Any, str], DataFrame],
    ) -> None:
        """`never`: why no rows can stay, if so. `as_query` makes a part a query that Spark does not adapt."""
        self._java = java
        self._site = site
        self._settings = settings
        self._never = never
        self._as_query = as_query

    def considered(self, session: Any, plan: Any, written: str | None) -> Iterator[ConsideredPart]:
        """The largest native parts of a plan. The rows of the part at the path `written` may be written here."""

        def against(part: NativePart) -> Reason | None:
            return self._against(plan, part, is_written=dotted(part.path) == written)

        text = plan_in(session, plan)
        place = None if written is None else tuple(map(int, written.split(".")))
        for part, why in read_parts(text, lambda path: part_in(plan, path), against, place):
            is_written = dotted(part.path) == written
            found = why or self._judged(plan, part, is_written=is_written)
            if isinstance(found, Reason):
                what = type(part.relation).__name__.lower()
                yield ConsideredPart(part, None, f"stays on Spark: {what} ({found.why})")
            else:
                subplan, worth_it = found
                text_here = f"runs in the TaskManagers: {text_of(subplan.physical)} ({worth_it})"
                yield ConsideredPart(part, subplan, text_here)

    def _against(self, plan: Any, part: NativePart, *, is_written: bool) -> Reason | None:
        """The reason to leave a part to Spark that is known before it is planned, if any."""
        if self._never and not is_written:
            return self._never[0]
        if not is_written and not has_work(part.relation):
            return _NO_WORK
        if part.path and not self._java.readsMuch(
            plan, dotted(part.path)
        ):  # the whole plan does: it was offered
            return _LITTLE
        if (
            self._settings.below != ALWAYS
            and not is_written
            and not may_pay(part.relation, self._site.workers)
        ):
            return _LITTLE
        if not part.leaves:
            return None
        return not_worthwhile(part.relation, part.leaves, self._settings.leaf_minimum)

    def _judged(
        self, plan: Any, part: NativePart, *, is_written: bool
    ) -> tuple[Subplan, CostBenefit] | Reason:
        promise = nothing_against if self._settings.below == ALWAYS else partial(_promise, written=is_written)
        physical, reasons = self._site.planner.physical(
            part.relation, self._settings, part.leaves, StageKind.KEEP, promise
        )
        if physical is None:
            return _all_of(reasons)
        found = self._worth(part, physical, is_written=is_written)
        if isinstance(found, Reason) or not part.leaves:
            return found
        df = self._as_query(plan, dotted(part.path))
        planned = self._site.planner.plan(df, self._settings, ending=StageKind.KEEP)
        if planned.physical is None:
            return _all_of(planned.reasons)
        found = self._worth(part, planned.physical, is_written=is_written)
        if isinstance(found, Reason):
            return found
        return replace(found[0], df=df, planned=planned), found[1]

    def _worth(
        self, part: NativePart, physical: PhysicalPlan, *, is_written: bool
    ) -> tuple[Subplan, CostBenefit] | Reason:
        forced = self._settings.below == ALWAYS
        handed = worth(physical)
        found = worth(physical, written=True) if is_written else handed
        if not forced and not found.is_taken:
            return Reason("part", str(found))
        stays = not self._never and has_work(part.relation) and (forced or handed.is_taken)
        planned = Planned(physical, ())
        return Subplan(self._site, self._settings, planned, physical, handed_over=stays), found


def _promise(
    relation: Relation | SharedParts, statistics: Statistics, sizes: PlanSettings, *, written: bool
) -> Reason | None:
    """The reason why a part cannot pay; None if it may. The joins of a prepared part are ordered already."""
    if isinstance(relation, SharedParts):
        found = prepared_worth(relation, statistics, sizes, written=written)
        return None if found.is_taken else Reason("part", str(found))
    found = most_worth(relation, statistics, sizes, written=written)
    return None if found.is_taken else Reason("part", f"even at best, {found}")


def _all_of(reasons: tuple[Reason, ...]) -> Reason:
    return Reason("part", "; ".join(map(str, reasons)))
