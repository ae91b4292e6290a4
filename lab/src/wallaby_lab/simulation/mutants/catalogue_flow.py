"""Mutants of flow control and of the stall watch: outputs that never leave, queries that never end or end wrongly."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

OUTBOX = "wallaby.lineage.outbox"
SESSION = "wallaby.node.session"
STANDING = "wallaby.node.standing"
STALLS = "wallaby.coordinator.stalls"

_SENT = "        sent = items[: len(held)]\n"
_CUT_IS_REFUSED = "        held, sent = held + (False,) * (len(items) - len(held)), items\n"
_ORDER = "            edges.sort(key=lambda edge: (edge in self._refused) + (edge == first))\n"
_KEPT_ORDER = "            edges.sort(key=lambda edge: edge in self._refused)\n"
_ANEW = "        self._through.pop(channel, None)\n        self._told.discard(channel)\n"

FLOW: tuple[Mutant, ...] = (
    Mutant(
        name="cut-off-is-refused",
        what="what was cut off a push counts as refused, and refused edges keep their order: the first fill every push",
        breaks=("7", "6.1.9"),
        module=OUTBOX,
        before=_SENT,
        after=_CUT_IS_REFUSED,
        more=(Edit(OUTBOX, _ORDER, _KEPT_ORDER),),
    ),
    Mutant(
        name="refused-edges-before-woken-ones",
        what="the same, and an edge that had nothing to send goes behind those that were refused when it has",
        breaks=("7", "6.1.9"),
        module=OUTBOX,
        before=_SENT,
        after=_CUT_IS_REFUSED,
        more=(
            Edit(OUTBOX, _ORDER, _KEPT_ORDER),
            Edit(
                OUTBOX,
                _ANEW,
                _ANEW + "        woken = self._edges_of.get(channel, ())\n"
                "        for edges in self._edges_to.values():\n"
                "            edges.sort(key=lambda edge: edge in woken)\n",
            ),
        ),
    ),
    Mutant(
        name="preview-counts-what-is-there",
        what="who asks what would be held is told that there is no room for what takes none: it was there already",
        breaks=("3",),
        module=SESSION,
        before="                promised[piece.edge] = before + inbox.added_bytes(piece)\n",
        after="                promised[piece.edge] = before + piece.size_bytes\n",
    ),
    Mutant(
        name="refused-edges-go-first",
        what="an edge that was refused is the first to be tried again, before those that were not sent",
        breaks=("7", "6.1.9"),
        module=OUTBOX,
        before=_ORDER,
        after="            edges.sort(key=lambda edge: edge not in self._refused)\n",
    ),
    Mutant(
        name="refused-edges-keep-their-order",
        what="of several refused edges the same is always the first: what it crowds out on the way in never arrives",
        breaks=("7", "6.1.9"),
        module=OUTBOX,
        before=_ORDER,
        after=_KEPT_ORDER,
    ),
    Mutant(
        name="re-read-pushed-in-part",
        what="of a re-read only what fits in one push is offered, each time the same edges",
        breaks=("7",),
        module=SESSION,
        before="                at += len(sent)\n",
        after="                at = len(items)\n",
    ),
    Mutant(
        name="a-slow-client-is-a-stall",
        what="a query whose client takes its time is ended as if it had stalled",
        breaks=("7",),
        module=STANDING,
        before='            return "the client has not taken the rows that are there"\n',
        after='            return ""\n',
    ),
    Mutant(
        name="a-long-task-is-a-stall",
        what="a query with a task that takes long is ended as if it had stalled",
        breaks=("7",),
        module=STANDING,
        before='            return f"{effect.task} is being executed, or waits for a thread"\n',
        after='            return ""\n',
    ),
    Mutant(
        name="stalls-are-waited-for",
        what="a query that stands still is never ended",
        breaks=("7",),
        module=STALLS,
        before="        if over and _may_stall(query):\n",
        after="        if over and not _may_stall(query):\n",
    ),
    Mutant(
        name="an-answer-that-is-missing-hides-a-stall",
        what="whenever somebody does not answer, the time in which nothing has moved begins anew",
        breaks=("7",),
        module=STALLS,
        before="            case _Round.MOVED:\n",
        after="            case _Round.MOVED | _Round.SILENT | _Round.UNKNOWN:\n",
    ),
    Mutant(
        name="silence-hides-a-stall",
        what="a member that the head cannot reach hides a stall for ever",
        breaks=("7",),
        module="wallaby.coordinator.stalls",
        before="                quiet.silent_ms += round_ms\n",
        after="                pass\n",
    ),
)
