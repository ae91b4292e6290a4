"""Threads at one group committer: commits of two queries and of rising epochs, sent by the real performer.

Every commit must reach the store once, under its own query and epoch and in the order of its channel, and be answered
once, with its own reply.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

from wallaby.errors import GcsUnavailableError
from wallaby.lineage.effects import CommitTask
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.lineage.verdict import CommitReply, Verdict
from wallaby.node.perform import NodeSettings, Performer
from wallaby_lab.simulation.interleavings.backup_threads import require
from wallaby_lab.simulation.interleavings.scheduler import Scheduler

ME = WorkerId("w1")


class _Groups:
    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self._scheduler = scheduler
        self._random = random
        self._asked: dict[TaskName, tuple[QueryId, CommitTask]] = {}
        self._reached: list[TaskName] = []
        self._replies: dict[TaskName, CommitReply | None] = {}
        self._answered: dict[TaskName, Any] = {}
        node: Any = SimpleNamespace(worker=ME, answer=self._answer, end=self._end)
        store: Any = SimpleNamespace(commit=self._commit)
        nobody: Any = None
        settings = NodeSettings(kernel_threads=1, push_threads=1, call_threads=1, durable_threads=1)
        self._performer = Performer(
            node, store, nobody, nobody, lambda _: None, lambda _: None, nobody, settings
        )

    def run(self) -> None:
        """Request commits on one thread, as a loop does, and check the outcome of each."""
        drawn, epoch = [], 1
        for number in range(self._random.choice((3, 5, 8))):
            epoch += self._random.random() < 0.3
            query = QueryId(self._random.choice(("q1", "q1", "q2")))
            task = TaskName(0, self._random.randrange(2), number)
            drawn.append((query, CommitTask(task, bytes([number]), False, (), epoch)))
        self._asked = {effect.task: (query, effect) for query, effect in drawn}

        def ask() -> None:
            for query, effect in drawn:
                worker_query = SimpleNamespace(query=query, untracked=None, recorder=None)
                actor: Any = SimpleNamespace(name=str(effect.task), worker_query=worker_query)
                self._performer.perform(actor, effect)

        self._scheduler.spawn("loop", ask)
        self._scheduler.run(lambda: len(self._answered) == len(drawn))
        require(sorted(self._reached) == sorted(self._asked), "a commit was sent twice, or never")
        for one, other in ((a, b) for a in self._reached for b in self._reached if a.channel == b.channel):
            same = self._group(one) == self._group(other)
            first = self._reached.index(one) < self._reached.index(other)
            require(not (same and first) or one.seq < other.seq, f"{other} overtook {one}")

    def _group(self, task: TaskName) -> tuple[QueryId, int]:
        query, effect = self._asked[task]
        return query, effect.epoch

    def _commit(self, query: QueryId, worker: WorkerId, epoch: int, commits: tuple[Any, ...]) -> Any:
        require(worker == ME, f"a commit of {worker}")
        lost = self._random.random() < 0.1
        for commit in commits:
            effect = self._asked[commit.task][1]
            require(self._group(commit.task) == (query, epoch), f"{commit.task} goes under {query}, {epoch}")
            require(commit.record == effect.record, f"{commit.task} goes with another record")
            self._reached.append(commit.task)
            self._replies[commit.task] = None if lost else CommitReply(Verdict.DONE, commit.task.seq)
        if lost:
            raise GcsUnavailableError("It does not answer.")
        return tuple(self._replies[commit.task] for commit in commits)

    def _answer(self, actor: Any, _effect: object, value: Any) -> None:
        task = next(task for task in self._asked if str(task) == actor.name)
        require(task not in self._answered, f"{task} is answered twice")
        require(task in self._replies and value is self._replies[task], f"{task} is answered {value}")
        self._answered[task] = value

    def _end(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self._scheduler.error = self._scheduler.error or error


def run_groups(scheduler: Scheduler, random: Random) -> None:
    """Run one seed; raises if anything is wrong."""
    _Groups(scheduler, random).run()
