"""A query without fault tolerance: no records, no commits, no backups. A lost worker ends it.

Channels do the same as always, but their effects are performed differently. A commit is answered here at once. The
splits of a stage are dealt to its channels in turn before it begins, and the channels of one worker share theirs. An
output is kept only until every consumer holds it.
"""

from __future__ import annotations

from collections import deque

from wallaby.lineage.effects import CommitTask
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.verdict import CommitReply, Verdict
from wallaby.node.outputs.released import Released
from wallaby.node.session import QuerySession


class Untracked:
    """One such query at one worker. Only for the loop's thread."""

    def __init__(self, session: QuerySession) -> None:
        self._session = session
        #: The splits of each stage that this worker has yet to read.
        self._splits: dict[int, deque[int]] = {}
        self.released = Released(session)

    def commit(self, effect: CommitTask) -> CommitReply:
        """Answer a commit without recording anything; a reader gets another split."""
        stage = effect.task.stage
        if effect.final or not self._session.graph.is_reader(stage):
            return CommitReply(Verdict.DONE)
        if effect.next_split is not None:
            return CommitReply(Verdict.DONE, effect.next_split)
        if stage not in self._splits:
            hosted = frozenset(name.channel for name in self._session.runs if name.stage == stage)
            self._splits[stage] = deque(dealt(self._session.graph, stage, hosted))
        left = self._splits[stage]
        return CommitReply(Verdict.DONE, left.popleft() if left else None)


def dealt(graph: StageGraph, stage: int, hosted: frozenset[int]) -> list[int]:
    """The splits of some channels of a stage, except the first of each, which it got when the query began."""
    channels = graph.stages[stage].channels
    return [split for split in range(channels, graph.stages[stage].splits) if split % channels in hosted]
