"""Mutants of a worker's session: epochs, re-reads, and the end."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

MODULE = "wallaby.node.session"
ATTEMPT = "wallaby.lineage.attempt"

_ADOPTED = """        self.context.epoch = view.epoch
        self.context.outbox.begin_epoch(view.delivered or {}, self._routes, mine)
"""
_STILL_MISSING = """        while missing and epoch == self.context.epoch and not self.over:
            yield Await()
            yield from self._push_reread(task, missing, epoch)
        return not missing and epoch == self.context.epoch
"""

SESSION: tuple[Mutant, ...] = (
    Mutant(
        name="epoch-adopted-in-pieces",
        what="a worker takes over a new epoch's number first and its delivery counts a step later",
        breaks=("3", "6"),
        module=MODULE,
        before=_ADOPTED,
        after="""        self.context.epoch = view.epoch
        yield Stop(ActorName(ActorKind.FAILURE))
        self.context.outbox.begin_epoch(view.delivered or {}, self._routes, mine)
""",
    ),
    Mutant(
        name="live-channels-begin-again",
        what="a recovery restarts every channel, also those that lost nothing",
        breaks=("8", "5"),
        module=MODULE,
        before="for a in view.assignments if a.channel not in self.runs]\n",
        after="for a in view.assignments if self.host]\n",
    ),
    Mutant(
        name="collector-begins-again",
        what="the collector forgets at a recovery what it has handed to the client",
        breaks=("7", "H12", "6.1.6"),
        module=MODULE,
        before="for a in view.assignments if a.channel not in self.runs]\n",
        after="for a in view.assignments if a.channel not in self.runs or a.channel == self.graph.collector]\n",
    ),
    Mutant(
        name="channels-that-went-go-on",
        what="a worker goes on with a channel that was given to another",
        breaks=("6", "6.1.10"),
        module=MODULE,
        before="        for name in gone:\n            del self.runs[name]\n        self._routes",
        after="        gone.clear()\n        self._routes",
    ),
    Mutant(
        name="channel-comes-with-old-inbox",
        what="a channel that comes to a worker is given the inbox of another channel of its stage",
        breaks=("1", "6.1.5"),
        module=MODULE,
        before="            inbox=Inbox(self.graph, assignment.channel, self._settings.window_bytes, reserve),\n",
        after="            inbox=self._inbox_of(assignment.channel.stage)\n"
        "            or Inbox(self.graph, assignment.channel, self._settings.window_bytes, reserve),\n",
    ),
    Mutant(
        name="rewound-channel-skips-its-records",
        what="a rewound channel goes on after its committed records without retracing them",
        breaks=("5", "2"),
        module=MODULE,
        before="        elif assignment.length > 0 and not is_reader and not rests:\n",
        after="        elif assignment.length < 0:\n",
    ),
    Mutant(
        name="re-read-completed-at-its-first-push",
        what="a re-read is completed when it was offered, not when every edge has it",
        breaks=("5",),
        module=MODULE,
        before=_STILL_MISSING,
        after="        return epoch == self.context.epoch\n",
    ),
    Mutant(
        name="re-read-refused-but-completed",
        what="a re-read counts as held although the receiver had no room for it",
        breaks=("3", "5"),
        module=MODULE,
        before="                missing += refused[1:] + refused[:1]\n",
        after="                pass\n",
    ),
    Mutant(
        name="re-read-waits-in-the-way",
        what="a re-read that finds no room keeps its slot, and nobody reads what must come before it",
        breaks=("7", "6.1.9"),
        module=MODULE,
        before="            yield self._spawn_slot()\n        while missing",
        after="            pass\n        while missing",
    ),
    Mutant(
        name="re-read-to-old-routes",
        what="a re-read pushes to where the consumers were when the session began",
        breaks=("7", "6.1.10"),
        module=MODULE,
        before="        self._routes = dict(view.routes or {})\n",
        after="        self._routes = {**(view.routes or {}), **self._routes}\n",
    ),
    Mutant(
        name="re-read-claim-not-repeated",
        what="a claim whose reply was lost is not asked for again",
        breaks=("5", "H5", "6.1.10"),
        module=MODULE,
        before="            if not (self._rereads_waiting or asked_in_epoch):\n",
        after="            if not self._rereads_waiting:\n",
    ),
    Mutant(
        name="re-read-without-its-side-inputs",
        what="a re-read does not wait for the side inputs that its record names",
        breaks=("1", "4"),
        module=MODULE,
        before="        while (inbox := self._inbox_of(task.stage)) is None or not all(map(inbox.is_whole, links)):\n",
        after="        while (inbox := self._inbox_of(task.stage)) is None:\n",
    ),
    Mutant(
        name="re-read-held-across-epochs",
        what="what a consumer's earlier host took of a re-read counts for its later host",
        breaks=("3", "5"),
        module=MODULE,
        before="                if epoch != self.context.epoch or reply is None or not reply.held:\n",
        after="                if reply is None or not reply.held:\n",
        more=(
            Edit(
                MODULE,
                "        while missing and epoch == self.context.epoch and not self.over:\n            yield Await()\n"
                "            yield from self._push_reread(task, missing, epoch)\n"
                "        return not missing and epoch == self.context.epoch\n",
                "        while missing and not self.over:\n            yield Await()\n"
                "            yield from self._push_reread(task, missing, epoch)\n        return not missing\n",
            ),
            Edit(
                MODULE,
                "            if asked_in_epoch != epoch:\n                completed, asked_in_epoch = None, 0\n",
                "",
            ),
        ),
    ),
    Mutant(
        name="session-outlives-its-query",
        what="a worker does not take a query's absence from the store as its end",
        breaks=("10",),
        module=MODULE,
        before="                case Verdict.GONE | Verdict.EXPELLED:\n                    self.over = True\n",
        after="                case Verdict.EXPELLED:\n                    self.over = True\n",
    ),
    Mutant(
        name="error-reported-once",
        what="a task's own error is reported once, whether or not the store took it",
        breaks=("7", "H5"),
        module=MODULE,
        before="        while (yield from ask(Fail(error, self.context.epoch))) in (Verdict.FROZEN, Verdict.STALE, "
        "None):\n",
        after="        if (yield from ask(Fail(error, self.context.epoch))) in (Verdict.FROZEN, Verdict.STALE, "
        "None):\n",
    ),
    Mutant(
        name="closed-gate-not-looked-at-again",
        what="a worker that meets a closed gate takes the query as over",
        breaks=("7", "6.1.9"),
        module=MODULE,
        before="                case Verdict.GONE | Verdict.EXPELLED:\n",
        after="                case Verdict.GONE | Verdict.EXPELLED | Verdict.FROZEN:\n",
    ),
)
