"""A session that is driven by hand, and the small query that it serves."""

from __future__ import annotations

from collections.abc import Mapping

from tests.builders import Driven, W, pipeline

from wallaby.gcs.interface import Assignment, QueryView
from wallaby.lineage.choose import DrawPolicy, Static
from wallaby.lineage.effects import Pause, PushReply
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import HEAD, ChannelName, Edge, WorkerId
from wallaby.lineage.verdict import Verdict
from wallaby.node.effects import Look, Spawn, Stop
from wallaby.node.session import QuerySession, QuerySessionSettings

#: w0 is the worker; w1 and w2 are others.
ME, OTHER, THIRD = W[:3]
GRAPH = pipeline(executors=2)
S0, X0, X1, SINK = GRAPH.channels
TO_X0, TO_X1 = Edge(0, 0, 0), Edge(0, 0, 1)
ROUTES = {S0: ME, X0: ME, X1: OTHER, SINK: HEAD}


def assigned(
    channel: ChannelName,
    length: int = 0,
    *,
    base: int = 0,
    final: bool = False,
    closed: bool = False,
    split: int | None = None,
    since: int = 1,
) -> Assignment:
    return Assignment(channel, base, length, final, closed, split, since)


def view(
    *assignments: Assignment,
    epoch: int = 3,
    graph: StageGraph = GRAPH,
    routes: Mapping[ChannelName, WorkerId] = ROUTES,
    delivered: Mapping[Edge, int] | None = None,
    rereads_waiting: bool = False,
) -> QueryView:
    edges = [edge for a in assignments for edge in graph.edges_from(a.channel)]
    counts = {**dict.fromkeys(edges, 0), **(delivered or {})}
    return QueryView(Verdict.DONE, epoch, assignments, routes, counts, rereads_waiting)


class Hand:
    """A session driven by hand: `look` answers its looks, `spawned` are the generators it has asked for."""

    def __init__(
        self,
        graph: StageGraph = GRAPH,
        policy: DrawPolicy | None = None,
        *,
        worker: WorkerId = ME,
        slots: int = 1,
        sides_bytes: int | None = None,
    ) -> None:
        self.collected: list[str] = []
        settings = QuerySessionSettings(
            policy or Static(1), 100, outputs_per_push=4, reread_slots=slots, sides_bytes=sides_bytes
        )
        self.session = QuerySession(worker, graph, settings, lambda: self.collected.append("all"))
        self.spawned: dict[str, Driven] = {}
        self.stopped: list[str] = []
        self._run = Driven(self.session.run())
        self._settle()

    def _settle(self) -> None:
        """Answer spawns and stops, up to the next look."""
        while self._run.now is not None and not isinstance(self._run.now, Look):
            if isinstance(self._run.now, Spawn):
                self.spawned[str(self._run.now.name)] = Driven(self._run.now.effects)
            elif isinstance(self._run.now, Stop):
                self.stopped.append(str(self._run.now.name))
                del self.spawned[str(self._run.now.name)]
            else:
                assert self._run.now == Pause(200)
            self._run.answer(None)

    def look(self, answer: QueryView | None) -> None:
        assert self._run.now == Look()
        self._run.answer(answer)
        self._settle()

    @property
    def ended(self) -> bool:
        return self._run.now is None


def held(*answers: bool) -> PushReply:
    return PushReply(accepted=True, held=answers)
