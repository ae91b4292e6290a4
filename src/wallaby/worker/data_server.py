"""The data server of a node, TaskManager or head: passes what arrives over the network to the node's loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

import pyarrow.flight as fl

from wallaby.exchange.backup import Backup
from wallaby.exchange.incoming import ServerLimits
from wallaby.exchange.kept_questions import LOCATE, REACH
from wallaby.exchange.kept_stream import SIZES, KeptTicket, encode_sizes
from wallaby.exchange.lazy_body import GoneError, fetched
from wallaby.exchange.server import ASK, FlightDataServer, ServerTls
from wallaby.exchange.wire import decode_name
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import QueryId, TaskName, WorkerId
from wallaby.node.actors import DISCOVERY, TASK_MANAGER
from wallaby.node.node import EngineNode
from wallaby.node.standing import STANDING, encode_standing
from wallaby.observe.event_batch import EVENTS

_Answer = TypeVar("_Answer")
#: How long a push may wait for the control loop.
RECEIVE_SECONDS = 5.0
#: The action by which a TaskManager tells the head that the store is no longer the one they started with.
STORE_LOST = "store lost"


class DataServer(FlightDataServer):
    """The Flight server of a node: pushes go to the node's loop, a ping also wakes it."""

    def __init__(
        self,
        host: str,
        token: str,
        node: EngineNode,
        tls: ServerTls | None = None,
        limits: ServerLimits | None = None,
        backup: Backup | None = None,
    ) -> None:
        """`backup` holds the outputs of kept results for readers; the head has none."""
        self._node = node
        self._backup = backup
        super().__init__(
            host,
            token,
            node.worker,
            self._receive_on_loop,
            preview=self._preview_on_loop,
            give_out=self._kept_slices,
            tls=tls,
            limits=limits,
        )

    def _receive_on_loop(
        self, query: QueryId, epoch: int, _sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> PushReply:
        return self._on_loop(lambda: self._node.receive(query, epoch, target, slices))

    def _preview_on_loop(
        self, query: QueryId, epoch: int, _sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> PushReply:
        return self._on_loop(lambda: self._node.preview(query, epoch, target, slices))

    def _on_loop(self, ask: Callable[[], PushReply]) -> PushReply:
        return self._asked(ask) or PushReply(accepted=False)

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer | None:
        """Ask the loop's thread; None if it does not answer in time."""
        answer: Future[_Answer] = Future()
        self._node.loop.post(lambda: answer.set_result(ask()))
        try:
            return answer.result(timeout=RECEIVE_SECONDS)
        except FutureTimeoutError:
            return None

    def _kept_slices(self, ticket: KeptTicket) -> tuple[Slice, ...]:
        """The first outputs of a ticket that can be read here, as many as fit; from disk if necessary."""
        found = self._asked(
            lambda: self._node.fetchable(ticket.query, ticket.channel, ticket.first, ticket.end)
        )
        if self._backup is None or not found:
            return ()
        try:
            return fetched(self._backup.slices_of(ticket.query, ticket.items(found), ticket.bytes_max))
        except GoneError:  # released in the meantime
            return ()

    def _kept_sizes(self, query: QueryId) -> bytes | None:
        kept = self._asked(lambda: self._node.kept(query))
        if self._backup is None or kept is None:
            return None
        try:
            return encode_sizes(
                {
                    channel: self._backup.sizes_of(
                        query, [(edge, TaskName(*channel, seq)) for seq in outputs]
                    )
                    for channel, edge, outputs in kept
                }
            )
        except GoneError:
            return None

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """Handle an action: a question before a push, a request for a standing, events (on the head), or a ping.

        A ping also wakes the loop, because the sender may have news.
        """
        if action.type == EVENTS and self._node.take_events is not None:
            self._node.take_events(action.body.to_pybytes())
            return iter(())
        if action.type == STORE_LOST and self._node.take_loss is not None:
            self._node.take_loss(action.body.to_pybytes().decode(errors="replace"))
            return iter(())
        if action.type in (LOCATE, REACH) and self._node.answer_reader is not None:
            answer = self._node.answer_reader(action.type, action.body.to_pybytes())
            return iter(() if answer is None else (fl.Result(answer),))
        if action.type == ASK:
            return super().do_action(context, action)
        if action.type == SIZES:
            sizes = self._kept_sizes(QueryId(decode_name(action.body.to_pybytes())))
            return iter(() if sizes is None else (fl.Result(sizes),))
        if action.type == STANDING:
            standing = self._node.ask_standing(
                QueryId(decode_name(action.body.to_pybytes())), RECEIVE_SECONDS
            )
            return iter((fl.Result(encode_standing(standing)),) if standing is not None else ())
        self._node.loop.post(self._node.wake_named, TASK_MANAGER)
        self._node.loop.post(self._node.wake_named, DISCOVERY)
        self._node.loop.post(self._node.wake_sessions)
        return super().do_action(context, action)
