"""The names of queries, workers, channels, tasks and edges.

A task and its output share one name, `(stage, channel, seq)`, and that name has one content for ever
(invariant 2). Names are small tuples with their own types: they hash and sort fast, a type checker keeps them apart,
and they print the same everywhere: `s2.c1.t7`.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

QueryId = NewType("QueryId", str)
WorkerId = NewType("WorkerId", str)

#: The worker id under which the Spark driver collects results. It is never lost while a query lives.
HEAD = WorkerId("head")


class ChannelName(NamedTuple):
    """One hash partition of a stage: a sequence of tasks with one state."""

    stage: int
    channel: int

    def __str__(self) -> str:
        return f"s{self.stage}.c{self.channel}"


class TaskName(NamedTuple):
    """One task of a channel, and the output that it makes."""

    stage: int
    channel: int
    seq: int

    def __str__(self) -> str:
        return f"s{self.stage}.c{self.channel}.t{self.seq}"

    @property
    def of(self) -> ChannelName:
        """The channel that this task belongs to."""
        return ChannelName(self.stage, self.channel)


class Edge(NamedTuple):
    """The connection of one producer channel to one consumer channel over one link of the stage graph."""

    link: int
    producer: int
    consumer: int

    def __str__(self) -> str:
        return f"l{self.link}:{self.producer}>{self.consumer}"


class Upstream(NamedTuple):
    """A producer channel as its consumer sees it: a link, and a channel of the producer stage."""

    link: int
    channel: int

    def __str__(self) -> str:
        return f"l{self.link}.c{self.channel}"
