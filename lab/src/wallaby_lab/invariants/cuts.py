"""The invariants of coordinated snapshots as code: what must hold in a run of a query without records.

`CutAudit` follows one run. It knows every output that was made, and computes from them alone where each barrier divides
what a channel sends. Numbers of violations are those of docs/protocol.md, as they read for this policy:

1. A task consumes the slices of its run, each once and in order. A barrier leaves only after its channel's part of the
   snapshot was saved.
2. An output of a run has one content, and a part of a snapshot is saved once.
3. A part of a snapshot has consumed exactly what its producers sent before the barrier, main and side.
7. The client gets rows only when a snapshot covers them that is complete, or when the result is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wallaby.lineage.barriers import Barrier, ChannelCut, Start
from wallaby.lineage.effects import Output, Slice
from wallaby.lineage.graph import LinkKind, StageGraph
from wallaby.lineage.names import ChannelName, TaskName, Upstream
from wallaby_lab.invariants import InvariantViolation


class CutAudit:
    """All observations of one run of a query, and the checks against them."""

    def __init__(
        self, graph: StageGraph, start: Start | None, past: Mapping[ChannelName, ChannelCut]
    ) -> None:
        self._graph = graph
        self._inputs = {
            name: {Upstream(edge.link, edge.producer): edge for edge in graph.edges_into(name)}
            for name in graph.channels
        }
        self._main = {name: self._main_inputs(name) for name in graph.channels}
        #: Every output of each channel, in order, and whether it is the last.
        self._outputs: dict[ChannelName, list[tuple[Output, bool]]] = {name: [] for name in graph.channels}
        #: The last barrier that each channel has sent.
        self._sent: dict[ChannelName, int] = dict.fromkeys(graph.channels, 0)
        #: Per channel and input, the outputs that its tasks have drawn, barriers included once they are passed.
        self._drawn: dict[ChannelName, dict[Upstream, int]] = {name: {} for name in graph.channels}
        self._used: dict[ChannelName, set[int]] = {name: set() for name in graph.channels}
        self.saved: dict[tuple[ChannelName, int], ChannelCut] = {}
        #: What each channel has gone on from; the head remembers the collector's part.
        self._past = dict(past)
        if start is not None:
            self._past[graph.collector] = ChannelCut(None, ended=start.ended)
        #: The channels that had ended before this run began, or that nobody needs in it.
        self._gone = (
            {name for name in graph.channels if name not in self._past} if start is not None else set()
        )
        self.covered = 0

    def _main_inputs(self, name: ChannelName) -> tuple[Upstream, ...]:
        kinds = self._graph.links
        return tuple(u for u in self._inputs[name] if kinds[u.link].kind is LinkKind.MAIN)

    def _producer(self, name: ChannelName, upstream: Upstream) -> ChannelName:
        return self._graph.producer(self._inputs[name][upstream])

    # --- what is made --------------------------------------------------------------------------------

    def keeping(self, task: TaskName, output: Output, *, final: bool) -> None:
        """An output is backed up: the next of its channel."""
        made = self._outputs[task.of]
        if task.seq != len(made) or (made and made[-1][1]):
            raise InvariantViolation(2, f"{task} is made after {len(made)} outputs of its channel")
        barriers = {body for _, body in output.slices.values() if isinstance(body, Barrier)}
        if barriers:
            (barrier,) = barriers
            number = barrier.number
            if number <= self._sent[task.of]:
                raise InvariantViolation(1, f"{task.of} sends barrier {number} after {self._sent[task.of]}")
            if not barrier.void and (task.of, number) not in self.saved:
                raise InvariantViolation(1, f"{task.of} sends barrier {number}, and has not saved its part")
            self._sent[task.of] = number
        made.append((output, final))

    def leaving(self, pieces: Iterable[Slice]) -> None:
        """Slices leave their worker: they are what was made."""
        for piece in pieces:
            self._check_content(piece, "a worker sends")

    def _check_content(self, piece: Slice, what: str) -> None:
        made = self._outputs[piece.task.of]
        if piece.task.seq >= len(made):
            raise InvariantViolation(1, f"{what} {piece.task}, which was not made")
        output, final = made[piece.task.seq]
        if (output.slices[piece.edge][1], final) != (piece.body, piece.final):
            raise InvariantViolation(2, f"{what} {piece.task} over {piece.edge} with another content")

    # --- what is consumed ----------------------------------------------------------------------------

    def executing(
        self, task: TaskName, inputs: Iterable[Slice], sides: Mapping[int, Iterable[Slice]]
    ) -> None:
        """A task is about to run on these slices."""
        self._consumes(task.of, inputs, str(task))
        for link, pieces in sides.items():
            self._used[task.of].add(link)
            whole = [row for u in self._of_link(task.of, link) for row in self._rows_beside(task.of, u)]
            if [piece.body for piece in pieces] != whole:
                raise InvariantViolation(1, f"{task} uses side input {link}, and not all of it")

    def _of_link(self, name: ChannelName, link: int) -> list[Upstream]:
        return [upstream for upstream in self._inputs[name] if upstream.link == link]

    def _consumes(self, name: ChannelName, pieces: Iterable[Slice], what: str) -> None:
        for piece in pieces:
            self._check_content(piece, f"{what} consumes")
            if self._graph.consumer(piece.edge) != name or isinstance(piece.body, Barrier):
                raise InvariantViolation(1, f"{what} consumes {piece.task}, which is not for it")
            upstream = Upstream(piece.edge.link, piece.edge.producer)
            at = self._next(name, upstream)
            if piece.task.seq != at:
                raise InvariantViolation(1, f"{what} consumes {piece.task} where output {at} is due")
            self._drawn[name][upstream] = at + 1

    def _next(self, name: ChannelName, upstream: Upstream, number: int | None = None) -> int:
        """The next output of an input, behind the barriers before it: all, or those of earlier snapshots.

        A channel may give a snapshot up and go on behind its barrier. Then it can no longer save its part.
        """
        at, made = self._drawn[name].get(upstream, 0), self._outputs[self._producer(name, upstream)]
        while at < len(made) and (barrier := _barrier_of(made[at][0])) is not None:
            if number is not None and barrier.number >= number:
                break
            at += 1
        return at

    def _rows_beside(self, name: ChannelName, upstream: Upstream, before: int | None = None) -> list[Any]:
        """The bodies that a side input consists of, up to a barrier or to its end, with what was restored."""
        past = self._past.get(name)
        restored = dict(past.beside)[upstream].slices if past is not None else ()
        rows = [piece.body for piece in restored]
        edge = self._inputs[name][upstream]
        for output, _ in self._outputs[self._producer(name, upstream)]:
            barrier = _barrier_of(output)
            if barrier is None:
                rows.append(output.slices[edge][1])
            elif before is not None and barrier.number >= before:
                break
        return rows

    # --- snapshots -----------------------------------------------------------------------------------

    def saving(self, name: ChannelName, number: int, cut: ChannelCut) -> None:
        """A channel saves its part of a snapshot."""
        if (name, number) in self.saved or number <= self._sent[name]:
            raise InvariantViolation(2, f"{name} saves its part of snapshot {number} again, or too late")
        self._check_cut(name, number, cut.ended)
        for upstream, beside in cut.beside:
            if upstream.link in cut.given_up:
                continue
            rows = self._rows_beside(name, upstream, number)
            if [piece.body for piece in beside.slices] != rows:
                raise InvariantViolation(
                    3, f"{name} saves of side input {upstream} something else than was sent before {number}"
                )
            end = self._end_before(self._producer(name, upstream), number)
            restored = dict(self._past[name].beside)[upstream].ended if name in self._past else False
            if beside.ended != (end or restored):
                raise InvariantViolation(3, f"{name} saves {upstream} as ended={beside.ended}")
            if upstream.link in self._used[name] and not beside.ended:
                raise InvariantViolation(3, f"{name} has used {upstream}, which was not whole at {number}")
        self.saved[name, number] = cut

    def _check_cut(self, name: ChannelName, number: int, ended: tuple[Upstream, ...]) -> None:
        """A channel has consumed exactly what was sent before a barrier."""
        for upstream in self._main[name]:
            producer = self._producer(name, upstream)
            made = self._outputs[producer]
            over = self._end_before(producer, number) or self._had_ended(name, upstream)
            at = self._next(name, upstream, None if over else number)
            due = len(made) if over else self._place_of(producer, number)
            if due is None or at != due:
                raise InvariantViolation(
                    3, f"at barrier {number} {name} has consumed {at} of {producer}, not {due}"
                )
            if (upstream in ended) != over:
                raise InvariantViolation(
                    3, f"at barrier {number} {name} takes {producer} as ended={not over}"
                )

    def _had_ended(self, name: ChannelName, upstream: Upstream) -> bool:
        """Had an input ended at the snapshot from which this run goes on?"""
        past = self._past.get(name)
        return past is not None and upstream in past.ended

    def _end_before(self, producer: ChannelName, number: int | None) -> bool:
        """Has a channel sent its last output before a barrier of this number?"""
        made = self._outputs[producer]
        if number is not None and self._sent[producer] >= number:
            return False
        return bool(made) and made[-1][1]

    def _place_of(self, producer: ChannelName, number: int) -> int | None:
        """The place of a barrier among a channel's outputs, if it has sent one that is not void."""
        for at, (output, _) in enumerate(self._outputs[producer]):
            barrier = _barrier_of(output)
            if barrier is not None and barrier.number == number and not barrier.void:
                return at
        return None

    # --- the client ----------------------------------------------------------------------------------

    def covering(self, number: int, ended: tuple[Upstream, ...], pieces: Iterable[Slice]) -> None:
        """The client gets the rows before a barrier: the snapshot must be complete."""
        collector = self._graph.collector
        if number <= self.covered:
            raise InvariantViolation(7, f"snapshot {number} counts as complete after {self.covered}")
        self._consumes(collector, pieces, "the client")
        self._check_cut(collector, number, ended)
        needed = {collector}
        for name in reversed(self._graph.channels):
            consumers = {self._graph.consumer(edge) for edge in self._graph.edges_from(name)}
            if name == collector or not consumers & needed:
                continue
            if (name, number) in self.saved:
                needed.add(name)
            elif name not in self._gone and not self._end_before(name, None):
                raise InvariantViolation(7, f"snapshot {number} counts as complete, and {name} has no part")
        self.covered = number

    def collecting(self, pieces: Iterable[Slice]) -> None:
        """The client gets the rest of the result: all of it must have been made."""
        collector = self._graph.collector
        self._consumes(collector, pieces, "the client")
        for upstream in self._main[collector]:
            producer = self._producer(collector, upstream)
            made = self._outputs[producer]
            whole = self._had_ended(collector, upstream) or (made and made[-1][1])
            if not whole or self._next(collector, upstream) != len(made):
                raise InvariantViolation(7, f"the client is given the end, and {producer} is not consumed")


def _barrier_of(output: Output) -> Barrier | None:
    return next((body for _, body in output.slices.values() if isinstance(body, Barrier)), None)
