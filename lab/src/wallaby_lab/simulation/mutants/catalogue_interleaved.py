"""Mutants of the code that performs effects in production, hunted by interleavings of its threads."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

BACKUP = "wallaby.exchange.backup"
CLIENT = "wallaby.exchange.client"
INCOMING = "wallaby.exchange.incoming"
PUSHING = "wallaby.node.pushing"
PERFORM = "wallaby.node.perform"
POOLS = "wallaby.node.pools"

INTERLEAVED: tuple[Mutant, ...] = (
    Mutant(
        name="epochs-in-one-commit",
        what="commits of several epochs go in one call, under the epoch of the last",
        breaks=("6",),
        module=PERFORM,
        before="self._committer.submit((worker_query_of(actor).query, effect.epoch), (actor, effect))",
        after="self._committer.submit((worker_query_of(actor).query, 0), (actor, effect))",
        more=(
            Edit(
                PERFORM,
                "        query, epoch = group\n",
                "        query, epoch = group[0], requests[-1][1].epoch\n",
            ),
        ),
        interleaved=True,
    ),
    Mutant(
        name="replies-to-others",
        what="the replies to a group of commits are given out from the last to the first",
        breaks=("2",),
        module=PERFORM,
        before="replies[at] if isinstance(replies, tuple)",
        after="replies[-1 - at] if isinstance(replies, tuple)",
        interleaved=True,
    ),
    Mutant(
        name="commits-left-behind",
        what="of a group that is collected while its thread was busy only the first commit is sent",
        breaks=("7",),
        module=POOLS,
        before="            groups.setdefault(entry[0], []).append(entry[1])\n",
        after="            groups.setdefault(entry[0], [entry[1]])\n",
        interleaved=True,
    ),
    Mutant(
        name="cut-slices-count-as-held",
        what="slices that were cut from a push, because it would be too large, count as held",
        breaks=("3", "5"),
        module=PUSHING,
        before="            self._node.answer(actor, effect, reply)\n\n        self._submit(actor, effect, job)\n",
        after=(
            "            if reply is not None and reply.accepted:\n"
            "                reply = PushReply(True, reply.held + (True,) * (len(effect.items) - len(slices)))\n"
            "            self._node.answer(actor, effect, reply)\n\n        self._submit(actor, effect, job)\n"
        ),
        interleaved=True,
    ),
    Mutant(
        name="asked-is-held",
        what="what the receiver said it would have room for counts as held",
        breaks=("3", "5"),
        module=CLIENT,
        before="        return reply.of_all(wanted.held) if reply is not None else None\n",
        after="        return wanted\n",
        interleaved=True,
    ),
    Mutant(
        name="dropped-while-spilled",
        what="an output whose query is dropped while it is written to disk is accounted for twice",
        breaks=("10",),
        module=BACKUP,
        before=(
            "            if self._in_memory.get((query, task)) is not entry:\n"
            "                return True  # dropped or replaced meanwhile, so already accounted for\n"
            "            assert places is not None\n"
            "            del self._in_memory[query, task]\n"
        ),
        after=(
            "            self._in_memory.pop((query, task), None)\n"
            "            if places is None:\n"
            "                return True\n"
        ),
        interleaved=True,
    ),
    Mutant(
        name="freed-before-its-place-is-set",
        what="the batches of an output that goes to disk are let go before it is said where they are",
        breaks=("10",),
        module=BACKUP,
        before=(
            "                stored.place = place\n                stored.batches = None\n"
            "            self._memory_bytes -= entry.size_bytes\n"
        ),
        after=(
            "                stored.batches = None\n                stored.place = place\n"
            "            self._memory_bytes -= entry.size_bytes\n"
        ),
        interleaved=True,
    ),
    Mutant(
        name="refused-slices-told-as-held",
        what="the reply to a push says of all slices that they are held, whatever its receiver said",
        breaks=("3", "5"),
        module=INCOMING,
        before="            held[place] = is_held\n",
        after="            held[place] = True\n",
        interleaved=True,
    ),
)
