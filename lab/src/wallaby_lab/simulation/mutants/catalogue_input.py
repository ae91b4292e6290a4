"""Mutants of the input side: choice, inbox and windows."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

CHOOSE = "wallaby.lineage.choose"
MODULE = "wallaby.lineage.inbox"
ATTEMPT = "wallaby.lineage.attempt"
SESSION = "wallaby.node.session"

_READY = """        sizes = []
        seq = lane.consumed
        while seq in lane.held:
            sizes.append(lane.held[seq].size_bytes)
            seq += 1
        return tuple(sizes)
"""

INPUT: tuple[Mutant, ...] = (
    Mutant(
        name="probe-before-build",
        what="a join draws from its probe side while its build side is not consumed",
        breaks=("1",),
        module=CHOOSE,
        before="    for links in graph.phases(channel.stage):\n",
        after="    for links in (tuple(link for links in graph.phases(channel.stage) for link in links),):\n",
    ),
    Mutant(
        name="read-before-its-broadcast-side",
        what="a reader does not wait for the side input that all its tasks need",
        breaks=("1", "7"),
        module=ATTEMPT,
        before="            if sides_ready(context.graph, name.stage, run.inbox):\n",
        after="            if host is not None:\n",
    ),
    Mutant(
        name="step-before-its-broadcast-side",
        what="a stage with a main input does not wait for its side input",
        breaks=("1", "7"),
        module=CHOOSE,
        before="    if not (sides_ready(graph, channel.stage, inbox) and tolerance.",
        after="    if not (tolerance.",
    ),
    Mutant(
        name="filter-applied-in-part",
        what="a read uses an optional side input of which only a part has arrived",
        breaks=("1", "7"),
        module=CHOOSE,
        before="    return sum(1 << bit for bit, link in enumerate(graph.sides(stage)) if inbox.is_whole(link))\n",
        after="    return sum(1 << bit for bit, link in enumerate(graph.sides(stage)))\n",
    ),
    Mutant(
        name="side-input-whole-with-its-last-output",
        what="a side input counts as whole once its last output is there, although earlier ones are not",
        breaks=("1", "6.1.8"),
        module=MODULE,
        before="        return all(lane.total is not None and len(lane.held) == lane.total for lane",
        after="        return all(lane.total is not None for lane",
    ),
    Mutant(
        name="side-input-in-order-of-arrival",
        what="a side input is put together in the order in which its outputs arrived",
        breaks=("4", "H7", "6.1.7"),
        module=MODULE,
        before="for lane in self._by_link[link] for seq in sorted(lane.held))\n",
        after="for lane in self._by_link[link] for seq in lane.held)\n",
    ),
    Mutant(
        name="draw-in-order-of-size",
        what="the channels of a draw are put together in an order that the record does not say",
        breaks=("4", "H7", "6.1.7"),
        module=MODULE,
        before="        taken: list[Slice] = []\n        for upstream, count in draw.upstreams:\n",
        after="        taken: list[Slice] = []\n"
        "        for upstream, count in sorted(draw.upstreams, key=lambda d: -self._lanes[d[0]].held_bytes):\n",
    ),
    Mutant(
        name="gaps-skipped",
        what="an output is drawn although the one before it has not arrived; progress is only counted",
        breaks=("1", "6.1.4"),
        module=MODULE,
        before=_READY,
        after="        return tuple(lane.held[seq].size_bytes for seq in sorted(lane.held))\n",
        more=(
            Edit(
                MODULE,
                "            for seq in range(lane.consumed, lane.consumed + count):\n",
                "            for seq in sorted(lane.held)[:count]:\n",
            ),
        ),
    ),
    Mutant(
        name="inbox-in-order-of-arrival",
        what="an inbox is a queue: what comes late or twice is consumed late or twice",
        breaks=("1", "6.1.4", "6.1.8"),
        module=MODULE,
        before="        seq = piece.task.seq\n        if piece.edge.link in self._given_up or",
        after="        seq = lane.consumed + len(lane.held)\n        if piece.edge.link in self._given_up or",
    ),
    Mutant(
        name="end-of-input-by-its-number-alone",
        what="a channel finishes when it knows how much there will be, not when it has consumed it",
        breaks=("7", "6.1.8"),
        module=MODULE,
        before="        return all(lane.consumed == lane.total for lane in self._by_link[link])\n",
        after="        return all(lane.total is not None for lane in self._by_link[link])\n",
    ),
    Mutant(
        name="end-lost-with-an-empty-slice",
        what="a last output without rows does not say that it is the last",
        breaks=("7", "6.1.8"),
        module=MODULE,
        before="        if piece.final:\n",
        after="        if piece.final and piece.body is not None:\n",
    ),
    Mutant(
        name="empty-slices-not-counted",
        what="a slice without rows is acknowledged but not kept, so the ones after it are never next",
        breaks=("3", "5"),
        module=MODULE,
        before="        self.arrived += 1\n",
        after="        if piece.body is None and not piece.final:\n            return True\n"
        "        self.arrived += 1\n",
    ),
    Mutant(
        name="no-room-acknowledged",
        what="a slice for which there is no room is acknowledged all the same",
        breaks=("3", "5"),
        module=MODULE,
        before="        if not self.would_hold(piece):\n            return False\n",
        after="        if not self.would_hold(piece):\n            return True\n",
    ),
    Mutant(
        name="window-smaller-than-an-output",
        what="an output that is larger than the window never passes it",
        breaks=("7",),
        module=MODULE,
        before="        return not over or seq < lane.wanted\n",
        after="        return not over\n",
    ),
    Mutant(
        name="window-smaller-than-a-static-draw",
        what="the window does not make room for as many outputs as a static draw waits for",
        breaks=("7",),
        module=SESSION,
        before="        reserve = policy.outputs if isinstance(policy, Static) else 1\n",
        after="        reserve = 1\n",
        more=(
            Edit(
                SESSION,
                "from wallaby.lineage.choose import DrawPolicy, Static",
                "from wallaby.lineage.choose import Policy",
            ),
        ),
    ),
    Mutant(
        name="window-not-moved-on",
        what="only the first outputs of an edge pass a full window, not the next ones",
        breaks=("7",),
        module=MODULE,
        before="            lane.wanted = max(lane.wanted, lane.consumed + self._reserve)\n",
        after="",
    ),
    Mutant(
        name="worker-wide-window",
        what="one limit for all that a worker holds: probe rows leave no room for the build side",
        breaks=("7", "6.1.9"),
        module=SESSION,
        before="        held = tuple(inbox.offer(piece)",
        after="        used = sum(lane.held_bytes for t in self.runs.values() for lane in t.inbox._lanes.values())\n"
        "        if used >= self._settings.window_bytes:\n"
        "            return PushReply(accepted=True, held=(False,) * len(slices))\n"
        "        held = tuple(inbox.offer(piece)",
    ),
    Mutant(
        name="window-of-a-channel-shared-by-its-edges",
        what="one window for all edges of a channel, which a draw may not pass",
        breaks=("7",),
        module=MODULE,
        before="        over = lane.windowed and lane.held_bytes + promised_bytes + piece.size_bytes"
        " > self._window_bytes\n"
        "        return not over or seq < lane.wanted\n",
        after="        used = sum(other.held_bytes for other in self._lanes.values() if other.windowed)\n"
        "        over = lane.windowed and used and used + piece.size_bytes > self._window_bytes\n"
        "        return not over\n",
    ),
    Mutant(
        name="window-on-side-inputs",
        what="side inputs, which stay until the end, have a window like the others",
        breaks=("7",),
        module=MODULE,
        before="                graph.links[e.link].kind is LinkKind.MAIN, reserve, self._sums[e.link]\n",
        after="                isinstance(graph.links[e.link].kind, LinkKind), reserve, self._sums[e.link]\n",
    ),
    Mutant(
        name="side-inputs-without-a-limit",
        what="side inputs for which there is no room are taken all the same",
        breaks=("7",),
        module="wallaby.node.session",
        before="        if size <= limit:\n            return None\n",
        after="        if size >= 0:\n            return None\n",
    ),
    Mutant(
        name="side-inputs-counted-for-each-channel",
        what="a side input that several channels of a worker share counts once for each of them",
        breaks=("7",),
        module="wallaby.node.session",
        before="sizes[link] = max(sizes.get(link, 0), size)",
        after="sizes[link] = sizes.get(link, 0) + size",
    ),
    Mutant(
        name="optional-side-input-not-given-up",
        what="an optional side input that is too large is kept",
        breaks=("10",),
        module="wallaby.node.session",
        before="                    run.inbox.give_up(link)\n",
        after="                    pass\n",
    ),
    Mutant(
        name="given-up-side-input-kept-again",
        what="what still comes of a side input that was given up is kept",
        breaks=("10",),
        module="wallaby.lineage.inbox",
        before="        self._given_up.add(link)\n",
        after="",
    ),
)
