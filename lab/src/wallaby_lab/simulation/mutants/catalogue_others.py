"""Mutants unlike those before them, of every part of the protocol: what others might get wrong.

Seeds noticed most of them at once. The others needed a new judge or aim first. Some show only after a later loss, or
only cost more.
"""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

ATTEMPT = "wallaby.lineage.attempt"
INBOX = "wallaby.lineage.inbox"
RECONCILE = "wallaby.lineage.reconcile"
SESSION = "wallaby.node.session"
MEMORY = "wallaby.gcs.memory"
COORDINATOR = "wallaby.coordinator.coordinator"
CHOOSE = "wallaby.lineage.choose"
DETECTOR = "wallaby.coordinator.detector"
DRIVING = "wallaby.node.driving"
OUTBOX = "wallaby.lineage.outbox"
STALLS = "wallaby.coordinator.stalls"
TASK_MANAGER = "wallaby.worker.taskmanager"

OTHERS: tuple[Mutant, ...] = (
    Mutant(
        name="lease-renewed-after-an-expulsion",
        what="a worker that was expelled is told that its lease is renewed",
        breaks=("7",),
        module=MEMORY,
        before=(
            "        if known is None:\n            return False\n"
            "        known.expires_at_ms = store.now_ms() + lease_ms\n        return True\n\n    def expel"
        ),
        after=(
            "        if known is None:\n            return True\n"
            "        known.expires_at_ms = store.now_ms() + lease_ms\n        return True\n\n    def expel"
        ),
    ),
    Mutant(
        name="pushes-of-a-later-epoch-taken",
        what="a worker takes pushes of an epoch that it does not know yet",
        breaks=("5", "6"),
        module=SESSION,
        before="if epoch != self.context.epoch or target != self.worker or self.over:",
        after="if epoch < self.context.epoch or target != self.worker or self.over:",
    ),
    Mutant(
        name="watermark-of-a-saved-state-one-more",
        what="one output more than a saved state has consumed is dropped from the inbox",
        breaks=("3",),
        module=INBOX,
        before="for seq in [seq for seq in lane.held if seq < count]:",
        after="for seq in [seq for seq in lane.held if seq <= count]:",
    ),
    Mutant(
        name="early-end-never-told",
        what="a channel that has enough ends, and tells nobody above it",
        breaks=("8",),
        module=ATTEMPT,
        before="    if output.satisfied:\n        yield from _close_early(run)\n",
        after="    if output.satisfied and run.closed:\n        yield from _close_early(run)\n",
    ),
    Mutant(
        name="claim-repeated-as-another",
        what="a claim without an answer is repeated under another slot, so what was granted stays claimed",
        breaks=("5", "7"),
        module=SESSION,
        before=(
            "                self.context.look_wanted = True\n                yield Pause(RETRY_MS, FailPoint.CLAIM)\n"
        ),
        after=(
            "                self.context.look_wanted = True\n                slot += 1_000\n"
            "                yield Pause(RETRY_MS, FailPoint.CLAIM)\n"
        ),
    ),
    Mutant(
        name="group-answered-as-its-first",
        what="all commits of a group get the reply to the first",
        breaks=("2",),
        module=MEMORY,
        before="        return tuple(_commit_one(state, worker, commit) for commit in commits)",
        after=(
            "        replies = tuple(_commit_one(state, worker, commit) for commit in commits)\n"
            "        return (replies[0],) * len(commits)"
        ),
    ),
    Mutant(
        name="group-ends-with-its-first",
        what="of a group only the first commit is applied, and the others are refused as if the gate were closed",
        breaks=("7",),
        module=MEMORY,
        before="        return tuple(_commit_one(state, worker, commit) for commit in commits)",
        after=(
            "        frozen = (CommitReply(Verdict.FROZEN),) * (len(commits) - 1)\n"
            "        return (_commit_one(state, worker, commits[0]), *frozen)"
        ),
    ),
    Mutant(
        name="repeated-commit-loses-its-deliveries",
        what="a commit that was applied before is answered, and the deliveries that it reports are dropped",
        breaks=("3",),
        module=MEMORY,
        before=(
            "        if _raise_delivered(state, commit.delivered):\n            state.version += 1\n"
            "        return CommitReply(Verdict.ALREADY, channel.split)"
        ),
        after="        return CommitReply(Verdict.ALREADY, channel.split)",
    ),
    Mutant(
        name="losses-of-earlier-tasks-count",
        what="the workers that were lost while earlier tasks ran count against a channel's next task",
        breaks=("7",),
        module=MEMORY,
        before="final=commit.final, split=split, losses=0",
        after="final=commit.final, split=split",
    ),
    Mutant(
        name="routes-to-the-departed",
        what="workers are told to send to hosts that the query has lost",
        breaks=("5",),
        module=MEMORY,
        before="routes={name: c.host for name, c in state.channels.items() if _is_member(state, c.host)},",
        after="routes={name: c.host for name, c in state.channels.items()},",
    ),
    Mutant(
        name="any-completion-ends-a-claim",
        what="a claim is ended by the completion of another re-read",
        breaks=("5",),
        module=MEMORY,
        before="if held is not None and completed != TaskName(*held.channel, held.first):",
        after="if held is not None and completed is None:",
    ),
    Mutant(
        name="lost-by-older-leases",
        what="a worker is taken as lost because it registered after the leases were read",
        breaks=("8",),
        module=COORDINATOR,
        before=(
            "            lost = tuple(worker for worker in lost if worker not in "
            "{lease.worker for lease in younger})\n"
        ),
        after="            lost = tuple(lost)\n",
    ),
    Mutant(
        name="acknowledgement-of-an-old-epoch-noted",
        what="what the store was told in an old epoch counts as known to it in the new one",
        breaks=("3",),
        module=SESSION,
        before="if verdict is not Verdict.DONE or self.context.epoch != epoch:\n                    break",
        after="if verdict is not Verdict.DONE:\n                    break",
    ),
    Mutant(
        name="closed-channel-not-told",
        what="a channel that was closed early goes on until a commit is refused",
        breaks=("8",),
        module=SESSION,
        before="            self.runs[assignment.channel].closed |= assignment.closed\n",
        after="            self.runs[assignment.channel].closed |= False\n",
    ),
    Mutant(
        name="re-reads-nobody-needs-count-as-delivered",
        what="a re-read that nobody needs any more is forgotten, and still counts as delivered",
        breaks=("3",),
        module=RECONCILE,
        before="                    self._delivered[edge] = min(self._delivered[edge], reread.first)\n",
        after="                    pass\n",
    ),
    Mutant(
        name="retracing-for-ever",
        what="a channel that has retraced all its records still counts as one that retraces",
        breaks=("4",),
        module=ATTEMPT,
        before="        run.phase = ChannelPhase.CHOOSING\n",
        after="",
    ),
    Mutant(
        name="arrivals-not-counted",
        what="an inbox does not count what arrives, so nobody is woken for it",
        breaks=("5",),
        module=INBOX,
        before="        self.arrived += 1\n",
        after="",
    ),
    Mutant(
        name="dropped-inputs-still-count",
        what="the inbox of an ended channel counts the bytes that it has dropped",
        breaks=("10",),
        module=INBOX,
        before=(
            "        for found in self._sums.values():\n            found.held = found.held_bytes = 0\n"
            "        for lane in self._lanes.values():\n"
        ),
        after="        for lane in self._lanes.values():\n",
    ),
    Mutant(
        name="side-inputs-reversed",
        what="the side inputs that a record names are applied in reverse order",
        breaks=("1",),
        module=ATTEMPT,
        before="for bit, link in enumerate(graph.sides(stage)) if bits >> bit & 1}",
        after="for bit, link in reversed(list(enumerate(graph.sides(stage)))) if bits >> bit & 1}",
    ),
    Mutant(
        name="reported-in-an-old-epoch",
        what="what was reported in an old epoch is kept over a recovery, so that the store is never told again",
        breaks=("3",),
        module=OUTBOX,
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
        module=SESSION,
        before="this actor was not woken for it.\n                if news == self.context.outbox.news:\n",
        after="this actor was not woken for it.\n                if True:\n",
    ),
    Mutant(
        name="draws-beyond-the-target",
        what="a draw takes all that is there, whatever its target",
        breaks=("1",),
        module=CHOOSE,
        before=" or ((counts or count) and total_bytes + size_bytes > target_bytes):\n",
        after=":\n",
    ),
    Mutant(
        name="window-without-end",
        what="what an edge holds is not counted, so its window never closes",
        breaks=("5",),
        module=INBOX,
        before="        lane.held_bytes += piece.size_bytes\n        lane.sum.held += 1\n",
        after="        lane.sum.held += 1\n",
    ),
    Mutant(
        name="paused-head-blames-workers",
        what="a driver that was paused counts as watching meanwhile, so workers that could not reach it are expelled",
        breaks=("8",),
        module=DETECTOR,
        before="        if self._watched_ms is None or now_ms - self._watched_ms > self._lease_ms:\n",
        after="        if self._watched_ms is None:\n",
    ),
    Mutant(
        name="unanswered-renewals-not-counted",
        what="a worker that is cut from the store for good goes on for ever",
        breaks=("10",),
        module=TASK_MANAGER,
        before="            unanswered = unanswered + 1 if answer is None else 0\n",
        after="            unanswered = 0\n",
    ),
    Mutant(
        name="lost-answer-waited-for",
        what="a coordinator whose answer was lost waits for ever, and recovers no query any more",
        breaks=("7",),
        module=DRIVING,
        before="        return self.name.kind.asks_again and waited_seconds > effect.answered_within_seconds\n",
        after="        return False\n",
    ),
    Mutant(
        name="late-answer-counts",
        what="an answer that was given up and comes late is taken as that to the next question",
        breaks=("7",),
        module=DRIVING,
        before="        return self.effect is effect and self.alive\n",
        after="        return self.alive\n",
    ),
    Mutant(
        name="whole-in-the-last-round",
        what="a query that becomes whole while the last answers of a stall are judged is ended",
        breaks=("7",),
        module=STALLS,
        before="        if over and _may_stall(query):\n",
        after="        if over:\n",
    ),
)
