"""Run-time filters: the keys of one side of a join filter a scan of the other, before its rows are moved.

Where few keys of a side can find a partner, that side's scan is joined with the keys of the other side: a left semi
join, whose small right side is broadcast to every read. The reads have to wait for the keys, but rows that the join
would drop are not moved. The filter is pushed down to the scan through everything that it commutes with, including an
aggregation by the key. Its source is the smallest part of the other side that has the key, or a key equal to it. That
part then occurs twice, and `share_subplans` makes sure that it is computed once.

Often a table is read once more, and what it is joined with has only keys of a filter that there is already: TPC-H 17
joins the lines of some parts with the average of the lines of these parts. Then the same filter is put there too. It
drops no row that the join keeps, but makes both reads equal, so that `share_subplans` leaves one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.selectivity import UNKNOWN
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.joins import broadcast_pays, smaller_side
from wallaby.plan.settings import PlanSettings
from wallaby.relations.equal_parts import merged
from wallaby.relations.expression import Column, Named
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Aggregate,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Sort,
    children_of,
)
from wallaby.relations.tree import arrange, ids_of, kept, with_children

#: A filter that keeps more than this share of the rows is not worth waiting for.
_KEPT_MAX = 0.5
#: It must save this many times the bytes that it costs, and at least this many bytes.
_GAIN_LEAST = 2.0
_GAIN_BYTES_LEAST = 1 << 20
#: To build the other side of a join, it must save this many bytes: the waiting reads are those of the larger table.
_BUILD_BYTES_LEAST = 64 << 20
#: A table is read once instead of twice if a filter leaves at most one in this many of its rows.
_READ_PARTS = 16
#: Parts with up to this many times the fewest keys count as equally good.
_NEAR = 1.3


def filter_scans(
    relation: Relation,
    statistics: Statistics,
    settings: PlanSettings,
    parts: tuple[Relation, ...] = (),
) -> Relation:
    """Add run-time filters to a relation, but not to the shared `parts` that its inputs represent."""
    filtering = _Filtering(Estimator(statistics, dict(enumerate(parts))), settings)
    return filtering.read_once(filtering.filtered(relation))


@dataclass(frozen=True, slots=True)
class _Choice:
    """A possible filter: on the scan `target`, whose column `key` must be among the keys of the other side."""

    to_right: bool
    target: Relation
    key: Column
    other_key: Column
    gain_bytes: float


class _Filtering:
    def __init__(self, estimator: Estimator, settings: PlanSettings) -> None:
        self._estimator = estimator
        self._settings = settings
        #: The keys of existing filters, which need no further work.
        self._keys: dict[int, Relation] = {}
        #: The filters, in the order in which they were made.
        self._made: list[Join] = []

    def filtered(self, relation: Relation) -> Relation:
        """Work from the root down: a filter on a side is part of what that side filters in turn."""
        if isinstance(relation, Join):
            if id(relation.right) in self._keys:
                return relation
            choice = max(self._choices(relation), key=lambda each: each.gain_bytes, default=None)
            if choice is not None:
                return self._applied(relation, choice)
        children = children_of(relation)
        below = tuple(map(self.filtered, children))
        same = all(a is b for a, b in zip(children, below, strict=True))
        return relation if same else with_children(relation, below)

    def _applied(self, join: Join, choice: _Choice) -> Relation:
        """Apply a filter. The source side is finished first, so that both occurrences of the source are equal."""
        source, target = (join.left, join.right) if choice.to_right else (join.right, join.left)
        source = self.filtered(source)
        keys = self._best_keys(source, choice.other_key)
        self._keys[id(keys)] = keys
        columns = choice.target.columns
        semi = Join(choice.target, keys, JoinKind.SEMI, (choice.key,), keys.columns, None, columns)
        self._made.append(semi)
        target = self.filtered(_replaced(target, choice.target, semi))
        return with_children(join, (source, target) if choice.to_right else (target, source))

    # --- reading a table once ------------------------------------------------------------------------------

    def read_once(self, relation: Relation) -> Relation:
        """Filter other reads of a filtered table by the same keys where that makes the reads equal."""
        for semi in self._made:
            if self._estimator.of(semi).rows * _READ_PARTS > self._estimator.of(semi.left).rows:
                continue  # what stays would be kept for so long that reading it again is cheaper
            places = {id(place.rows): place for place in self._same_reads(relation, semi)}
            for place in places.values():
                if _count(relation, place.rows) > 1:
                    continue  # it is in the source of a filter too
                columns = place.rows.columns
                again = Join(
                    place.rows, semi.right, JoinKind.SEMI, (place.key,), semi.right_keys, None, columns
                )
                relation = _replaced(relation, place.rows, again)
        return relation

    def _same_reads(self, relation: Relation, semi: Join) -> Iterator[_Place]:
        """The places of other reads of the table of a filter, joined with nothing but keys of the filter."""
        if isinstance(relation, Join) and id(relation.right) not in self._keys:
            for left, right in zip(relation.left_keys, relation.right_keys, strict=True):
                if not isinstance(left, Column) or not isinstance(right, Column):
                    continue
                if relation.kind.keeps_only_matched:
                    yield from _same_read(semi, relation.left, left, relation.right, right)
                if not relation.kind.keeps_right:
                    yield from _same_read(semi, relation.right, right, relation.left, left)
        for child in children_of(relation):
            yield from self._same_reads(child, semi)

    # --- choices -------------------------------------------------------------------------------------------

    def _choices(self, join: Join) -> Iterator[_Choice]:
        for left, right in zip(join.left_keys, join.right_keys, strict=True):
            if not isinstance(left, Column) or not isinstance(right, Column):
                continue
            if not join.kind.keeps_right:  # only right rows with a partner matter
                yield from self._choice(join, left, right, to_right=True)
            if join.kind.keeps_only_matched:
                yield from self._choice(join, right, left, to_right=False)

    def _choice(
        self, join: Join, source_key: Column, target_key: Column, *, to_right: bool
    ) -> Iterator[_Choice]:
        source, target = (join.left, join.right) if to_right else (join.right, join.left)
        place = _place(target, target_key)
        if place is None:
            return
        part = self._best_keys(source, source_key)
        keys = self._estimator.of(part)
        rows = self._estimator.of(place.rows)
        if self._rows_read_again(part) > rows.rows:
            return
        known = rows.columns.get(place.key.id, UNKNOWN).distinct
        there = min([rows.rows if known is None else known, *map(self._keys_of, place.partners)])
        kept_share = min(1.0, keys.rows / max(1.0, there))
        spared = (1 - kept_share) * self._moved_bytes(join, target, place)
        spared = max(spared, self._spared_by_building(join, target, kept_share))
        cost = keys.size_bytes * self._settings.copies
        if (
            kept_share <= _KEPT_MAX
            and keys.size_bytes <= self._settings.broadcast_bytes
            and spared >= max(_GAIN_BYTES_LEAST, _GAIN_LEAST * cost)
        ):
            yield _Choice(to_right, place.rows, place.key, source_key, spared - cost)

    def _moved_bytes(self, join: Join, target: Relation, place: _Place) -> float:
        """The bytes of the target's rows that are moved up to this join: none if the other side is broadcast."""
        moved = self._estimator.of(place.rows).size_bytes if place.aggregated else 0.0
        build = smaller_side(join, self._estimator)
        size_bytes = self._estimator.of(target).size_bytes
        if not broadcast_pays(join, self._estimator, self._settings):
            return max(moved, size_bytes)
        return max(moved, size_bytes * self._settings.copies if target is build else 0.0)

    def _spared_by_building(self, join: Join, target: Relation, kept_share: float) -> float:
        """The bytes saved if the filtered target is smaller than the side that would otherwise be built."""
        build = smaller_side(join, self._estimator)
        broadcast = broadcast_pays(join, self._estimator, self._settings)
        if join.kind is not JoinKind.INNER or target is build or not broadcast:
            return 0.0
        filtered_bytes = kept_share * self._estimator.of(target).size_bytes
        spared = (self._estimator.of(build).size_bytes - filtered_bytes) * self._settings.copies
        return spared if spared >= _BUILD_BYTES_LEAST else 0.0

    def _best_keys(self, side: Relation, key: Column) -> Relation:
        """The part of a side with the fewest keys; among parts with about as many, the one that is cheapest to read."""
        found = [
            (self._estimator.of(part).groups((column,)), part, column) for part, column in _sources(side, key)
        ]
        fewest = min(groups for groups, _, _ in found)
        near = [(part, column) for groups, part, column in found if groups <= _NEAR * fewest]
        part, column = min(near, key=lambda each: self._rows_read(each[0]))
        below = self._estimator.of(part)
        repeated = below.groups((column,)) <= self._settings.partial_groups_share * below.rows
        return Aggregate(part, kept((column,)), ()) if repeated else arrange(part, (column,))

    def _keys_of(self, partner: tuple[Relation, Column]) -> float:
        relation, column = partner
        return self._estimator.of(relation).groups((column,))

    def _rows_read_again(self, keys: Relation) -> float:
        """The rows that are read only for the keys: a table that keeps most of its rows is read again, not shared."""
        relation = keys
        while isinstance(relation, Project | Aggregate | Filter):
            relation = relation.child
        if not isinstance(relation, Scan):
            return 0.0
        read = self._estimator.of(relation).rows
        below = keys.child if isinstance(keys, Aggregate) else keys
        return read if self._estimator.of(below).rows > _KEPT_MAX * read else 0.0

    def _rows_read(self, relation: Relation) -> float:
        if isinstance(relation, Scan):
            return self._estimator.of(relation).rows
        return sum(map(self._rows_read, children_of(relation)))


@dataclass(frozen=True, slots=True)
class _Place:
    """A place for a filter: on the filtered scan `rows`, and whether there is an aggregation above it.

    `partners` are the sides, with their keys, that the same key is joined with on the way, and which filter it already.
    """

    rows: Relation
    key: Column
    aggregated: bool = False
    partners: tuple[tuple[Relation, Column], ...] = ()


def _same_read(
    semi: Join, target: Relation, target_key: Column, other: Relation, other_key: Column
) -> Iterator[_Place]:
    """The read of a side, if it is one like that of a filter and the other side has only keys of the filter."""
    place = _place(target, target_key)
    if place is None or any(place.rows is read for read in (semi.left, *_filtered_reads(target))):
        return
    equal = merged(semi.left, place.rows)
    (key,) = semi.left_keys
    if equal is None or not isinstance(key, Column) or equal[1].get(place.key.id) != key.id:
        return
    if any(_gives(part, column, semi.right) for part, column in _sources(other, other_key)):
        yield place


def _count(tree: Relation, part: Relation) -> int:
    """How often this very object occurs in a tree."""
    return (tree is part) + sum(_count(child, part) for child in children_of(tree))


def _filtered_reads(relation: Relation) -> Iterator[Relation]:
    """The rows that filters of this kind, and semi joins of the query itself, are right above."""
    if isinstance(relation, Join) and relation.kind is JoinKind.SEMI:
        yield relation.left
    for child in children_of(relation):
        yield from _filtered_reads(child)


def _gives(part: Relation, column: Column, keys: Relation) -> bool:
    """Are the values of a column of a part exactly these keys, apart from their number?"""
    if isinstance(keys, Aggregate | Project) and keys.child is part:
        outputs = keys.keys if isinstance(keys, Aggregate) else keys.outputs
        return tuple(named.expression for named in outputs) == (column,)
    return keys is part and keys.columns == (column,)


def _place(relation: Relation, key: Column) -> _Place | None:
    """The scan that a key comes from, if filtering there is equivalent to filtering here."""
    match relation:
        case Scan():
            return _Place(relation, _own(relation, key))
        case Filter(child=child):
            place = _place(child, key)
            return replace(place, rows=relation) if place is not None and place.rows is child else place
        case Sort(child=child):
            return _place(child, key)
        case Project(child=child, outputs=outputs):
            source = _renamed(outputs, key)
            return None if source is None else _place(child, source)
        case Aggregate(child=child, keys=keys):
            source = _renamed(keys, key)
            place = None if source is None else _place(child, source)
            return None if place is None else replace(place, aggregated=True)
        case Join(left=left, right=right, kind=kind):
            place = None
            if kind.filters_left and key.id in ids_of(left.columns):
                place = _place(left, key)
            elif kind.is_inner and key.id in ids_of(right.columns):
                place = _place(right, key)
            if place is None or not kind.keeps_only_matched:
                return place
            return replace(place, partners=(*place.partners, *_partners(relation, key)))
        case _:
            return None


def _partners(join: Join, key: Column) -> Iterator[tuple[Relation, Column]]:
    """The keys and sides that a key is joined with."""
    for left, right in zip(join.left_keys, join.right_keys, strict=True):
        if isinstance(left, Column) and isinstance(right, Column):
            if left.id == key.id:
                yield join.right, right
            elif right.id == key.id:
                yield join.left, left


def _sources(relation: Relation, key: Column) -> Iterator[tuple[Relation, Column]]:
    """The parts of a relation whose values in a column include all those of its key."""
    yield relation, _own(relation, key)
    match relation:
        case Filter(child=child) | Sort(child=child):
            yield from _sources(child, key)
        case Project(child=child, outputs=outputs) | Aggregate(child=child, keys=outputs):
            source = _renamed(outputs, key)
            if source is not None:
                yield from _sources(child, source)
        case Join(left=left, right=right, kind=kind):
            pairs = list(zip(relation.left_keys, relation.right_keys, strict=True))
            equal = kind.keeps_only_matched
            if key.id in ids_of(left.columns):
                yield from _sources(left, key)
                for ours, theirs in pairs if equal else ():
                    if isinstance(ours, Column) and isinstance(theirs, Column) and ours.id == key.id:
                        yield from _sources(right, theirs)
            elif kind is JoinKind.INNER:
                yield from _sources(right, key)
                for theirs, ours in pairs:
                    if isinstance(ours, Column) and isinstance(theirs, Column) and ours.id == key.id:
                        yield from _sources(left, theirs)
        case _:
            pass


def _own(relation: Relation, key: Column) -> Column:
    """A column as the relation has it, nullable or not."""
    return next(column for column in relation.columns if column.id == key.id)


def _renamed(outputs: tuple[Named, ...], key: Column) -> Column | None:
    """The column that a projection renames, if it does only that."""
    found = next((named.expression for named in outputs if named.column.id == key.id), None)
    return found if isinstance(found, Column) else None


def _replaced(tree: Relation, old: Relation, new: Relation) -> Relation:
    if tree is old:
        return new
    children = children_of(tree)
    changed = tuple(_replaced(child, old, new) for child in children)
    same = all(a is b for a, b in zip(children, changed, strict=True))
    return tree if same else with_children(tree, changed)
