"""Mutants of the store: fences, commits, splits, claims, and plans."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

MODULE = "wallaby.gcs.memory"
COORDINATOR = "wallaby.coordinator.coordinator"
SNAPSHOT = "wallaby.lineage.snapshot"

_REFUSED = """        refusal = _fence(state, worker, epoch)
        if refusal is not None or state is None:
"""
_OPENED = """        state.claims.clear()
        state.epoch += 1
        state.gate_open = True
"""
_NOT_AT_RESUME = Edit(MODULE, _OPENED, "        state.claims.clear()\n        state.gate_open = True\n")
_CLOSED = """        state.epoch += 1
        state.gate_open = False
"""

#: The check that a client makes before every action.
IDENTITY = (
    "        if self._server.run_id != self._run_id or self._server.replication_id != self._replication_id:\n"
)

STORE: tuple[Mutant, ...] = (
    Mutant(
        name="no-fence",
        what="the store takes every worker's write, whoever and however old it is",
        breaks=("6", "H3", "6.1.11"),
        module=MODULE,
        before="    if not _is_member(state, worker):\n        return Verdict.EXPELLED\n    if not state.gate_open:\n"
        "        return Verdict.FROZEN\n    if epoch != state.epoch:\n        return Verdict.STALE\n    return None\n",
        after="    return None\n",
    ),
    Mutant(
        name="membership-for-ever",
        what="a worker that was expelled may still look and write",
        breaks=("6", "H3", "6.1.11"),
        module=MODULE,
        before="    return worker == HEAD or worker in state.members\n",
        after="    return worker == HEAD or worker in state.members or worker in state.departed\n",
    ),
    Mutant(
        name="fence-without-epoch",
        what="a write that was sent before a recovery takes effect after it",
        breaks=("6", "H3"),
        module=MODULE,
        before="    if epoch != state.epoch:\n        return Verdict.STALE\n    return None\n",
        after="    return None\n",
    ),
    Mutant(
        name="fence-without-gate",
        what="a freeze is a flag that nobody checks",
        breaks=("6", "H3"),
        module=MODULE,
        before="    if not state.gate_open:\n        return Verdict.FROZEN\n    if epoch != state.epoch:\n"
        "        return Verdict.STALE\n    return None\n",
        after="    if epoch not in (state.epoch, state.epoch - 1):\n        return Verdict.STALE\n    return None\n",
    ),
    Mutant(
        name="acknowledge-without-fence",
        what="deliveries that were acknowledged to a lost epoch are written into the present one",
        breaks=("3", "6"),
        module=MODULE,
        before="        state = self._store.queries.get(query)\n"
        + _REFUSED
        + "            return refusal or Verdict.GONE\n"
        "        if any(",
        after="        state = self._store.queries.get(query)\n        if state is None:\n"
        "            return Verdict.GONE\n        if any(",
    ),
    Mutant(
        name="claim-without-fence",
        what="a worker of an older epoch, or none at all, can still claim and complete re-reads",
        breaks=("6", "H3"),
        module=MODULE,
        before=_REFUSED + "            return Claim(refusal or Verdict.GONE)\n",
        after="        if state is None:\n            return Claim(Verdict.GONE)\n",
    ),
    Mutant(
        name="deliveries-written-before-the-fence",
        what="a commit writes its deliveries first and is refused afterwards",
        breaks=("3", "6"),
        module=MODULE,
        before=_REFUSED + "            return tuple(CommitReply(refusal or Verdict.GONE) for _ in commits)\n",
        after="        for commit in commits if state is not None else ():\n"
        "            _raise_delivered(state, commit.delivered)\n"
        + _REFUSED
        + "            return tuple(CommitReply(refusal or Verdict.GONE) for _ in commits)\n",
    ),
    Mutant(
        name="no-new-epoch-at-resume",
        what="a resume opens the gate in the epoch of the freeze",
        breaks=("6",),
        module=MODULE,
        before=_OPENED,
        after="        state.claims.clear()\n        state.gate_open = True\n",
    ),
    Mutant(
        name="no-new-epoch-at-freeze",
        what="a freeze closes the gate in the epoch that was",
        breaks=("6",),
        module=MODULE,
        before=_CLOSED,
        after="        state.gate_open = False\n",
    ),
    Mutant(
        name="no-new-epoch-at-all",
        what="epochs never change",
        breaks=("6", "H3"),
        module=MODULE,
        before=_CLOSED,
        after="        state.gate_open = False\n",
        more=(_NOT_AT_RESUME,),
    ),
    Mutant(
        name="look-through-a-closed-gate",
        what="workers are shown the channels and routes of a frozen query, and no new epoch comes at resume",
        breaks=("6", "H3"),
        module=MODULE,
        before="        if not state.gate_open:\n            return QueryView(Verdict.FROZEN, state.epoch)\n",
        after="",
        more=(_NOT_AT_RESUME,),
    ),
    Mutant(
        name="commit-not-idempotent",
        what="a commit that is repeated after a lost reply is appended a second time",
        breaks=("2", "H5"),
        module=MODULE,
        before="    if commit.task.seq < channel.length:\n",
        after="    if commit.task.seq < channel.length - 1:\n",
    ),
    Mutant(
        name="commit-refused-when-repeated",
        what="a commit that is repeated after a lost reply is answered as if the channel were over",
        breaks=("7", "H5"),
        module=MODULE,
        before="        return CommitReply(Verdict.ALREADY, channel.split)\n",
        after="        return CommitReply(Verdict.CLOSED)\n",
    ),
    Mutant(
        name="split-lost-with-a-reply",
        what="a commit that is repeated after a lost reply does not say again which split comes next",
        breaks=("7", "H5"),
        module=MODULE,
        before="        return CommitReply(Verdict.ALREADY, channel.split)\n",
        after="        return CommitReply(Verdict.ALREADY)\n",
    ),
    Mutant(
        name="split-claimed-again-with-a-repeated-commit",
        what="a commit that is repeated after a lost reply claims one more split",
        breaks=("2", "H5"),
        module=MODULE,
        before="        return CommitReply(Verdict.ALREADY, channel.split)\n",
        after="        again = _take_split(state, name.stage) if name.stage in state.next_split else None\n"
        "        state.channels[name] = replace(channel, split=again)\n        state.version += 1\n"
        "        return CommitReply(Verdict.ALREADY, again)\n",
    ),
    Mutant(
        name="split-given-to-two",
        what="the next split is given out without moving on until somebody has read it",
        breaks=("2", "7"),
        module=MODULE,
        before="    state.next_split[stage] = split + 1\n",
        after="    state.next_split[stage] = split + (state.epoch == 1 or split % 2)\n",
    ),
    Mutant(
        name="closed-channel-commits",
        what="a channel that was closed by an early end goes on committing",
        breaks=("2",),
        module=MODULE,
        before="    if channel.closed:\n        return CommitReply(Verdict.CLOSED)\n",
        after="",
    ),
    Mutant(
        name="early-end-closes-shared-channels",
        what="an early end closes a channel that another consumer still reads",
        breaks=("5", "7"),
        module=MODULE,
        before="            if not channel.ended and all(state.channels[consumer].ended for consumer in consumers):\n",
        after="            if not channel.ended and any(state.channels[consumer].ended for consumer in consumers):\n",
    ),
    Mutant(
        name="early-end-closes-everything-above",
        what="an early end closes all that lies upstream of it",
        breaks=("5", "7"),
        module=MODULE,
        before="            if not channel.ended and all(state.channels[consumer].ended for consumer in consumers):\n",
        after="            if not channel.ended and consumers:\n",
    ),
    Mutant(
        name="plan-applied-in-pieces",
        what="a resume moves the channels in one write and resets what they need in the next",
        breaks=("5", "H6", "6.1.9", "6.1.11"),
        module=COORDINATOR,
        before="            if (yield from ask(Resume(query.id, plan, snapshot.version))) is Verdict.DONE:\n",
        after="            yield Resume(query.id, RecoveryPlan(plan.hosts, plan.bases, part=True), snapshot.version)\n"
        "            if (yield from ask(Resume(query.id, plan, snapshot.version))) is Verdict.DONE:\n",
        more=(
            Edit(
                COORDINATOR,
                "from wallaby.lineage.snapshot import Snapshot\n",
                "from wallaby.lineage.snapshot import RecoveryPlan, Snapshot\n",
            ),
            Edit(
                SNAPSHOT,
                "    rewound: tuple[ChannelName, ...] = ()\n",
                "    rewound: tuple[ChannelName, ...] = ()\n    part: bool = False\n",
            ),
            Edit(
                MODULE,
                "        for name, losses in plan.losses.items():\n",
                "        if plan.part:\n            return Verdict.ALREADY\n"
                "        for name, losses in plan.losses.items():\n",
            ),
        ),
    ),
    Mutant(
        name="gate-opened-before-the-plan",
        what="a resume opens the gate in one write and resets what was lost in the next",
        breaks=("5", "H6", "6.1.9"),
        module=COORDINATOR,
        before="            if (yield from ask(Resume(query.id, plan, snapshot.version))) is Verdict.DONE:\n",
        after="            first = replace(plan, delivered={})\n"
        "            if (yield from ask(Resume(query.id, first, snapshot.version))) is Verdict.DONE:\n"
        "                yield Resume(query.id, RecoveryPlan(delivered=plan.delivered, part=True), -1)\n",
        more=(
            Edit(
                COORDINATOR,
                "from wallaby.lineage.snapshot import Snapshot\n",
                "from dataclasses import replace\n\nfrom wallaby.lineage.snapshot import RecoveryPlan, Snapshot\n",
            ),
            Edit(
                SNAPSHOT,
                "    rewound: tuple[ChannelName, ...] = ()\n",
                "    rewound: tuple[ChannelName, ...] = ()\n    part: bool = False\n",
            ),
            Edit(
                MODULE,
                "        if state.version != version or state.gate_open:\n            return Verdict.CONFLICT\n",
                "        if plan.part:\n            state.delivered.update(plan.delivered)\n"
                "            state.version += 1\n            return Verdict.ALREADY\n"
                "        if state.version != version or state.gate_open:\n            return Verdict.CONFLICT\n",
            ),
        ),
    ),
    Mutant(
        name="plan-of-an-older-snapshot",
        what="a plan is applied although the query has changed since its snapshot",
        breaks=("8", "H6"),
        module=MODULE,
        before="        if state.version != version or state.gate_open:\n",
        after="        if state.gate_open:\n",
    ),
    Mutant(
        name="strain-forgotten-with-its-worker",
        what="that a worker was short of memory because of a query is forgotten when it is lost",
        breaks=("7",),
        module=MODULE,
        before="                    state.lost_strained.add(worker)\n",
        after="                    state.strained.add(worker)\n",
    ),
    Mutant(
        name="freeze-keeps-the-lost",
        what="a freeze closes the gate but leaves the lost worker among the members",
        breaks=("5", "6.1.9"),
        module=MODULE,
        before="                state.departed[worker] = state.members.pop(worker)\n",
        after="                state.departed[worker] = state.members[worker]\n",
    ),
    Mutant(
        name="claims-forgotten-in-a-snapshot",
        what="a reconcile does not see the re-reads that a lost worker had claimed",
        breaks=("5", "H9", "6.1.10"),
        module=MODULE,
        before="            rereads=claimed + tuple(state.rereads),\n",
        after="            rereads=tuple(state.rereads),\n",
    ),
    Mutant(
        name="claims-survive-a-resume",
        what="a resume leaves the claims of the epoch before in force",
        breaks=("8", "9"),
        module=MODULE,
        before=_OPENED,
        after="        state.epoch += 1\n        state.gate_open = True\n",
    ),
    Mutant(
        name="claim-lost-with-a-reply",
        what="a slot that asks again is given the next re-read instead of the one it holds",
        breaks=("5", "H5"),
        module=MODULE,
        before="        if held is not None and completed != TaskName(*held.channel, held.first):\n"
        "            return _claim_of(state, held)\n",
        after="",
    ),
    Mutant(
        name="re-read-claimed-by-anybody",
        what="a worker is given re-reads of a stage of which it hosts no channel, so no side inputs either",
        breaks=("7",),
        module=MODULE,
        before="        if reread.channel.stage in stages:\n",
        after="        if stages is not None:\n",
    ),
    Mutant(
        name="restarted-store-trusted",
        what="a store that comes back under another run id is used as if nothing had happened",
        breaks=("7", "H8"),
        module=MODULE,
        before=IDENTITY,
        after="        if not self._server.run_id:\n",
    ),
    Mutant(
        name="promoted-store-trusted",
        what="a store that was demoted and promoted again under the same run id is used as if nothing had happened",
        breaks=("7", "H8"),
        module=MODULE,
        before=IDENTITY,
        after="        if self._server.run_id != self._run_id:\n",
    ),
    Mutant(
        name="other-store-trusted",
        what="a client whose address leads to another store by now takes that one for its own",
        breaks=("7", "H8"),
        module=MODULE,
        before="        self._server = store\n\n    @property\n",
        after="        self._server = store\n        self._run_id, self._replication_id = store.incarnation\n\n"
        "    @property\n",
    ),
    Mutant(
        name="lost-query-taken-as-done",
        what="a query that a restarted store has forgotten ends as if its result were whole",
        breaks=("7", "H8"),
        module=MODULE,
        before=IDENTITY,
        after="        if not self._server.run_id:\n",
        more=(
            Edit(
                COORDINATOR,
                '                query, GcsLostError(f"The store no longer knows query {query.id}.", query=query.id)\n',
                "                query, None\n",
            ),
        ),
    ),
    Mutant(
        name="expelled-worker-returns",
        what="a worker that was expelled renews its lease and joins again under its old id",
        breaks=("5", "H13", "6.1.11"),
        module=MODULE,
        before="        known = store.workers.get(worker)\n        if known is None:\n            return False\n",
        after='        known = store.workers.setdefault(worker, StoredWorker(f"sim:{worker}", 0))\n',
        more=(
            Edit(
                MODULE,
                "        if worker in state.departed:\n            return Verdict.EXPELLED\n",
                "",
            ),
        ),
    ),
    Mutant(
        name="keys-of-a-frozen-query-left",
        what="a query that ends during a recovery leaves its keys",
        breaks=("10",),
        module=MODULE,
        before="        store.queries.pop(query, None)\n",
        after="        if query in store.queries and store.queries[query].gate_open:\n"
        "            del store.queries[query]\n",
    ),
    Mutant(
        name="rewound-in-place-in-the-same-run",
        what="a channel that is rewound where it is goes on under the name of its former run",
        breaks=("6",),
        module="wallaby.gcs.memory",
        before="            state.channels[name] = replace(state.channels[name], host=host, "
        "since_epoch=state.epoch + 1)\n",
        after="            was = state.channels[name]\n"
        "            since = was.since_epoch if was.host == host else state.epoch + 1\n"
        "            state.channels[name] = replace(was, host=host, since_epoch=since)\n",
    ),
    Mutant(
        name="never-set-back",
        what="a channel that has to go on from an older state keeps the newer one from which it went on before",
        breaks=("5", "8"),
        module="wallaby.gcs.memory",
        before="            state.channels[name] = replace(state.channels[name], base=base)\n",
        after="            base = max(base, state.channels[name].base)\n"
        "            state.channels[name] = replace(state.channels[name], base=base)\n",
    ),
    Mutant(
        name="re-reads-added-to-older-ones",
        what="a resume adds its re-reads to those of the recovery before",
        breaks=("9",),
        module="wallaby.gcs.memory",
        before="        state.rereads = list(plan.rereads)\n",
        after="        state.rereads += list(plan.rereads)\n",
    ),
    Mutant(
        name="drained-counts-as-lost",
        what="a worker that had announced that it leaves counts as one that was lost",
        breaks=("7",),
        module="wallaby.gcs.memory",
        before="                state.departed[worker] = state.members.pop(worker)\n",
        after="                state.departed[worker] = state.members.pop(worker) and False\n",
    ),
    Mutant(
        name="later-error-replaces-the-first",
        what="an error that is reported later, or once more, replaces the one that the user may have seen",
        breaks=("2",),
        module="wallaby.gcs.memory",
        before="        if state.error:\n            return Verdict.ALREADY\n",
        after="",
    ),
    Mutant(
        name="repeated-commit-names-its-own-rest",
        what="a commit that is repeated after a lost reply is told the rest of its split, not the split that came next",
        breaks=("2",),
        module="wallaby.gcs.memory",
        before="        return CommitReply(Verdict.ALREADY, channel.split)\n",
        after="        return CommitReply(Verdict.ALREADY, commit.next_split)\n",
    ),
    Mutant(
        name="barred-name-used-again",
        what="the store does not remember that a query was given up, and creates it when its submission comes late",
        breaks=("10",),
        module="wallaby.gcs.memory",
        before="        if query in store.barred:\n            return Verdict.GONE\n",
        after="",
    ),
    Mutant(
        name="age-of-a-complaint-begins-anew",
        what="every renewal makes a complaint young again, so that nobody is ever expelled for it",
        breaks=("7",),
        module="wallaby.gcs.complaints",
        before="            since_ms = before.since_ms if before is not None else now_ms\n",
        after="            since_ms = now_ms\n",
    ),
)
