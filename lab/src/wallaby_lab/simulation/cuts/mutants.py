"""Mutants of coordinated snapshots, hunted under the policy that takes them."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

ALIGNED_MODULE = "wallaby.lineage.aligned"
BARRIERS_MODULE = "wallaby.lineage.barriers"
POLICY = "checkpoint"

SNAPSHOTS: tuple[Mutant, ...] = (
    Mutant(
        name="barrier-before-the-part-is-saved",
        what="a channel passes a barrier on, and only then saves its part of the snapshot",
        breaks=("1",),
        module=ALIGNED_MODULE,
        before="    yield from ask(SaveCut(TaskName(*run.channel, run.seq), number, cut))\n"
        "    yield from _pass_on(run, Barrier(number))\n",
        after="    yield from _pass_on(run, Barrier(number))\n"
        "    yield from ask(SaveCut(TaskName(*run.channel, run.seq), number, cut))\n",
        policy=POLICY,
    ),
    Mutant(
        name="snapshots-of-the-first-barrier",
        what="a channel takes its part when the first of its inputs has reached the barrier",
        breaks=("3",),
        module=BARRIERS_MODULE,
        before="        return None if waits else Aligned(number)\n",
        after="        return Aligned(number)\n",
        policy=POLICY,
    ),
    Mutant(
        name="draws-reach-past-barriers",
        what="a channel consumes what is behind a barrier while it waits for the others",
        breaks=("1", "3"),
        module=BARRIERS_MODULE,
        before="        while (piece := lane.held.get(seq)) is not None and not isinstance(piece.body, Barrier):\n",
        after="        while (piece := lane.held.get(seq)) is not None:\n",
        policy=POLICY,
    ),
    Mutant(
        name="snapshots-never-given-up",
        what="a channel waits for a barrier behind rows that it may consume only after what the barrier holds back",
        breaks=("7",),
        module=BARRIERS_MODULE,
        before="                if lane.consumed in lane.held and self._rank[upstream.link] > rank and reached:\n"
        "                    return Void(number)\n",
        after="",
        policy=POLICY,
    ),
    Mutant(
        name="void-barriers-taken-for-others",
        what="a channel takes its part of a snapshot that another channel has given up",
        breaks=("3",),
        module=BARRIERS_MODULE,
        before="        if any(barrier.void for barrier in heads.values()):\n            return Void(number)\n",
        after="",
        policy=POLICY,
    ),
    Mutant(
        name="rows-given-out-at-once",
        what="the client gets rows before a complete snapshot covers them",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="        asked = inbox.alignment()\n        if isinstance(asked, Aligned):\n            covered",
        after="        if held:\n            yield Cover(tuple(held), 0, (), whole=True)\n            held = []\n"
        "        asked = inbox.alignment()\n        if isinstance(asked, Aligned):\n            covered",
        policy=POLICY,
    ),
    Mutant(
        name="rows-held-back-for-ever",
        what="the collector forgets the rows that it holds back when a snapshot is given up",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="        elif isinstance(asked, Void):\n            inbox.pass_barrier(asked.number)\n",
        after="        elif isinstance(asked, Void):\n            held = []\n"
        "            inbox.pass_barrier(asked.number)\n",
        policy=POLICY,
    ),
    Mutant(
        name="readers-go-back-to-their-first-split",
        what="a reader goes on from a snapshot with the splits that it has read before",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="        state, run.split = cut.state, cut.split\n",
        after="        state = cut.state\n",
        policy=POLICY,
    ),
    Mutant(
        name="states-left-behind",
        what="a channel goes on from a snapshot without its state",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="        state, run.split = cut.state, cut.split\n",
        after="        run.split = cut.split\n",
        policy=POLICY,
    ),
    Mutant(
        name="ended-channels-begin-anew",
        what="a channel that had ended at the snapshot starts from the beginning",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="        if cut is None:\n            end_run(run)\n            return\n        inbox.go_on_from(cut)\n"
        "        state, run.split = cut.state, cut.split\n",
        after="        if cut is not None:\n            inbox.go_on_from(cut)\n"
        "            state, run.split = cut.state, cut.split\n",
        policy=POLICY,
    ),
    Mutant(
        name="ends-of-inputs-not-in-the-snapshot",
        what="a channel that goes on waits for inputs that had ended before the snapshot",
        breaks=("7",),
        module=BARRIERS_MODULE,
        before="        self.end_upstreams(cut.ended)\n",
        after="",
        policy=POLICY,
    ),
    Mutant(
        name="side-inputs-not-in-the-snapshot",
        what="a channel goes on without the part of its side inputs that had arrived before the snapshot",
        breaks=("1", "7"),
        module=BARRIERS_MODULE,
        before="            self._beside[upstream] = beside.slices\n",
        after="",
        policy=POLICY,
    ),
    Mutant(
        name="side-inputs-beyond-the-barrier",
        what="a part of a snapshot has side inputs that are sent again after a roll-back",
        breaks=("3",),
        module=BARRIERS_MODULE,
        before="            if upstream.link not in self._used and _is_at(piece, number):\n"
        "                ended = False\n                break\n",
        after="",
        policy=POLICY,
    ),
    Mutant(
        name="used-side-inputs-still-to-be-cut",
        what="a task uses side inputs from behind a barrier, and its channel then takes part in that snapshot",
        breaks=("3",),
        module=BARRIERS_MODULE,
        before="        return Void(latest) if latest > self.passed else None\n",
        after="        return None\n",
        policy=POLICY,
    ),
    Mutant(
        name="readers-ignore-barriers-beside",
        what="a reader begins a snapshot of its own accord while its side inputs are still coming",
        breaks=("3",),
        module=BARRIERS_MODULE,
        before="        return not self._heads() and all(map(self._is_lane_whole, lanes))\n",
        after="        return not self._heads()\n",
        policy=POLICY,
    ),
    Mutant(
        name="next-split-is-everybody's",
        what="a reader takes the split after its last one, which belongs to another channel",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="    following = split % stage.splits + stage.channels\n",
        after="    following = split % stage.splits + 1\n",
        policy=POLICY,
    ),
    Mutant(
        name="snapshots-with-a-rest",
        what="a channel takes part in a snapshot while rows of its last task wait to be handed on",
        breaks=("7",),
        module=ALIGNED_MODULE,
        before="        while has_rest:\n"
        "            state, ended, has_rest = yield from _attempt(run, state, chosen)\n",
        after="        while has_rest:\n            state, ended, has_rest = yield from _attempt(run, state, chosen)\n"
        "            yield from _heed(run, inbox, state)\n",
        policy=POLICY,
    ),
)
