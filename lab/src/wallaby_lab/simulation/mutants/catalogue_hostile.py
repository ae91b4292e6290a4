"""Mutants that were written against the catalogue: single edits of every room, most of them unnoticed at first."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

COORDINATOR = "wallaby.coordinator.coordinator"
DETECTOR = "wallaby.coordinator.detector"
STALLS = "wallaby.coordinator.stalls"
BACKUP = "wallaby.exchange.backup"
STORE = "wallaby.gcs.memory"
ACTIONS = "wallaby.head.actions"
ATTEMPT = "wallaby.lineage.attempt"
CHOOSE = "wallaby.lineage.choose"
GRAPH = "wallaby.lineage.graph"
INBOX = "wallaby.lineage.inbox"
LINEAGE = "wallaby.lineage.lineage"
OUTBOX = "wallaby.lineage.outbox"
RECONCILE = "wallaby.lineage.reconcile"
TOLERANCE = "wallaby.lineage.tolerance"
SESSION = "wallaby.node.session"
TASK_MANAGER = "wallaby.worker.taskmanager"

HOSTILE: tuple[Mutant, ...] = (
    Mutant(
        name="retraced-under-the-first-names",
        what="a channel that continues from a saved state repeats its tasks under the names of its first ones",
        breaks=("4",),
        module=ATTEMPT,
        before="enumerate(records[base:], base)",
        after="enumerate(records[base:])",
    ),
    Mutant(
        name="commit-of-an-old-epoch-noted",
        what="deliveries that a commit reported in an old epoch count as known to the store in the new one",
        breaks=("3",),
        module=ATTEMPT,
        before=(
            "                if context.epoch == epoch:\n                    context.outbox.reported(news)\n"
        ),
        after="                context.outbox.reported(news)\n",
    ),
    Mutant(
        name="rest-without-its-side-inputs",
        what="a task that goes on with a rest is executed without the side inputs of its stage",
        breaks=("1",),
        module=ATTEMPT,
        before="return replace(chosen, draw=None, split=None)",
        after="return replace(chosen, draw=None, split=None, sides=0)",
    ),
    Mutant(
        name="early-end-without-an-answer-is-told",
        what="an early end that the store did not answer is not told again",
        breaks=("7",),
        module=ATTEMPT,
        before=(
            "            case Verdict.FROZEN | Verdict.STALE | None:\n"
            "                run.context.look_wanted = True\n"
            "                yield Pause(RETRY_MS, FailPoint.CLOSE_EARLY)"
        ),
        after=(
            "            case Verdict.FROZEN | Verdict.STALE:\n"
            "                run.context.look_wanted = True\n"
            "                yield Pause(RETRY_MS, FailPoint.CLOSE_EARLY)"
        ),
    ),
    Mutant(
        name="ended-with-a-rest",
        what="a channel whose last task has left a rest counts as ended",
        breaks=("3",),
        module=ATTEMPT,
        before="run.context.outbox.publish(task, ended=final)",
        after="run.context.outbox.publish(task, ended=final or chosen.last)",
    ),
    Mutant(
        name="split-of-a-repeated-commit-not-taken",
        what="a reader whose commit was applied before does not take the split that comes with the answer",
        breaks=("2",),
        module=ATTEMPT,
        before="    run.split = reply.split\n",
        after="    if reply.verdict is Verdict.DONE:\n        run.split = reply.split\n",
    ),
    Mutant(
        name="states-distinguished-by-outputs",
        what="the name of a saved state does not depend on what its task drew, only on what it output",
        breaks=("2",),
        module=LINEAGE,
        before="encode(replace(record, saved=False))",
        after="encode(replace(record, saved=False, draw=None))",
        policy="checkpoint+lineage",
    ),
    Mutant(
        name="phase-over-with-one-link",
        what="the inputs of a phase count as consumed when one of its links is",
        breaks=("1",),
        module=CHOOSE,
        before="if all(inbox.is_exhausted(link) for link in links):\n            continue",
        after="if any(inbox.is_exhausted(link) for link in links):\n            continue",
    ),
    Mutant(
        name="static-draw-short-at-one-end",
        what="a static draw is shorter as soon as one of its channels ends",
        breaks=("1",),
        module=CHOOSE,
        before="(left == 0 or all(inbox.is_ending(u) for u in upstreams))",
        after="(left == 0 or any(inbox.is_ending(u) for u in upstreams))",
    ),
    Mutant(
        name="begun-with-one-channel",
        what="a staged channel begins when something of one channel of each input has arrived",
        breaks=("1",),
        module=INBOX,
        before="return all(lane.consumed or 0 in lane.held",
        after="return any(lane.consumed or 0 in lane.held",
    ),
    Mutant(
        name="staged-in-its-first-phase-only",
        what="a staged channel begins when something of its build side has arrived",
        breaks=("1",),
        module=TOLERANCE,
        before="phases = graph.phases(stage) if self.staged else ()",
        after="phases = graph.phases(stage)[:1] if self.staged else ()",
    ),
    Mutant(
        name="told-in-an-old-epoch",
        what="an ended channel that had nothing to report in an old epoch is not asked in the new one",
        breaks=("3",),
        module=OUTBOX,
        before="        self._told = set()\n        self._refused = set()",
        after="        self._refused = set()",
    ),
    Mutant(
        name="through-in-an-old-epoch",
        what="an edge that had nothing due in an old epoch counts as through in the new one",
        breaks=("3",),
        module=OUTBOX,
        before="        self._through = {}\n        self._told",
        after="        self._told",
    ),
    Mutant(
        name="still-ended-when-begun-again",
        what="a channel that ended here before counts as ended when it begins here again",
        breaks=("3",),
        module=OUTBOX,
        before="        self._ended.discard(channel)\n        self._begin_anew(channel)",
        after="        self._begin_anew(channel)",
    ),
    Mutant(
        name="state-for-the-least-need",
        what="a channel continues from the state that suits the consumer that needs least",
        breaks=("8",),
        module=RECONCILE,
        before="min(lost, default=",
        after="max(lost, default=",
    ),
    Mutant(
        name="ended-channels-moved-for-nothing",
        what="a lost channel that has ended moves although nobody lacks its outputs",
        breaks=("8",),
        module=RECONCILE,
        before="        elif leaves and behind:\n",
        after="        elif leaves:\n",
    ),
    Mutant(
        name="reader-with-waiting-re-reads-not-moved",
        what="a lost reader that has ended does not move if only re-reads of an earlier recovery wait",
        breaks=("8",),
        module=RECONCILE,
        before="(not self._ended(name) or needs or behind)",
        after="(not self._ended(name) or behind)",
    ),
    Mutant(
        name="dropped-re-read-raises-delivered",
        what="an edge whose re-read nobody needs any more counts as delivered up to that re-read",
        breaks=("3",),
        module=RECONCILE,
        before="min(self._delivered[edge], reread.first)",
        after="reread.first",
    ),
    Mutant(
        name="re-reads-of-the-emptied-kept",
        what="a consumer that starts anew keeps the re-reads that waited for it before",
        breaks=("8",),
        module=RECONCILE,
        before="        self._needing.add(name)\n        self._emptied.add(name)\n",
        after="        self._needing.add(name)\n",
    ),
    Mutant(
        name="losses-of-ended-channels",
        what="a channel that has ended counts workers that were lost with its next task",
        breaks=("7",),
        module=RECONCILE,
        before="            if not self._ended(name) and self._before.departed",
        after="            if self._before.departed",
    ),
    Mutant(
        name="only-the-last-loss-counts",
        what="a channel's losses begin at one with each worker",
        breaks=("7",),
        module=RECONCILE,
        before="self._before.channels[name].losses + 1",
        after="1",
    ),
    Mutant(
        name="early-end-producers-first",
        what="an early end closes channels in an order in which their consumers come last",
        breaks=("8",),
        module=GRAPH,
        before="for name in reversed(self.channels)\n            if name.stage in cone",
        after="for name in self.channels\n            if name.stage in cone",
    ),
    Mutant(
        name="no-room-after-a-saved-state",
        what="the inbox of a channel that continues from a state lets only its first outputs pass a full window",
        breaks=("5",),
        module=INBOX,
        before="            lane.wanted = max(lane.wanted, count + self._reserve)\n            for seq",
        after="            for seq",
        policy="checkpoint+lineage",
    ),
    Mutant(
        name="passed-through-from-the-first",
        what="a channel that is passed through to takes its inputs from the first channel",
        breaks=("1",),
        module=GRAPH,
        before="return (Upstream(link, channel.channel),)",
        after="return (Upstream(link, 0),)",
    ),
    Mutant(
        name="closed-channel-stops-its-retrace",
        what="a closed channel that repeats lost outputs stops after the first",
        breaks=("5",),
        module=ATTEMPT,
        before="            ended = record.final\n",
        after="            ended = record.final\n            if run.closed:\n                break\n",
    ),
    Mutant(
        name="rest-of-a-split-lost",
        what="a commit does not name the rest of the split that was read",
        breaks=("7",),
        module=ATTEMPT,
        before="reply = yield from _commit(run, task, record, output.next_split)",
        after="reply = yield from _commit(run, task, record, None)",
    ),
    Mutant(
        name="gaps-taken-as-arrived",
        what="a retrace goes on when as many outputs as it draws have arrived, whichever they are",
        breaks=("4",),
        module=INBOX,
        before="return all(len(self.ready(upstream)) >= count",
        after="return all(len(self._lanes[upstream].held) >= count",
    ),
    Mutant(
        name="head-accused",
        what="a worker that cannot reach the head accuses the head, which nobody can expel",
        breaks=("7",),
        module=SESSION,
        before="accused = self.worker if target == HEAD else target",
        after="accused = target",
    ),
    Mutant(
        name="re-read-waits-over-epochs",
        what="a slot goes on waiting for the side inputs of a re-read when its epoch has ended",
        breaks=("7",),
        module=SESSION,
        before=(
            "            yield Await()\n"
            "            if epoch != self.context.epoch or self.over:\n"
            "                return False\n"
        ),
        after="            yield Await()\n",
    ),
    Mutant(
        name="full-window-is-no-answer",
        what="a push that is answered, and for which there was no room, counts as not answered",
        breaks=("8",),
        module=SESSION,
        before="self.reaching.note(target, spoken_of, answered=reply is not None)",
        after=(
            "self.reaching.note(target, spoken_of, answered=reply is not None and reply.accepted and "
            "any(reply.held))"
        ),
    ),
    Mutant(
        name="re-read-to-any-worker",
        what="a re-read is given to a worker that hosts no channel of its stage",
        breaks=("5",),
        module=STORE,
        before="        if reread.channel.stage in stages:\n            return at",
        after="        if stages or at >= 0:\n            return at",
    ),
    Mutant(
        name="push-of-an-old-epoch-judged",
        what="a push that was not answered in an old epoch counts in the new one",
        breaks=("8",),
        module=SESSION,
        before=(
            "            if self.context.epoch == epoch:\n"
            "                yield from self._judge(target, items, reply)\n"
        ),
        after="            yield from self._judge(target, items, reply)\n",
    ),
    Mutant(
        name="deliveries-fall",
        what="a report of deliveries that comes late replaces a later one",
        breaks=("3",),
        module=STORE,
        before="        if count > state.delivered[edge]:",
        after="        if count != state.delivered[edge]:",
    ),
    Mutant(
        name="closed-with-one-consumer",
        what="an early end closes channels of which one consumer has ended",
        breaks=("7",),
        module=STORE,
        before="if not channel.ended and all(state.channels[consumer].ended",
        after="if not channel.ended and any(state.channels[consumer].ended",
    ),
    Mutant(
        name="claims-outlive-a-resume",
        what="a slot keeps its re-read over a recovery that gives it to another",
        breaks=("9",),
        module=STORE,
        before="        state.claims.clear()\n",
        after="",
    ),
    Mutant(
        name="run-named-after-its-freeze",
        what="a channel run is named by the epoch of the freeze before it",
        breaks=("9",),
        module=STORE,
        before="since_epoch=state.epoch + 1)",
        after="since_epoch=state.epoch)",
    ),
    Mutant(
        name="leaving-forgotten-by-a-freeze",
        what="a freeze forgets which workers had announced that they leave",
        breaks=("6",),
        module=STORE,
        before=(
            "        for worker in draining:\n"
            "            if worker in state.members:\n"
            "                state.members[worker] = True\n"
        ),
        after=(
            "        for worker in state.members:\n            state.members[worker] = worker in draining\n"
        ),
    ),
    Mutant(
        name="any-lease-excuses",
        what="a worker that does not answer stays if the store still has its lease, expired or not",
        breaks=("7",),
        module=COORDINATOR,
        before="for lease in younger if lease.worker in silent and current(lease)}",
        after="for lease in younger if lease.worker in silent}",
    ),
    Mutant(
        name="leaving-not-asked",
        what="the stall watch does not ask workers that are about to leave",
        breaks=("7",),
        module=STALLS,
        before="asked = (HEAD, *status.members, *status.draining)",
        after="asked = (HEAD, *status.members)",
    ),
    Mutant(
        name="excused-for-ever",
        what="a worker that answers the head and never renews its lease stays",
        breaks=("7",),
        module=DETECTOR,
        before="return now_ms - since_ms > EXCUSED_LEASES * self._lease_ms",
        after="return False",
    ),
    Mutant(
        name="registered-without-an-answer",
        what="a worker whose registration was not answered renews, is unknown, and ends",
        breaks=("8",),
        module=TASK_MANAGER,
        before="self._registered = renewing or answer is not None",
        after="self._registered = True",
    ),
    Mutant(
        name="open-without-an-answer",
        what="a query counts as open at a worker although the answer to opening it was lost",
        breaks=("7",),
        module=TASK_MANAGER,
        before=(
            "                if query not in self.worker_query and (yield from ask(OpenSession(query))):\n"
            "                    self.worker_query.add(query)"
        ),
        after=(
            "                if query not in self.worker_query:\n"
            "                    self.worker_query.add(query)\n"
            "                    yield OpenSession(query)"
        ),
    ),
    Mutant(
        name="leaving-is-not-needed",
        what="a worker that is about to leave a query counts as needless to it",
        breaks=("8",),
        module=ACTIONS,
        before="effect.worker in (*status.members, *status.draining) for",
        after="effect.worker in status.members for",
    ),
    Mutant(
        name="needed-by-all-or-none",
        what="a worker counts as needed only if all queries need it",
        breaks=("8",),
        module=ACTIONS,
        before="return any(effect.worker in",
        after="return all(effect.worker in",
    ),
    Mutant(
        name="replaced-and-still-counted",
        what="an output in memory that another run's replaces is counted for ever",
        breaks=("10",),
        module=BACKUP,
        before=(
            "                return False  # the old output stays until the new one is stored\n"
            "            self._let_go(query, task)\n"
        ),
        after="                return False  # the old output stays until the new one is stored\n",
        interleaved=True,
    ),
    Mutant(
        name="first-on-disk-stays",
        what="an output that goes to disk does not replace one of an earlier run",
        breaks=("2",),
        module=BACKUP,
        before="            if not self._stays(query, task, entry):\n                self._let_go",
        after="            if task not in self._outputs.get(query, {}):\n                self._let_go",
        interleaved=True,
    ),
    Mutant(
        name="disk-of-the-dropped-never-free",
        what="the disk space of a dropped query counts as taken for ever",
        breaks=("10",),
        module=BACKUP,
        before="self._disk.give(self._disk_bytes.pop(query, 0))",
        after="self._disk_bytes.pop(query, 0)",
        interleaved=True,
    ),
    Mutant(
        name="first-slice-too-large",
        what="a slice that is larger than a push may be is never sent",
        breaks=("7",),
        module=BACKUP,
        before="if slices and limit_bytes is not None and total_bytes > limit_bytes",
        after="if limit_bytes is not None and total_bytes > limit_bytes",
        interleaved=True,
    ),
    Mutant(
        name="dropped-and-kept-again",
        what="an output that is written while its query is dropped is kept",
        breaks=("10",),
        module=BACKUP,
        before=(
            "            if query in self._dropped:\n"
            "                return True\n"
            "            if places is None"
        ),
        after="            if places is None",
        interleaved=True,
    ),
)
