"""Plan joins: which side is built, and whether it is broadcast or both sides are partitioned by key.

The probe side is always the left side of the join that kernels see, and each of its rows is answered alone. So outer,
semi and anti joins probe with the side whose rows they keep. An inner join builds the side that is estimated to be
smaller. A small build side is broadcast to the tasks that have the probe rows, so that those need not move. Otherwise
both sides are hashed by key, unless they are already partitioned that way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wallaby.lineage.graph import Routing
from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.open_stage import (
    Feed,
    Flow,
    JoinBody,
    MapBody,
    OpenStage,
    Partitioning,
    StageAssembly,
    aligned,
    on_top,
    passed_on,
    renamed,
)
from wallaby.plan.settings import PlanSettings
from wallaby.relations.expression import Column, Expression, Literal, Named
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Input, Join, Project, Relation
from wallaby.relations.tree import ids_of, join_columns, kept, narrow

_BUILD, _PROBE = 0, 1
#: Up to this size, moving a build side costs less than one more stage.
TINY_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class JoinPlanner:
    """Plans joins; `plan_relation` plans their sides."""

    estimator: Estimator
    settings: PlanSettings
    assembly: StageAssembly
    plan_relation: Callable[[Relation], Flow]

    def plan(self, join: Join) -> Flow:
        """The flow of a join. Right outer joins are left ones by now."""
        if join.kind is JoinKind.FULL:
            return self._full(join)
        if smaller_side(join, self.estimator) is join.left:
            join = flipped(join, join.kind)
        build = self.plan_relation(join.right)
        return (
            self._broadcast(join, build)
            if broadcast_pays(join, self.estimator, self.settings)
            else (self._partitioned(join, build),)
        )

    # --- broadcast -----------------------------------------------------------------------------------------

    def _broadcast(self, join: Join, build: Flow) -> Flow:
        """Send the whole build side to every channel with rows of the probe side, which stay where they are."""
        open_stage = self._gathered(self._lean(join, build))
        stage = self.assembly.close(open_stage)
        return tuple(self._probing(join, p, stage, open_stage.columns) for p in self.plan_relation(join.left))

    def _probing(
        self, join: Join, open_stage: OpenStage, stage: int, columns: tuple[Column, ...]
    ) -> OpenStage:
        if not open_stage.has_room_for_a_side:
            open_stage = passed_on(self.assembly, open_stage)
        first = open_stage.first_side
        assert first is not None, "a map has room"
        right = Input(first + len(open_stage.sides), columns)
        label = f"{join.kind.value} join with s{stage}"
        joined = on_top(self.assembly, open_stage, lambda tree: _joined(join, tree, right), label)
        return replace(
            joined, sides=(*open_stage.sides, stage), partitioning=_after(join, open_stage.partitioning)
        )

    def _gathered(self, flow: Flow) -> OpenStage:
        """One open stage with the rows of several."""
        if len(flow) == 1:
            return flow[0]
        feeds = tuple(Feed(self.assembly.close(open_stage)) for open_stage in flow)
        return OpenStage(MapBody(), Input(0, flow[0].columns), 1, "union", feeds)

    def _lean(self, join: Join, build: Flow) -> Flow:
        """Remove repeated keys from the build side of a semi or anti join, which is cheaper if keys repeat a lot."""
        keys = [key for key in join.right_keys if isinstance(key, Column)]
        if join.kind.is_filter and join.residual is None:
            below = self.estimator.of(join.right)
            pays = below.groups(join.right_keys) <= self.settings.partial_groups_share * below.rows
            if pays and len(keys) == len(join.right_keys):
                distinct = kept(dict.fromkeys(keys))
                return tuple(
                    on_top(
                        self.assembly,
                        open_stage,
                        lambda tree: Aggregate(tree, distinct, ()),
                        "partial distinct",
                    )
                    for open_stage in build
                )
        return aligned(self.assembly, build, build[0].columns)

    # --- partitioned ---------------------------------------------------------------------------------------

    def _partitioned(self, join: Join, build: Flow) -> OpenStage:
        """Hash both sides by key into the same channels; a side that is already partitioned that way stays."""
        build, right_keys = self.with_key_columns(build, join.right_keys)
        probe, left_keys = self.with_key_columns(self.plan_relation(join.left), join.left_keys)
        keyed = replace(join, left_keys=left_keys, right_keys=right_keys)
        build = self._lean(keyed, build)
        probe = aligned(self.assembly, probe, probe[0].columns)
        of_probe, of_build = self._lying_right(probe, left_keys), self._lying_right(build, right_keys)
        chosen = of_probe or of_build or tuple(range(len(left_keys)))
        lefts, rights = tuple(left_keys[i] for i in chosen), tuple(right_keys[i] for i in chosen)
        feeds = (
            *self._feeds(build, rights, _BUILD, stay=of_build == chosen),
            *self._feeds(probe, lefts, _PROBE, stay=of_probe == chosen),
        )
        joined = _joined(keyed, Input(_PROBE, probe[0].columns), Input(_BUILD, build[0].columns))
        tree = narrow(joined, frozenset(ids_of(join.columns)))
        spread = _after(keyed, tuple(frozenset((key.id,)) for key in lefts))
        partitioning = renamed(spread, kept(tree.columns))
        label = f"{join.kind.value} join"
        return OpenStage(JoinBody(), tree, self.settings.channels, label, feeds, (), partitioning)

    def with_key_columns(self, flow: Flow, keys: tuple[Expression, ...]) -> tuple[Flow, tuple[Column, ...]]:
        """A flow in which every key is a column, because only columns can be hashed; other keys are computed."""
        columns = tuple(
            key
            if isinstance(key, Column)
            else self.assembly.new_column("key", key.type, nullable=key.nullable)
            for key in keys
        )
        computed = tuple(
            Named(column, key)
            for column, key in zip(columns, keys, strict=True)
            if not isinstance(key, Column)
        )
        if not computed:
            return flow, columns

        def compute(tree: Relation) -> Relation:
            return Project(tree, (*kept(tree.columns), *computed))

        return tuple(on_top(self.assembly, open_stage, compute) for open_stage in flow), columns

    def _lying_right(self, flow: Flow, keys: tuple[Column, ...]) -> tuple[int, ...] | None:
        """The numbers of the keys by whose hash a flow is already spread over the right number of channels."""
        if len(flow) > 1 or flow[0].partitioning is None or flow[0].channels != self.settings.channels:
            return None
        found = [next((i for i, k in enumerate(keys) if k.id in same), None) for same in flow[0].partitioning]
        positions = tuple(i for i in found if i is not None)
        return positions if len(positions) == len(found) else None

    def _feeds(self, flow: Flow, keys: tuple[Column, ...], phase: int, *, stay: bool) -> tuple[Feed, ...]:
        """Give links their keys even if rows stay in place: a join that is too large for memory is divided by them."""
        stages = tuple(self.assembly.close(open_stage) for open_stage in flow)
        routing = Routing.PASS_THROUGH if stay else Routing.HASH
        return _keyed(stages, flow[0].columns, keys, phase, routing)

    # --- full outer ----------------------------------------------------------------------------------------

    def _full(self, join: Join) -> Flow:
        """A full outer join: a left outer join and the right rows without a partner, both fed by the same stages."""
        pairs = replace(join, kind=JoinKind.LEFT)
        alone = flipped(join, JoinKind.ANTI)
        stages = self._full_by_key if join.left_keys else self._full_without_key
        matched, rest = stages(pairs, alone)
        missing = tuple(Named(column, Literal(None, column.type)) for column in matched.columns)
        there = {column.id: Named(column, column) for column in rest.columns}
        outputs = tuple(there.get(named.column.id, named) for named in missing)
        return matched, on_top(self.assembly, rest, lambda tree: Project(tree, outputs))

    def _full_by_key(self, pairs: Join, alone: Join) -> Flow:
        build, right_keys = self.with_key_columns(self.plan_relation(pairs.right), pairs.right_keys)
        probe, left_keys = self.with_key_columns(self.plan_relation(pairs.left), pairs.left_keys)
        sides = []
        for flow, keys in ((build, right_keys), (probe, left_keys)):
            open_stages = aligned(self.assembly, flow, flow[0].columns)
            sides.append((tuple(map(self.assembly.close, open_stages)), open_stages[0].columns, keys))
        rights, lefts = sides

        def joined(join: Join, probing: _Side, built: _Side) -> OpenStage:
            keyed = replace(join, left_keys=probing[2], right_keys=built[2])
            tree = narrow(
                _joined(keyed, Input(_PROBE, probing[1]), Input(_BUILD, built[1])),
                frozenset(ids_of(join.columns)),
            )
            feeds = (*_keyed(*built, _BUILD), *_keyed(*probing, _PROBE))
            return OpenStage(JoinBody(), tree, self.settings.channels, f"{join.kind.value} join", feeds)

        return joined(pairs, lefts, rights), joined(alone, rights, lefts)

    def _full_without_key(self, pairs: Join, alone: Join) -> Flow:
        """A full outer join without keys: each side is broadcast to the rows of the other."""
        right, left = (self._gathered(self.plan_relation(side)) for side in (pairs.right, pairs.left))
        stages = self.assembly.close(right), self.assembly.close(left)

        def joined(join: Join, probing: OpenStage, stage: int, built: OpenStage, side: int) -> OpenStage:
            tree = _joined(join, Input(0, probing.columns), Input(1, built.columns))
            feeds = (Feed(stage, Routing.PASS_THROUGH),)
            label = f"{join.kind.value} join with s{side}"
            return OpenStage(MapBody(), tree, probing.channels, label, feeds, (side,))

        return (
            joined(pairs, left, stages[1], right, stages[0]),
            joined(alone, right, stages[0], left, stages[1]),
        )


#: The stages that produce a side, its columns, and its keys.
_Side = tuple[tuple[int, ...], tuple[Column, ...], tuple[Column, ...]]


def _keyed(
    stages: tuple[int, ...],
    columns: tuple[Column, ...],
    keys: tuple[Column, ...],
    phase: int,
    routing: Routing = Routing.HASH,
) -> tuple[Feed, ...]:
    ids = ids_of(columns)
    positions = tuple(ids.index(key.id) for key in keys)
    return tuple(Feed(stage, routing, positions, phase) for stage in stages)


def smaller_side(join: Join, estimator: Estimator) -> Relation:
    """The side that is built: if either can be, the one that is estimated to be smaller."""
    either = join.kind.is_inner
    left_smaller = estimator.of(join.right).size_bytes > estimator.of(join.left).size_bytes
    return join.left if either and left_smaller else join.right


def broadcast_pays(join: Join, estimator: Estimator, settings: PlanSettings) -> bool:
    """Is the build side small enough, and are its copies smaller than both sides moved once?

    Without keys there is nothing to partition by.
    """
    if not join.left_keys:
        return True
    build = smaller_side(join, estimator)
    build_bytes = estimator.of(build).size_bytes
    probe_bytes = estimator.of(join.right if build is join.left else join.left).size_bytes
    if build_bytes > settings.broadcast_bytes:
        return False
    return build_bytes <= TINY_BYTES or build_bytes * settings.channels <= build_bytes + probe_bytes


def flipped(join: Join, kind: JoinKind) -> Join:
    """The same join with its sides exchanged."""
    return replace(
        join,
        left=join.right,
        right=join.left,
        kind=kind,
        left_keys=join.right_keys,
        right_keys=join.left_keys,
        columns=join_columns(replace(join, kind=kind), join.right, join.left),
    )


def _joined(join: Join, left: Relation, right: Relation) -> Join:
    return replace(join, left=left, right=right, columns=join_columns(join, left, right))


def _after(join: Join, partitioning: Partitioning) -> Partitioning:
    """How the result of a join is spread, given its probe rows: by equal keys of the other side too.

    That does not hold for an outer join, whose build columns are NULL where there was no partner.
    """
    if partitioning is None or join.kind is not JoinKind.INNER:
        return partitioning
    pairs = [
        (left.id, right.id)
        for left, right in zip(join.left_keys, join.right_keys, strict=True)
        if isinstance(left, Column) and isinstance(right, Column)
    ]
    return tuple(same | {right for left, right in pairs if left in same} for same in partitioning)
