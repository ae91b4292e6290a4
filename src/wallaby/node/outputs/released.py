"""Find outputs that a worker may forget, because all their consumers hold them."""

from __future__ import annotations

from wallaby.lineage.names import ChannelName, TaskName
from wallaby.node.session import QuerySession


class Released:
    """The released outputs of one query at one worker. Only for the loop's thread."""

    def __init__(self, session: QuerySession) -> None:
        self._session = session
        #: How many outputs of each channel have been released.
        self._released: dict[ChannelName, int] = {}

    def of(self, channel: ChannelName) -> list[TaskName]:
        """The outputs of a channel that all its consumers hold, each once."""
        counts = self._session.context.outbox.delivered()
        edges = self._session.graph.edges_from(channel)
        end = min((counts.get(edge, 0) for edge in edges), default=0)
        first = self._released.get(channel, 0)
        self._released[channel] = max(first, end)
        return [TaskName(*channel, seq) for seq in range(first, end)]
