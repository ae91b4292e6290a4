"""Grouping sets that aggregate before they multiply rows.

ROLLUP, CUBE and GROUPING SETS repeat every row once for each set (`Expand`) and then aggregate. Where the finest keys
repeat, a task aggregates its rows by those first. Then only the groups are repeated, and each is merged into the
groups of all sets:

    aggregate by a, b, set                      merge by a, b, set
      expand to (a, b, 0), (a, NULL, 1), …  →     expand to (a, b, 0), (a, NULL, 1), …
        rows                                        partial aggregate by a, b
                                                      rows

It needs aggregations that merge, over columns that no set changes. DISTINCT, which Catalyst also turns into an
expansion, has arguments that differ from set to set, so it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wallaby.plan.aggregation import AggregationParts
from wallaby.relations.expression import Column, Named, columns_in
from wallaby.relations.relation import Aggregate, Expand, Relation
from wallaby.relations.tree import by_ids, kept


@dataclass(frozen=True, slots=True)
class EarlyGroups:
    """An aggregation over grouping sets, rewritten to aggregate the rows below the expansion first."""

    parts: AggregationParts
    expand: Expand
    #: The columns below the expansion that any of the sets groups by.
    finest: tuple[Column, ...]
    #: The partial aggregations, over the columns below the expansion.
    partials: tuple[Named, ...]

    def partial(self, child: Relation) -> Relation:
        """Make partial results of all sets from a task's own rows."""
        groups = Aggregate(child, kept(self.finest), self.partials)
        return Aggregate(self.repeated(groups), self.parts.keys, self.parts.merges)

    def repeated(self, groups: Relation) -> Relation:
        """Partial results by the finest keys, once for each set."""
        made = tuple(named.column for named in self.partials)
        used = sorted(set().union(*(columns_in(key.expression) for key in self.parts.keys)))
        places = [at for at, column in enumerate(self.expand.columns) if column.id in used]
        return Expand(
            groups,
            tuple((*(each[at] for at in places), *made) for each in self.expand.projections),
            (*(self.expand.columns[at] for at in places), *made),
        )


def early_groups(aggregate: Aggregate, parts: AggregationParts) -> EarlyGroups | None:
    """Rewrite the aggregation; None if its form does not allow that."""
    expand = aggregate.child
    if not isinstance(expand, Expand) or not parts.mergeable or parts.arguments or not parts.keys:
        return None
    unchanged: dict[int, Column] = {}
    for column, sources in zip(expand.columns, zip(*expand.projections, strict=True), strict=True):
        (first, *others) = sources
        if isinstance(first, Column) and all(source == first for source in others):
            unchanged[column.id] = first
    arguments = set().union(*(columns_in(named.expression) for named in parts.partials))
    if not arguments <= unchanged.keys():
        return None
    columns = {column.id: column for column in expand.child.columns}
    keys = set().union(*(columns_in(key.expression) for key in parts.keys))
    grouped = {
        id_: None
        for at, column in enumerate(expand.columns)
        if column.id in keys
        for each in expand.projections
        for id_ in sorted(columns_in(each[at]))
    }
    if not grouped:  # all keys are constants: an aggregation without keys would make a group of no rows
        return None
    below = by_ids(unchanged)
    partials = tuple(replace(named, expression=below(named.expression)) for named in parts.partials)
    return EarlyGroups(parts, expand, tuple(columns[id_] for id_ in grouped), partials)
