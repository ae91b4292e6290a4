"""Mutants of reconcile, and of what recoveries and early ends rely on: plans that forget something, or do too much."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

MODULE = "wallaby.lineage.reconcile"

_RESET = (
    "        for edge in self._graph.edges_into(name):\n"
    "            self._delivered[edge] = start.consumed.get(Upstream(edge.link, edge.producer), 0)\n"
)

RECONCILE: tuple[Mutant, ...] = (
    Mutant(
        name="unconsumed-inputs-forgotten",
        what="only what its records name is sent again to a rewound channel: nothing, if it has none",
        breaks=("5", "H4"),
        module=MODULE,
        before=_RESET,
        after="        if self._before.channels[name].length:\n"
        "            self._delivered.update(dict.fromkeys(self._graph.edges_into(name), 0))\n",
    ),
    Mutant(
        name="side-inputs-not-sent-again",
        what="a rewound or moved channel gets its main inputs again, but not its side inputs",
        breaks=("5", "H4"),
        module=MODULE,
        before=_RESET,
        after="""        for edge in self._graph.edges_into(name):
            if edge.link not in self._graph.sides(name.stage):
                self._delivered[edge] = 0
""",
    ),
    Mutant(
        name="moved-reader-keeps-its-side-inputs",
        what="a moved reader is taken to have its side inputs already",
        breaks=("5", "H4"),
        module=MODULE,
        before="            if name in self._moved and not self._rests(name):\n"
        "                self._starts_empty(name)\n",
        after="            if name in self._moved:\n                self._needing.add(name)\n",
    ),
    Mutant(
        name="final-channels-never-rewound",
        what="a lost channel that had finished is left alone although its output is needed again",
        breaks=("5", "H9", "6.1.6"),
        module=MODULE,
        before="        if lost or (leaves and not self._ended(name)):\n",
        after="        lost = [] if self._ended(name) else lost\n"
        "        if lost or (leaves and not self._ended(name)):\n",
    ),
    Mutant(
        name="all-final-channels-rewound",
        what="every lost channel is rewound, needed or not",
        breaks=("8",),
        module=MODULE,
        before="        if lost or (leaves and not self._ended(name)):\n",
        after="        if leaves:\n",
    ),
    Mutant(
        name="ended-consumers-fed",
        what="an edge counts as behind although its consumer needs nothing more",
        breaks=("8",),
        module=MODULE,
        before="            if self._graph.consumer(edge) in self._needing and self._delivered[edge] < length\n",
        after="            if self._delivered[edge] < length\n",
    ),
    Mutant(
        name="live-channels-rewound",
        what="a channel with an edge that is behind is rewound although its host is well",
        breaks=("8",),
        module=MODULE,
        before="        if lost or (leaves and not self._ended(name)):\n",
        after="        if behind or (leaves and not self._ended(name)):\n",
    ),
    Mutant(
        name="producers-before-consumers",
        what="the walk begins at the first stage, when nobody's needs are known",
        breaks=("5", "8"),
        module=MODULE,
        before="        for stage in reversed(range(len(self._graph.stages) - 1)):\n",
        after="        for stage in range(len(self._graph.stages) - 1):\n",
    ),
    Mutant(
        name="owing-channels-need-nothing",
        what="a live channel that has ended, but is still retracing what others need, gets no inputs",
        breaks=("5", "H9"),
        module=MODULE,
        before="        elif not (leaves or self._rests(name)) and (behind or not self._ended(name)):\n",
        after="        elif not (leaves or self._ended(name)):\n",
    ),
    Mutant(
        name="pending-re-reads-forgotten",
        what="a failure during a recovery forgets the re-reads that are not completed",
        breaks=("5", "H9", "6.1.10"),
        module=MODULE,
        before="            if reread.channel != name:\n                continue\n",
        after="            if reread.channel != name or self._before.departed:\n                continue\n",
    ),
    Mutant(
        name="re-reads-below-the-base-forgotten",
        what="what a moved reader's present host never had is not read again for a consumer lost later",
        breaks=("5", "H9", "6.1.5"),
        module=MODULE,
        before="            for edge in behind:\n                if self",
        after="            lost_below *= self._must_leave(name)\n"
        "            for edge in behind:\n                if self",
    ),
    Mutant(
        name="re-reads-one-short",
        what="the last output that is to be read again is left out",
        breaks=("5", "6.1.8"),
        module=MODULE,
        before="                    needs.append((self._delivered[edge], lost_below, edge))\n",
        after="                    needs.append((self._delivered[edge], lost_below - 1, edge))\n",
    ),
    Mutant(
        name="re-reads-for-all-edges",
        what="an output is read again for every edge of its channel, not for those that need it",
        breaks=("8",),
        module=MODULE,
        before="for lo, hi, edge in needs if lo <= first and end <= hi}))\n",
        after="for lo, hi, edge in needs}))\n",
    ),
    Mutant(
        name="readers-of-re-reads-without-side-inputs",
        what="a reader that has ended gets no side inputs, though its stage has outputs to read again",
        breaks=("5", "H9"),
        module=MODULE,
        before="            elif not self._must_leave(name) and (stage_rereads or not self._ended(name)):\n",
        after="            elif not self._must_leave(name) and not self._ended(name):\n",
    ),
    Mutant(
        name="ended-readers-not-moved",
        what="a lost reader that had ended is not moved, so perhaps nobody can read its outputs again",
        breaks=("5", "8"),
        module=MODULE,
        before="            if self._must_leave(name) and (not self._ended(name) or needs or behind):\n",
        after="            if self._must_leave(name) and not self._ended(name):\n",
    ),
    Mutant(
        name="moved-reader-without-base",
        what="a moved reader keeps its base, as if its new host had made the earlier outputs itself",
        breaks=("5", "8"),
        module=MODULE,
        before="            bases={name: base for name, base in self._bases.items() if base != "
        "before.channels[name].base},\n",
        after="            bases={},\n",
    ),
    Mutant(
        name="closed-channels-rewound",
        what="a channel whose consumers have all ended is run again, as if there had been no early end",
        breaks=("8",),
        module=MODULE,
        before="            if all(ended(consumer) for consumer in consumers):\n",
        after="            if not consumers:\n",
    ),
    Mutant(
        name="channels-with-an-open-consumer-closed",
        what="a shared channel is closed as soon as one of its consumers has ended",
        breaks=("5", "7"),
        module=MODULE,
        before="            if all(ended(consumer) for consumer in consumers):\n",
        after="            if any(ended(consumer) for consumer in consumers):\n",
    ),
    Mutant(
        name="channels-given-to-a-draining-worker",
        what="rewound channels are placed on a worker that is about to leave",
        breaks=("9",),
        module=MODULE,
        before="        members = self._before.members\n        gone",
        after="        members = (*self._before.draining, *self._before.members)\n        gone",
    ),
    Mutant(
        name="draining-worker-keeps-its-channels",
        what="a worker that is about to leave keeps the channels that are still at work",
        breaks=("8",),
        module=MODULE,
        before="        return host in self._before.draining and (",
        after="        return False and (",
    ),
    Mutant(
        name="draining-worker-taken-as-lost",
        what="what a draining worker still serves is made again at once",
        breaks=("8",),
        module=MODULE,
        before="            (*snapshot.members, *snapshot.draining, snapshot.channels[graph.collector].host)\n",
        after="            (*snapshot.members, snapshot.channels[graph.collector].host)\n",
    ),
    Mutant(
        name="losses-counted-again",
        what="each reconcile counts the same lost worker once more for every channel it has moved",
        breaks=("9", "H11"),
        module=MODULE,
        before="            name: self._before.channels[name].losses + 1\n"
        "            for name in (*self._rewound, *self._moved)\n"
        "            if not self._ended(name) and",
        after="            name: channel.losses + 1\n            for name, channel in self._before.channels.items()\n"
        "            if not self._ended(name) and channel.losses or name in (*self._rewound, *self._moved) and",
    ),
    Mutant(
        name="losses-not-counted",
        what="nobody counts the workers that a task takes with it",
        breaks=("7", "H11"),
        module=MODULE,
        before="            name: self._before.channels[name].losses + 1\n",
        after="            name: self._before.channels[name].losses\n",
        more=(Edit(MODULE, "            losses=self._losses(),\n", "            losses={},\n"),),
    ),
    Mutant(
        name="channels-placed-on-the-lost",
        what="a channel is placed on any worker that the query ever had",
        breaks=("5", "6.1.10"),
        module=MODULE,
        before="        members = self._before.members\n        gone",
        after="        members = (*self._before.departed, *self._before.members)\n        gone",
    ),
    Mutant(
        name="repeated-submission-not-recognized",
        what="a submission that the store has already is repeated until it is given up",
        breaks=("7",),
        module="wallaby.coordinator.requests",
        before="            Verdict.DONE,\n            Verdict.ALREADY,\n",
        after="            Verdict.DONE,\n",
    ),
    Mutant(
        name="free-while-its-outputs-are-needed",
        what="a draining worker may leave as soon as its channels have ended, whoever still lacks their outputs",
        breaks=("8",),
        module="wallaby.lineage.reconcile",
        before="    without = replace(snapshot, draining=tuple(w for w in snapshot.draining if w != worker))\n",
        after="    without = snapshot\n",
    ),
    Mutant(
        name="all-on-the-first-worker",
        what="all lost channels are placed on one worker",
        breaks=("8",),
        module="wallaby.lineage.reconcile",
        before="            host = min(members, key=lambda w: (of_stage.get((w, name.stage), 0), work[w], "
        "hosted[w]))\n",
        after="            host = members[0]\n",
    ),
    Mutant(
        name="closed-one-stage-at-a-time",
        what="a recovery closes channels whose consumers have ended, and not those that feed only these",
        breaks=("8", "9"),
        module="wallaby.lineage.reconcile",
        before="        return snapshot.channels[name].ended or name in closed\n",
        after="        return snapshot.channels[name].ended\n",
    ),
    Mutant(
        name="recovery-closes-nothing",
        what="a recovery does not write down which channels nobody needs any more",
        breaks=("8", "9"),
        module="wallaby.lineage.reconcile",
        before="            closed=tuple(sorted(self._closed)),\n",
        after="            closed=(),\n",
    ),
    Mutant(
        name="early-end-of-one-stage",
        what="an early end closes the stage above, and not those above that",
        breaks=("8",),
        module="wallaby.lineage.graph",
        before="            if name.stage in cone and name.stage != channel.stage\n",
        after="            if any((k.producer, k.consumer) == (name.stage, channel.stage) for k in self.links)\n",
    ),
    Mutant(
        name="enough-is-not-the-end",
        what="a task that has satisfied a limit is not its channel's last",
        breaks=("2", "8"),
        module="wallaby.lineage.attempt",
        before="    final = (chosen.last and not output.rest) or output.satisfied\n",
        after="    final = chosen.last and not output.rest\n",
    ),
    Mutant(
        name="unanswered-acknowledgement-noted",
        what="an acknowledgement counts as known to the store although it was refused or not answered",
        breaks=("3",),
        module="wallaby.node.session",
        before="                if verdict is not Verdict.DONE or self.context.epoch != epoch:\n",
        after="                if self.context.epoch != epoch:\n",
    ),
    Mutant(
        name="re-read-forgets-that-it-is-the-last",
        what="the last task of a reader is read again as if more splits came after it",
        breaks=("4",),
        module="wallaby.node.session",
        before="        last = record.split is None\n",
        after="        last = False\n",
    ),
)
