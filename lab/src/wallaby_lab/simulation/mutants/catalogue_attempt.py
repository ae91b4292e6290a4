"""Mutants of Algorithm 1: mistakes in how a channel executes, commits, retraces and ends."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Edit, Mutant

MODULE = "wallaby.lineage.attempt"
CHOOSE = "wallaby.lineage.choose"
INBOX = "wallaby.lineage.inbox"
MEMORY = "wallaby.gcs.memory"

_COMMITTING = "    reply = yield from _commit(run, task, record, output.next_split)\n"
_REFUSED = """                context.look_wanted = True
                yield Pause(RETRY_MS, FailPoint.COMMIT)
            case unexpected:"""

#: A refused or unanswered commit returns to the attempt.
_GIVES_BACK = Edit(
    MODULE,
    _REFUSED,
    """                context.look_wanted = True
                yield Pause(RETRY_MS, FailPoint.COMMIT)
                return CommitReply(Verdict.STALE)
            case unexpected:""",
)

ATTEMPT: tuple[Mutant, ...] = (
    Mutant(
        name="deliver-before-commit",
        what="the paper's printed order: an output leaves before its record is committed",
        breaks=("1", "H1", "6.1.3"),
        module=MODULE,
        before=_COMMITTING,
        after="    run.context.outbox.publish(task, ended=final)\n" + _COMMITTING,
    ),
    Mutant(
        name="result-before-commit",
        what="only what goes to the client leaves early",
        breaks=("1", "H12"),
        module=MODULE,
        before=_COMMITTING,
        after="""    edges = run.context.graph.edges_from(task.of)
    if all(run.context.graph.consumer(edge) == run.context.graph.collector for edge in edges):
        run.context.outbox.publish(task, ended=final)
"""
        + _COMMITTING,
    ),
    Mutant(
        name="task-executed-twice",
        what="a commit that was refused or not answered makes the task execute again, on the same state",
        breaks=("2", "H2", "6.1.2"),
        module=MODULE,
        before=_COMMITTING,
        after="""    committing = (run, task, record, output.next_split)
    while (reply := (yield from _commit(*committing))) and reply.verdict is Verdict.STALE:
        state, output = yield from ask(_execute(run, point, task, state, chosen, inputs))
        record = LineageRecord(output.checksum, chosen.split, chosen.draw, chosen.sides, final)
        yield BackUp(FailPoint.BACK_UP, task, output, final)
""",
        more=(_GIVES_BACK,),
    ),
    Mutant(
        name="retry-chooses-again",
        what="a commit that was refused or not answered is tried again with whatever has arrived by then",
        breaks=("2", "H1", "6.1.3"),
        module=MODULE,
        before=_COMMITTING,
        after=_COMMITTING
        + """    if reply and reply.verdict is Verdict.STALE:
        run.inbox.give_back(inputs)
        run.drawing = None
        again = yield from _choose(run)
        if again is None:
            return earlier, True
        return (yield from _attempt(run, task, earlier, again))
""",
        more=(
            _GIVES_BACK,
            Edit(
                MODULE,
                "    inputs = run.inbox.take(chosen.draw) if chosen.draw else ()\n    run.drawing",
                "    inputs = run.inbox.take(chosen.draw) if chosen.draw else ()\n"
                "    earlier = __import__('copy').deepcopy(state)\n    run.drawing",
            ),
            Edit(
                INBOX,
                "    def discard(self)",
                """    def give_back(self, pieces: tuple[Slice, ...]) -> None:
        for piece in pieces:
            lane = self._lanes[Upstream(piece.edge.link, piece.edge.producer)]
            lane.held[piece.task.seq] = piece
            lane.held_bytes += piece.size_bytes
            lane.consumed = min(lane.consumed, piece.task.seq)

    def discard(self)""",
            ),
        ),
    ),
    Mutant(
        name="last-writer-wins",
        what="a task that is tried again chooses again, and the store lets the later record replace the earlier",
        breaks=("2", "H1", "6.1.3"),
        module=MEMORY,
        before="            return CommitReply(Verdict.DIVERGED)\n",
        after="            state.records[name][commit.task.seq] = commit.record\n            state.version += 1\n",
        more=(
            Edit(
                MODULE,
                _COMMITTING,
                """    committing = (run, task, record, output.next_split)
    while (reply := (yield from _commit(*committing))) and reply.verdict is Verdict.STALE:
        state, output = yield from ask(_execute(run, point, task, state, chosen, inputs))
        record = LineageRecord(output.checksum, chosen.split, chosen.draw, chosen.sides, final)
        yield BackUp(FailPoint.BACK_UP, task, output, final)
""",
            ),
            _GIVES_BACK,
        ),
    ),
    Mutant(
        name="unanswered-commit-taken-as-done",
        what="no answer to a commit is taken as success",
        breaks=("1", "H5"),
        module=MODULE,
        before="        match reply and reply.verdict:\n            case Verdict.DONE | Verdict.ALREADY:",
        after="        reply = reply or CommitReply(Verdict.DONE)\n"
        "        match reply and reply.verdict:\n            case Verdict.DONE | Verdict.ALREADY:",
    ),
    Mutant(
        name="attempt-dropped-at-a-recovery",
        what="an attempt whose commit meets a closed gate or a new epoch is given up, inputs and all",
        breaks=("5", "H2"),
        module=MODULE,
        before=_COMMITTING,
        after=_COMMITTING
        + """    if reply and reply.verdict is Verdict.STALE:
        run.drawing = None
        again = yield from _choose(run)
        return (yield from _attempt(run, task, state, again)) if again else (state, True)
""",
        more=(_GIVES_BACK,),
    ),
    Mutant(
        name="final-task-with-stale-lineage",
        what="the last task of a channel commits the lineage left over from the task before it",
        breaks=("3", "6.1.1"),
        module=MODULE,
        before="    record = LineageRecord(output.checksum, chosen.split, chosen.draw, chosen.sides, final)\n",
        after="    draw = chosen.draw or (run.left_over if chosen.last else None)\n"
        "    run.left_over = chosen.draw\n"
        "    record = LineageRecord(output.checksum, chosen.split, draw, chosen.sides, final)\n",
        more=(
            Edit(
                MODULE,
                "    phase: ChannelPhase = ChannelPhase.CHOOSING\n",
                "    phase: ChannelPhase = ChannelPhase.CHOOSING\n    left_over: Draw | None = None\n",
            ),
        ),
    ),
    Mutant(
        name="final-task-without-record",
        what="the last task of a channel is published without a commit of its own",
        breaks=("1", "6.1.1"),
        module=MODULE,
        before=_COMMITTING,
        after="    reply = CommitReply(Verdict.DONE) if chosen.last else (\n"
        "        yield from _commit(run, task, record, output.next_split)\n    )\n",
    ),
    Mutant(
        name="side-inputs-not-recorded",
        what="a record does not name the side inputs that its task used",
        breaks=("4", "6.1.7"),
        module=MODULE,
        before="    record = LineageRecord(output.checksum, chosen.split, chosen.draw, chosen.sides, final)\n",
        after="    record = LineageRecord(output.checksum, chosen.split, chosen.draw, 0, final)\n",
    ),
    Mutant(
        name="retrace-not-verified",
        what="an output that is made again leaves whatever its checksum is",
        breaks=("4", "H7"),
        module=MODULE,
        before="    if output.checksum != record.checksum:\n",
        after="    if output.checksum != record.checksum and not task:\n",
    ),
    Mutant(
        name="retrace-into-old-state",
        what="a rewound channel is retraced on the operator object that its new host has for the stage",
        breaks=("4", "6.1.5"),
        module=MODULE,
        before="    state: Any = None\n    ended = False\n",
        after="    state: Any = run.context.operators.get(run.channel.stage) if run.retracing else None\n"
        "    ended = False\n",
        more=(
            Edit(
                MODULE,
                "    look_wanted: bool = False\n",
                "    look_wanted: bool = False\n    operators: Any = None\n"
                "    def __post_init__(self) -> None:\n        self.operators = {}\n",
            ),
            Edit(
                MODULE,
                "        run.seq += 1\n",
                "        run.seq += 1\n        run.context.operators[run.channel.stage] = state\n",
            ),
        ),
    ),
    Mutant(
        name="retrace-stops-short",
        what="a rewound channel chooses freely before the last of its records is retraced",
        breaks=("2", "4"),
        module=MODULE,
        before="        for run.seq, data in enumerate(records[base:], base):\n",
        after="        for run.seq, data in enumerate(records[base:-1], base):\n",
    ),
    Mutant(
        name="retrace-without-end",
        what="a retraced final channel does not know that it has ended",
        breaks=("2", "6.1.1"),
        module=MODULE,
        before="            ended = record.final\n",
        after="            ended = False\n",
    ),
    Mutant(
        name="retrace-publishes-nothing",
        what="retraced outputs are backed up but never offered for delivery",
        breaks=("5", "6.1.10"),
        module=MODULE,
        before="    run.context.outbox.publish(task, ended=record.final)\n    return state, output.rest\n",
        after="    return state, output.rest\n",
    ),
    Mutant(
        name="rest-forgotten",
        what="a channel chooses anew although its last task has left a rest",
        breaks=("1", "5"),
        module=MODULE,
        before="        rest = _going_on(next_chosen) if has_rest else None\n",
        after="        rest = None\n",
    ),
    Mutant(
        name="rest-forgotten-in-a-retrace",
        what="a retrace takes the task that goes on with a rest for the channel's last",
        breaks=("4", "5"),
        module=MODULE,
        before="    last = rest.last if rest is not None else not consumed\n",
        after="    last = not consumed\n",
    ),
    Mutant(
        name="retrace-waits-behind-the-window",
        what="a retrace does not ask for its draw, so a window smaller than the draw stops it for ever",
        breaks=("5", "7"),
        module=MODULE,
        before="    return sides and (chosen.draw is None or run.inbox.want(chosen.draw))\n",
        after="    return sides and (\n"
        "        chosen.draw is None\n"
        "        or all(len(run.inbox.ready(u)) >= n for u, n in chosen.draw.upstreams)\n    )\n",
    ),
    Mutant(
        name="retrace-without-waiting-for-sides",
        what="a retrace uses what has arrived of its side inputs by then",
        breaks=("1", "4"),
        module=MODULE,
        before="    return sides and (chosen.draw is None or",
        after="    return (chosen.draw is None or",
    ),
    Mutant(
        name="retrace-under-todays-side-inputs",
        what="a retrace and a re-read apply the side inputs that are there now, not those of the record",
        breaks=("4", "6.1.7"),
        module=MODULE,
        before="for bit, link in enumerate(graph.sides(stage)) if bits >> bit & 1}\n",
        after="for link in graph.sides(stage) if inbox.is_whole(link)}\n",
    ),
    Mutant(
        name="reader-ignores-its-split",
        what="a reader does not take over the split that came with the reply, and reads its old one again",
        breaks=("2", "7"),
        module=MODULE,
        before="    run.split = reply.split\n",
        after="    run.split = reply.split if reply.split is None else run.split\n",
    ),
    Mutant(
        name="inbox-of-an-ended-reader-discarded",
        what="a reader that has ended forgets its side inputs, which later re-reads need",
        breaks=("5", "H9"),
        module=MODULE,
        before="    if not run.context.graph.is_reader(run.channel.stage):\n        run.inbox.discard()\n",
        after="    run.inbox.discard()\n",
    ),
    Mutant(
        name="collector-ends-with-its-first-input",
        what="the result counts as whole when one of the collector's inputs is",
        breaks=("7", "6.1.6"),
        module=MODULE,
        before="    while not all(run.inbox.is_exhausted(link) for link in links):\n",
        after="    while not any(run.inbox.is_exhausted(link) for link in links):\n",
    ),
    Mutant(
        name="collector-takes-without-noting",
        what="the client is given what has arrived, and again whatever has not been taken out yet",
        breaks=("7", "6.1.6", "H12"),
        module=MODULE,
        before="            yield Collect(run.inbox.take(Draw(upstream.link, ((upstream.channel, count),))))\n",
        after="            pieces = tuple(run.inbox._lanes[upstream].held.values())\n"
        "            yield Collect(pieces)\n"
        "            run.inbox.take(Draw(upstream.link, ((upstream.channel, count),)))\n",
    ),
)
