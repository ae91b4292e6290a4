"""Ask all processes of a query, including the head, for their standing; see `coordinator.stalls`."""

from __future__ import annotations

from functools import partial
from typing import Final

from wallaby.coordinator.effects import Inquire
from wallaby.lineage.names import HEAD, QueryId, WorkerId
from wallaby.node.directory import Directory
from wallaby.node.node import Actor, EngineNode
from wallaby.node.pools import CallPool
from wallaby.node.standing import Asks, Standing, ask_standing, standings

#: How long a process may take to answer; one that does not answer is not judged.
INQUIRE_SECONDS: Final = 2.0
#: How many processes are asked at once.
INQUIRE_THREADS: Final = 4


class Inquiry:
    """Performs the effect on separate threads: processes that do not answer must not delay the coordinator."""

    def __init__(self, node: EngineNode, peers: Asks, directory: Directory) -> None:
        self._node = node
        self._peers = peers
        self._directory = directory
        self._threads = CallPool("wallaby-head-inquiry", INQUIRE_THREADS, node.end)

    def answer(self, actor: Actor, effect: Inquire) -> None:
        """Ask, and post the answers to the node."""
        tell = partial(self._node.answer, actor, effect)
        standings(effect.workers, partial(self._ask, effect.query), tell, self._threads.submit)

    def stop(self, wait_seconds: float) -> None:
        """End the threads."""
        self._threads.stop(wait_seconds)

    def _ask(self, query: QueryId, worker: WorkerId) -> Standing | None:
        if worker == HEAD:
            return self._node.ask_standing(query, INQUIRE_SECONDS)
        address = self._directory.address_of(worker)
        return ask_standing(self._peers, address, query, INQUIRE_SECONDS) if address else None
