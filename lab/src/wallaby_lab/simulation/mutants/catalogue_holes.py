"""Mutants that repeat earlier bugs: runs that end, wires that stay cut, complaints, submissions without an answer."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

SESSION = "wallaby.node.session"
EFFECTS = "wallaby.lineage.effects"
STORE = "wallaby.gcs.memory"
COMPLAINTS = "wallaby.gcs.complaints"
REACHING = "wallaby.node.reaching"
REQUESTS = "wallaby.coordinator.requests"
COORDINATOR = "wallaby.coordinator.coordinator"

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
        policy="checkpoint+lineage",
    ),
    Mutant(
        name="old-tenure-publishes-for-the-new-one",
        what="the old generator of a channel that was rewound in place goes on, and only its commits are refused",
        breaks=("5", "6"),
        module=SESSION,
        before=_HELD,
        after=_HELD_LONGER,
        policy="checkpoint+lineage",
    ),
    Mutant(
        name="first-attempt-stays-in-the-backup",
        what="what was kept first under a name is sent, though another attempt was committed",
        breaks=("2",),
        module=EFFECTS,
        before=_REPLACES,
        after="    return False\n",
        policy="checkpoint+lineage",
    ),
    Mutant(
        name="last-kept-stays-in-the-backup",
        what="an attempt of an old run that is kept late replaces the one that was committed",
        breaks=("2",),
        module=EFFECTS,
        before=_REPLACES,
        after="    return True\n",
        policy="checkpoint+lineage",
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
