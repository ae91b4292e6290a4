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


class Inquiry:
    """Performs the effect, on a thread that may wait."""

    def __init__(self, node: EngineNode, peers: Asks, directory: Directory, calls: CallPool) -> None:
        self._node = node
        self._peers = peers
        self._directory = directory
        self._calls = calls

    def answer(self, actor: Actor, effect: Inquire) -> None:
        """Ask, and post the answers to the node."""
        ask = partial(self._ask, effect.query)
        self._calls.submit(lambda: self._node.answer(actor, effect, standings(effect.workers, ask)))

    def _ask(self, query: QueryId, worker: WorkerId) -> Standing | None:
        if worker == HEAD:
            return self._node.ask_standing(query, INQUIRE_SECONDS)
        address = self._directory.address_of(worker)
        return ask_standing(self._peers, address, query, INQUIRE_SECONDS) if address else None
