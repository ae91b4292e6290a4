"""Mutants of delivery: what is due, what counts as delivered, and for whom."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

MODULE = "wallaby.lineage.outbox"
SESSION = "wallaby.node.session"

_CONFIRM = "            if reply is not None and reply.accepted and self.context.epoch == epoch:\n"
_OTHER_EPOCH = "        if epoch != self.context.epoch or target != self.worker or self.over:\n"

DELIVERY: tuple[Mutant, ...] = (
    Mutant(
        name="acknowledgements-kept-over-a-recovery",
        what="what an earlier host of the consumer acknowledged still counts in the next epoch",
        breaks=("3", "H4"),
        module=MODULE,
        before="        self._delivered = dict(delivered)\n",
        after="        self._delivered = {e: max(n, self._delivered.get(e, 0)) for e, n in delivered.items()}\n",
    ),
    Mutant(
        name="acknowledgements-counted-across-hosts",
        what="an acknowledgement that comes in a later epoch than its push is counted for the new host",
        breaks=("3", "H3"),
        module=SESSION,
        before=_CONFIRM,
        after="            if reply is not None and reply.accepted:\n",
        more=(
            Edit(
                MODULE,
                "            elif self._delivered[edge] == task.seq:\n",
                "            elif self._delivered.get(edge) == task.seq:\n",
            ),
        ),
    ),
    Mutant(
        name="pushes-of-any-epoch-acknowledged",
        what="a worker acknowledges whatever it is sent, whether or not it hosts the consumer yet",
        breaks=("3", "H3", "6.1.11"),
        module=SESSION,
        before=_OTHER_EPOCH,
        after="        if target != self.worker or self.over:\n",
        more=(
            Edit(
                SESSION,
                "        held = tuple(inbox.offer(piece) for",
                "        held = tuple(inbox is None or inbox.offer(piece) for",
            ),
            Edit(
                SESSION,
                "        return inboxes if len(inboxes) == len(slices) else None\n",
                "        return [run and run.inbox for run in runs]\n",
            ),
        ),
    ),
    Mutant(
        name="acknowledgement-past-a-gap",
        what="an acknowledged output counts as delivered with all those before it",
        breaks=("3",),
        module=MODULE,
        before="            elif self._delivered[edge] == task.seq:\n",
        after="            elif self._delivered[edge] <= task.seq:\n",
    ),
    Mutant(
        name="refusals-taken-as-acknowledged",
        what="a push counts as delivered as a whole, although the receiver had no room for some of it",
        breaks=("3", "5"),
        module=MODULE,
        before="            if not is_held:\n                refused[edge] = None\n            elif",
        after="            if not is_held:\n                refused[edge] = None\n            if",
    ),
    Mutant(
        name="sent-is-delivered",
        what="what was pushed counts as delivered, answered or not",
        breaks=("3", "5"),
        module=SESSION,
        before=_CONFIRM + "                moved = self.context.outbox.confirm(items, reply.held)\n",
        after="            if self.context.epoch == epoch:\n"
        "                moved = self.context.outbox.confirm(items, (True,) * len(items))\n",
    ),
    Mutant(
        name="published-is-delivered",
        what="a commit reports as delivered what may leave, not what was acknowledged",
        breaks=("3", "H4"),
        module=MODULE,
        before="            (edge, self._delivered[edge])\n            for edge in self._graph.edges_from(channel)\n",
        after="            (edge, self._published.get(channel, 0))\n"
        "            for edge in self._graph.edges_from(channel)\n",
    ),
    Mutant(
        name="a-full-window-closes-other-edges",
        what="an edge that was refused stays first in turn, and the others never get theirs",
        breaks=("7", "6.1.9"),
        module=MODULE,
        before="                refused[edge] = None\n",
        after="                pass\n",
    ),
    Mutant(
        name="backups-forgotten-at-a-recovery",
        what="what was published before a recovery is not offered again after it",
        breaks=("5", "H9"),
        module=MODULE,
        before="        self._published = {name: end for name, end in self._published.items() if name in mine}\n",
        after="        self._published = {}\n",
    ),
    Mutant(
        name="routes-of-the-first-epoch",
        what="a worker goes on sending to the host that an edge had first",
        breaks=("7", "6.1.10"),
        module=MODULE,
        before="                target = routes.get(self._graph.consumer(edge))\n",
        after="                target = self._first.setdefault(edge, routes.get(self._graph.consumer(edge)))\n",
        more=(
            Edit(
                MODULE,
                "        self._edges_to: dict[WorkerId, list[Edge]] = {}\n",
                "        self._edges_to: dict[WorkerId, list[Edge]] = {}\n"
                "        self._first: dict[Edge, WorkerId | None] = {}\n",
            ),
        ),
    ),
)
