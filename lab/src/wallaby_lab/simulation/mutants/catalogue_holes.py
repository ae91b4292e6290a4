"""Mutants that repeat earlier bugs: runs that end, wires that stay cut, complaints, submissions without an answer.

`SINGLE` has mutants of one edit each, most of them parts of such a bug: each must be noticed by itself.
"""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

SESSION = "wallaby.node.session"
EFFECTS = "wallaby.lineage.effects"
STORE = "wallaby.gcs.memory"
COMPLAINTS = "wallaby.gcs.complaints"
REACHING = "wallaby.node.reaching"
REQUESTS = "wallaby.coordinator.requests"
COORDINATOR = "wallaby.coordinator.coordinator"
DETECTOR = "wallaby.coordinator.detector"
RECONCILE = "wallaby.lineage.reconcile"

_HELD = "            while self.runs.get(run.channel) is run:\n"
_HELD_LONGER = "            while not self.over:\n"
_SINCE = "    if channel.host != worker or channel.since_epoch != commit.since_epoch:\n"
_REPLACES = "    return since_epoch >= kept_since_epoch\n"
_REREAD_JUDGED = """                if epoch == self.context.epoch:
                    yield from self._judge(target, left, reply)
"""

HOLES: tuple[Mutant, ...] = (
    Mutant(
        name="old-tenure-acts-in-the-new-epoch",
        what="the old generator of a channel that was rewound in place commits before it is stopped",
        breaks=("2", "6"),
        module=SESSION,
        before=_HELD,
        after=_HELD_LONGER,
        more=(Edit(STORE, _SINCE, "    if channel.host != worker:\n"),),
    ),
    Mutant(
        name="old-tenure-publishes-for-the-new-one",
        what="the old generator of a channel that was rewound in place goes on, and only its commits are refused",
        breaks=("5", "6"),
        module=SESSION,
        before=_HELD,
        after=_HELD_LONGER,
    ),
    Mutant(
        name="first-attempt-stays-in-the-backup",
        what="what was kept first under a name is sent, though another attempt was committed",
        breaks=("2",),
        module=EFFECTS,
        before=_REPLACES,
        after="    return False\n",
    ),
    Mutant(
        name="last-kept-stays-in-the-backup",
        what="an attempt of an old run that is kept late replaces the one that was committed",
        breaks=("2",),
        module=EFFECTS,
        before=_REPLACES,
        after="    return True\n",
    ),
    Mutant(
        name="re-reads-do-not-complain",
        what="a re-read that cannot be delivered is tried for ever, and nobody is told",
        breaks=("7",),
        module=SESSION,
        before=_REREAD_JUDGED,
        after="",
    ),
    Mutant(
        name="any-answer-excuses-a-wire",
        what="a wire counts as well once it has carried anything, though a re-read or a large output never passes",
        breaks=("7",),
        module=REACHING,
        before="                counts.pop(item, None)\n",
        after="                counts.clear()\n",
    ),
    Mutant(
        name="complaint-outlives-its-reason",
        what="a complaint is taken back only by an answer, and grows old with nobody renewing it",
        breaks=("8",),
        module=SESSION,
        before="                yield from self._speak_of(target)\n",
        after="",
        more=(
            Edit(
                COMPLAINTS,
                "max(complaint.latest_ms - complaint.since_ms,",
                "max(now_ms - complaint.since_ms,",
            ),
            Edit(
                COMPLAINTS, "            if complaint.ends_ms >= now_ms:\n", "            if now_ms >= 0:\n"
            ),
            Edit(
                COMPLAINTS, "items() if each.ends_ms >= now_ms}\n        before", "items()}\n        before"
            ),
        ),
    ),
    Mutant(
        name="submission-made-once",
        what="a submission whose reply is lost ends with an error, and the query stays in the store",
        breaks=("10", "H5"),
        module=REQUESTS,
        before="            yield Pause(RETRY_MS, FailPoint.SUBMIT)\n",
        after="            query.end(_unanswered(query, waited_ms), QueryPhase.ENDED)\n            break\n",
    ),
    Mutant(
        name="late-submission-not-barred",
        what="a submission that comes after its query was given up creates it again",
        breaks=("10",),
        module=STORE,
        before="        if query in store.barred:\n            return Verdict.GONE\n",
        after="",
    ),
    Mutant(
        name="unanswered-submission-tended",
        what="the coordinator looks after a query of which nobody knows yet whether the store holds it",
        breaks=("7",),
        module=COORDINATOR,
        before="if _is_tended(q)]:\n",
        after="if not q.ended]:\n",
    ),
)

_FAILS = """    def fail(self, query: QueryId, worker: WorkerId, epoch: int, error: str) -> Verdict:
        state = self._store.queries.get(query)
        refusal = _fence(state, worker, epoch)
"""
_BEFORE = "        before = standing.pop((reporter, query), None)\n"

SINGLE: tuple[Mutant, ...] = (
    Mutant(
        name="complaint-kept-when-nothing-is-due",
        what="a delivery that has nothing more to send waits, and leaves its complaint in the store",
        breaks=("8",),
        module=SESSION,
        before="                yield from self._speak_of(target)\n",
        after="",
    ),
    Mutant(
        name="taken-back-without-an-answer",
        what="a complaint counts as taken back although the store did not answer",
        breaks=("8",),
        module=SESSION,
        before="            if taken_back is not None and not self.reaching",
        after="            if not self.reaching",
    ),
    Mutant(
        name="refusal-is-no-answer",
        what="a worker that refuses a push counts as one that does not answer it",
        breaks=("8",),
        module=SESSION,
        before="items if reply is None or not reply.accepted else items[: len(reply.held)]",
        after="items if reply is None else items[: len(reply.held)]",
    ),
    Mutant(
        name="completed-in-an-earlier-epoch",
        what="the re-read that a slot completed in an earlier epoch is named again",
        breaks=("3",),
        module=SESSION,
        before="                completed, asked_in_epoch = None, 0\n            if not",
        after="                asked_in_epoch = 0\n            if not",
    ),
    Mutant(
        name="complaint-told-after-its-end",
        what="the coordinator is told of a complaint that nobody has renewed",
        breaks=("8",),
        module=COMPLAINTS,
        before="            if complaint.ends_ms >= now_ms:\n",
        after="            if now_ms >= 0:\n",
    ),
    Mutant(
        name="complaint-goes-on-after-its-end",
        what="a complaint that is made after an earlier one has expired is as old as that one",
        breaks=("8",),
        module=COMPLAINTS,
        before="items() if each.ends_ms >= now_ms}\n        before",
        after="items()}\n        before",
    ),
    Mutant(
        name="withdrawal-for-all-queries",
        what="a worker that takes a complaint back does so for its other queries too",
        breaks=("8",),
        module=COMPLAINTS,
        before=_BEFORE,
        after=_BEFORE
        + "        if reachable:\n"
        + "            standing = {key: each for key, each in standing.items() if key[0] != reporter}\n",
    ),
    Mutant(
        name="age-of-any-query",
        what="of the complaints of a worker for several queries, the last one counts and not the oldest",
        breaks=("8",),
        module=COMPLAINTS,
        before="max(complaint.latest_ms - complaint.since_ms, found.get(reporter, 0))",
        after="complaint.latest_ms - complaint.since_ms",
    ),
    Mutant(
        name="need-unknown-is-no-need",
        what="a worker is dismissed although the store did not say that nobody needs it",
        breaks=("8",),
        module=REQUESTS,
        before="ask(ReadNeed(worker))) is not False:\n",
        after="ask(ReadNeed(worker))) is True:\n",
    ),
    Mutant(
        name="need-asked-twice-at-most",
        what="a worker is dismissed after the second question, whatever the answers",
        breaks=("8",),
        module=REQUESTS,
        before="    while (yield from ask(ReadNeed(worker)))",
        after="    if (yield from ask(ReadNeed(worker)))",
    ),
    Mutant(
        name="leaving-announced-once",
        what="that a worker wants to leave is noted once, and not again if the store does not answer",
        breaks=("7", "H5"),
        module=REQUESTS,
        before="    while (yield from ask(AskToDrain(worker))) is None:\n",
        after="    if (yield from ask(AskToDrain(worker))) is None:\n",
    ),
    Mutant(
        name="dismissed-once",
        what="a worker that may leave is dismissed once, and not again if the store does not answer",
        breaks=("7", "H5"),
        module=REQUESTS,
        before="    while (yield from ask(Expel(worker))) is None:\n",
        after="    if (yield from ask(Expel(worker))) is None:\n",
    ),
    Mutant(
        name="error-of-an-old-epoch",
        what="an error is taken although its epoch has ended",
        breaks=("6",),
        module=STORE,
        before=_FAILS,
        after=_FAILS.replace("worker, epoch)\n", "worker, state.epoch if state is not None else 0)\n"),
    ),
    Mutant(
        name="expelled-and-registered-again",
        what="a call to register that is late brings an expelled worker back",
        breaks=("6",),
        module=STORE,
        before="        if worker in store.expelled or (known is not None and known.address != address):\n",
        after="        if known is not None and known.address != address:\n",
    ),
    Mutant(
        name="lost-and-member-again",
        what="a worker that a query has lost becomes its member again",
        breaks=("6",),
        module=STORE,
        before="        if worker in state.departed:\n            return Verdict.EXPELLED\n        if worker in",
        after="        if worker in",
    ),
    Mutant(
        name="silences-of-the-store-add-up",
        what="a store that has been silent twice counts as silent since the first time",
        breaks=("7",),
        module=COORDINATOR,
        before="        self._silent_since_ms = None\n        gone",
        after="        gone",
    ),
    Mutant(
        name="silent-store-waited-for",
        what="a store that does not answer is waited for beyond its limit",
        breaks=("7",),
        module=COORDINATOR,
        before="        if now_ms - since_ms > self._settings.silent_ms:\n",
        after="        if now_ms - since_ms > 10 * self._settings.silent_ms:\n",
    ),
    Mutant(
        name="announced-loss-counts",
        what="a worker that had announced that it leaves counts against the tasks that it had",
        breaks=("7",),
        module=RECONCILE,
        before="self._before.departed.get(self._before.channels[name].host) is False\n",
        after="self._before.channels[name].host in self._before.departed\n",
    ),
    Mutant(
        name="ranges-joined-over-a-hole",
        what="two ranges of re-reads for the same edges become one, with what lies between them",
        breaks=("8",),
        module=RECONCILE,
        before="ranges[-1].end == first and ranges[-1].edges == edges:\n",
        after="ranges[-1].edges == edges:\n",
    ),
    Mutant(
        name="ranges-joined-for-other-edges",
        what="a range of re-reads is joined with the one before, which other edges need",
        breaks=("8",),
        module=RECONCILE,
        before="ranges[-1].end == first and ranges[-1].edges == edges:\n",
        after="ranges[-1].end == first:\n",
    ),
    Mutant(
        name="fewer-wires-expelled",
        what="of the two ends of a cut wire the one with fewer reported wires is expelled",
        breaks=("8",),
        module=DETECTOR,
        before="leases[max(ranks)[2]]",
        after="leases[min(ranks)[2]]",
    ),
)
