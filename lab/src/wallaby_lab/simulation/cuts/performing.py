"""Perform the effects of a query under coordinated snapshots, each judged by `CutAudit`.

Nothing is committed. The parts of snapshots are kept with the run that saved them, as the durable store keeps them.
"""

from __future__ import annotations

import copy

from wallaby.lineage import effects as protocol
from wallaby.lineage.barriers import BarrierDue, Cover, RestoreCut, SaveCut, Start
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby_lab.invariants.cuts import CutAudit
from wallaby_lab.simulation.world.perform import SimulatedPerformer
from wallaby_lab.simulation.world.process import SimulatedActor, worker_query_of
from wallaby_lab.simulation.world.running import Running
from wallaby_lab.simulation.world.world import World

#: The most snapshots that a reader begins at once, so that runs stay short.
AT_ONCE_MAX = 3
#: How much longer a client may take now and then, until it has room for more rows.
LATE_MS, LATE_SHARE = 1_500, 0.2


class AlignedPerformer(SimulatedPerformer):
    """Performs what such a query does in another way than others."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        #: When each process asked first, for each run of a query.
        self._began_ms: dict[tuple[WorkerId, QueryId], int] = {}
        self._back_up_as_always = self._methods[protocol.BackUp]
        self._methods |= {
            protocol.Execute: self._execute_judged,
            protocol.BackUp: self._back_up,
            protocol.Acknowledge: self._acknowledge_here,
            BarrierDue: self._is_due,
            SaveCut: self._save,
            RestoreCut: self._restore,
            Cover: self._cover,
        }

    def _running(self, actor: SimulatedActor) -> Running:
        return self._world.running[worker_query_of(actor).query.id]

    def _execute_judged(self, actor: SimulatedActor, effect: protocol.Execute) -> None:
        cuts_of(self._running(actor)).executing(effect.task, effect.inputs, effect.sides)
        self._execute(actor, effect)

    def _back_up(self, actor: SimulatedActor, effect: protocol.BackUp) -> None:
        cuts_of(self._running(actor)).keeping(effect.task, effect.output, final=effect.final)
        self._back_up_as_always(actor, effect)

    def _acknowledge_here(self, actor: SimulatedActor, effect: protocol.Acknowledge) -> None:
        self._answer_later(actor, effect, Verdict.DONE, 5, 50)

    def _is_due(self, actor: SimulatedActor, effect: BarrierDue) -> None:
        """Count snapshots by time since the process opened the run; without a period, one comes before every read."""
        period_ms, now_ms = self._world.scenario.snapshot_ms, self._world.agenda.now_ms()
        began_ms = self._began_ms.setdefault((actor.process.id, worker_query_of(actor).query.id), now_ms)
        due = (now_ms - began_ms) // period_ms if period_ms else effect.passed + 1
        self._answer_later(actor, effect, min(due, effect.passed + AT_ONCE_MAX), 1, 60)

    def _save(self, actor: SimulatedActor, effect: SaveCut) -> None:
        """Save a channel's part of a snapshot. States are changed in place, so a copy is saved."""
        running = self._running(actor)
        cuts_of(running).saving(effect.task.of, effect.number, effect.cut)
        running.parts[effect.task.of, effect.number] = copy.deepcopy(effect.cut)
        self._answer_later(actor, effect, True, 50, 2_000)

    def _restore(self, actor: SimulatedActor, effect: RestoreCut) -> None:
        cut = self._world.running[effect.start.query].parts.get((effect.channel, effect.start.number))
        self._world.tally.restored += cut is not None
        self._answer_later(actor, effect, copy.deepcopy(cut), 50, 2_000)

    def _cover(self, actor: SimulatedActor, effect: Cover) -> None:
        """Give out rows and remember why, in one step as the head does; the client may take its time."""
        running = self._running(actor)
        if not running.superseded:
            cuts = cuts_of(running)
            if effect.whole:
                cuts.collecting(effect.slices)
                running.query.becomes_whole()
            else:
                cuts.covering(effect.number, effect.ended, effect.slices)
                running.covered = Start(running.query.id, effect.number, effect.ended)
            for piece in effect.slices:
                running.collected.update(piece.body or ())  # type: ignore[call-overload]
        late_ms = LATE_MS if self._world.random.random() < LATE_SHARE else 0
        self._answer_later(actor, effect, None, 10, 300, late_ms)


def cuts_of(running: Running) -> CutAudit:
    """What is known of the snapshots of a query."""
    assert running.cuts is not None, "its policy takes snapshots together"
    return running.cuts
