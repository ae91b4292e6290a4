"""Mutants of the protocol's conduct: mistakes that show only after a later loss, or only cost more."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

ATTEMPT_MODULE = "wallaby.lineage.attempt"
CHOOSE_MODULE = "wallaby.lineage.choose"
INBOX_MODULE = "wallaby.lineage.inbox"
OUTBOX_MODULE = "wallaby.lineage.outbox"
SESSION_MODULE = "wallaby.node.session"

CONDUCT: tuple[Mutant, ...] = (
    Mutant(
        name="side-inputs-reversed",
        what="the side inputs that a record names are applied in reverse order",
        breaks=("1",),
        module=ATTEMPT_MODULE,
        before="for bit, link in enumerate(graph.sides(stage)) if bits >> bit & 1}",
        after="for bit, link in reversed(list(enumerate(graph.sides(stage)))) if bits >> bit & 1}",
    ),
    Mutant(
        name="reported-in-an-old-epoch",
        what="what was reported in an old epoch is kept over a recovery, so that the store is never told again",
        breaks=("3",),
        module=OUTBOX_MODULE,
        before="        self._reported = dict(delivered)\n",
        after="        self._reported = {e: max(n, self._reported.get(e, 0)) for e, n in delivered.items()}\n",
    ),
    Mutant(
        name="last-state-saved",
        what="the state after a channel's last task is saved",
        breaks=("2",),
        module="wallaby.lineage.tolerance",
        before="not (ended or rest or graph",
        after="not (rest or graph",
    ),
    Mutant(
        name="published-while-acknowledging",
        what="what is published while a delivery writes acknowledgements down waits until it looks again",
        breaks=("5",),
        module=SESSION_MODULE,
        before="this actor was not woken for it.\n                if news == self.context.outbox.news:\n",
        after="this actor was not woken for it.\n                if True:\n",
    ),
    Mutant(
        name="draws-beyond-the-target",
        what="a draw takes all that is there, whatever its target",
        breaks=("1",),
        module=CHOOSE_MODULE,
        before=" or ((counts or count) and total_bytes + size_bytes > target_bytes):\n",
        after=":\n",
    ),
    Mutant(
        name="window-without-end",
        what="what an edge holds is not counted, so its window never closes",
        breaks=("5",),
        module=INBOX_MODULE,
        before="        lane.held_bytes += piece.size_bytes\n        lane.sum.held += 1\n",
        after="        lane.sum.held += 1\n",
    ),
)
