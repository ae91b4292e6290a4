"""Mutants of what outlives a worker, saved states and durable outputs, hunted under policies that have them."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

ATTEMPT_MODULE = "wallaby.lineage.attempt"
RECONCILE_MODULE = "wallaby.lineage.reconcile"
SESSION_MODULE = "wallaby.node.session"
STATES = "checkpoint+lineage"
OUTPUTS = "spool"

DURABLE: tuple[Mutant, ...] = (
    Mutant(
        name="restored-state-with-a-fresh-inbox",
        what="a channel goes on from a saved state, and consumes its inputs from the first on",
        breaks=("1", "3"),
        module=ATTEMPT_MODULE,
        before="    run.inbox.go_on(fold(before), restored.totals)\n",
        after="    run.inbox.go_on({}, restored.totals)\n",
        policy=STATES,
    ),
    Mutant(
        name="ends-of-inputs-not-saved",
        what="a channel that goes on from a saved state waits for the end of inputs that had ended before",
        breaks=("7",),
        module=ATTEMPT_MODULE,
        before="    run.inbox.go_on(fold(before), restored.totals)\n",
        after="    run.inbox.go_on(fold(before), {})\n",
        policy=STATES,
    ),
    Mutant(
        name="state-saved-with-a-rest",
        what="a state is saved although rows of its last task wait to be handed on",
        breaks=("2", "4"),
        module="wallaby.lineage.tolerance",
        before="not (ended or rest or graph",
        after="not (ended or graph",
        policy=STATES,
    ),
    Mutant(
        name="newest-state-whoever-needs-what",
        what="a lost channel goes on from its newest state although a consumer lacks outputs from before it",
        breaks=("5", "8"),
        module=RECONCILE_MODULE,
        before="            start = self._left.newest(name, min(lost, default=self._before.channels[name].length))\n",
        after="            start = self._left.newest(name, self._before.channels[name].length)\n",
        policy=STATES,
    ),
    Mutant(
        name="live-channels-never-go-back",
        what="a channel that went on from a saved state stays, although outputs from before it are needed again",
        breaks=("5", "8"),
        module=RECONCILE_MODULE,
        before="        if lost or (leaves and not self._ended(name)):\n",
        after="        lost = lost if leaves else []\n"
        "        if lost or (leaves and not self._ended(name)):\n",
        policy=STATES,
    ),
    Mutant(
        name="rewound-where-it-stays-and-not-begun-again",
        what="a worker goes on with a channel that was rewound to an earlier state and stays with it",
        breaks=("5",),
        module=SESSION_MODULE,
        before=" if present.get(name) != (run.since_epoch, run.base)]\n",
        after=" if name not in present]\n",
        policy=STATES,
    ),
    Mutant(
        name="kept-outputs-without-a-host",
        what="a lost channel that has ended is left where it was, although its outputs are still needed",
        breaks=("5", "8"),
        module=RECONCILE_MODULE,
        before="        elif leaves and behind:\n            self._moved.append(name)\n",
        after="        elif leaves and behind:\n            pass\n",
        policy=OUTPUTS,
    ),
    Mutant(
        name="kept-outputs-not-sent-again",
        what="the new host of a channel sends only what it makes itself, and not what is in the durable store",
        breaks=("5",),
        module=SESSION_MODULE,
        before="        self.context.outbox.start(assignment.channel, *tolerance.at_hand(assignment.base, "
        "assignment.length))\n",
        after="        self.context.outbox.start(assignment.channel, assignment.length)\n",
        policy=OUTPUTS,
    ),
    Mutant(
        name="lost-outputs-taken-to-be-at-hand",
        what="the policy says that a host has all outputs of its channels, also those that it never made",
        breaks=("5",),
        module="wallaby.lineage.tolerance",
        before="        return length if leaves else base\n",
        after="        return length if leaves else 0\n",
        policy=STATES,
    ),
    Mutant(
        name="outputs-of-the-lost-taken-to-be-at-hand",
        what="the policy says that what a lost worker had made can still be had",
        breaks=("5",),
        module="wallaby.lineage.tolerance",
        before="        return length if leaves else base\n",
        after="        return base\n",
    ),
    Mutant(
        name="newest-state-not-used",
        what="a channel never goes on from the state after the last task that may be kept, but from the one before",
        breaks=("8",),
        module="wallaby.lineage.recoverable",
        before="if c.seq <= end",
        after="if c.seq < end",
        policy=STATES,
    ),
    Mutant(
        name="state-without-its-last-draw",
        what="what the last task before a saved state has consumed is sent again to the channel that goes on from it",
        breaks=("5",),
        module="wallaby.lineage.recoverable",
        before="        advance(watermark, record.draw)\n"
        "        if record.saved:\n"
        "            found.append(Checkpoint(seq + 1, dict(watermark)))\n",
        after="        if record.saved:\n"
        "            found.append(Checkpoint(seq + 1, dict(watermark)))\n"
        "        advance(watermark, record.draw)\n",
        policy=STATES,
    ),
    Mutant(
        name="never-from-a-state-if-nothing-is-lost",
        what="a lost channel whose outputs outlive it begins anew, and not with its newest state",
        breaks=("8",),
        module=RECONCILE_MODULE,
        before="min(lost, default=self._before.channels[name].length)",
        after="min(lost, default=0)",
        policy="spool+checkpoint",
    ),
)
