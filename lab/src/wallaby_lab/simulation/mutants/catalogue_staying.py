"""Mutants of results that stay: of what is kept, of recovery after the end, and of readers."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

KEPT_MODULE = "wallaby.lineage.kept"

STAYING: tuple[Mutant, ...] = (
    Mutant(
        name="whole-with-the-first-end",
        what="a result is said to be whole when one of the channels that make it has ended",
        breaks=("7",),
        module=KEPT_MODULE,
        before="        if channels and all(channel.final",
        after="        if channels and any(channel.final",
    ),
    Mutant(
        name="what-stays-is-sent",
        what="outputs of a result that stays are sent to the head too, and then count as delivered",
        breaks=("5", "7"),
        module="wallaby.lineage.outbox",
        before="                if target is not None and not self._graph.stays(edge):\n",
        after="                if target is not None:\n",
    ),
    Mutant(
        name="drained-with-what-stays",
        what="a draining worker may leave with its part of a result, which nobody makes again before",
        breaks=("8",),
        module="wallaby.lineage.reconcile",
        before=" and (not self._ended(name) or self._graph.is_kept(name))\n",
        after=" and not self._ended(name)\n",
    ),
    Mutant(
        name="readers-get-what-is-not-committed",
        what="a worker gives readers all outputs that it has made, whether their commits have succeeded or not",
        breaks=("1", "2"),
        module="wallaby.node.session",
        before="min(end, self.context.outbox.published(channel))",
        after="min(end, self.runs[channel].seq + 1)",
    ),
    Mutant(
        name="reader-goes-on-too-far",
        what="a reader that got some of the outputs it asked for goes on behind all of them",
        breaks=("7",),
        module=KEPT_MODULE,
        before="                at, waited_ms, since_ms = at + got, LOCATE_MS, now_ms()\n",
        after="                at, waited_ms, since_ms = each.end, LOCATE_MS, now_ms()\n",
    ),
    Mutant(
        name="reader-begins-anew",
        what="a reader that is sent to another worker reads the channel from its first output again",
        breaks=("7",),
        module=KEPT_MODULE,
        before="                places[each.channel] = found\n",
        after="                places[each.channel], at = found, each.first\n",
    ),
    Mutant(
        name="reader-stays-where-it-was",
        what="a reader asks where a channel is, and goes back to where it was before",
        breaks=("7",),
        module=KEPT_MODULE,
        before="                places[each.channel] = found\n",
        after="                pass\n",
    ),
    Mutant(
        name="readers-suffer-in-silence",
        what="a reader does not say that a worker does not answer, which nobody else needs",
        breaks=("7",),
        module=KEPT_MODULE,
        before="        yield ReportReach(worker, reachable=False)\n",
        after="        pass\n",
    ),
)
