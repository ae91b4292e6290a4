"""Effects that were refused for now, or not answered, must be requested again while there is a reason to.

Commits, errors, early ends and reads of records must reach the store, in any epoch; a channel that needs no more input
must say so; a re-read whose push was cut must be continued. This is judged from the effects alone, while the run and
the query last.

An action of a channel that was refused for good, because its run or its query is over, is the last thing that it does.
"""

from __future__ import annotations

from typing import Any

from wallaby.gcs.interface import QueryView
from wallaby.lineage.effects import (
    Advance,
    CloseEarly,
    CommitTask,
    Execute,
    Fail,
    FailPoint,
    Pause,
    Push,
    ReadRecords,
)
from wallaby.lineage.verdict import CommitReply, RecordsReply, Verdict
from wallaby.node.effects import Complain, Look
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.brief import brief
from wallaby_lab.simulation.world.process import SimulatedActor

_INSISTED = (CommitTask, Fail, CloseEarly, ReadRecords)
#: The effects whose answers matter here.
_MINDED = frozenset({*_INSISTED, Look, Push, Execute, Advance})
_REPEATED = (FailPoint.RETRACE, FailPoint.REREAD)
_FOR_NOW = (Verdict.FROZEN, Verdict.STALE, None)
_OF_CHANNELS = (CommitTask, ReadRecords)
_FOR_GOOD = (Verdict.GONE, Verdict.EXPELLED, Verdict.NOT_HOST, Verdict.CLOSED)
#: Stands for what must follow a refusal for good: nothing.
_NOTHING = object()


class Insisting:
    """Remembers what every actor has to request again."""

    def __init__(self) -> None:
        self._refused: dict[SimulatedActor, Any] = {}
        #: Actors whose task has satisfied a limit and is not committed yet.
        self._satisfied: set[SimulatedActor] = set()
        #: The last answer that any actor of a session got.
        self.answered: Any = None
        #: The views that sessions have got and are about to adopt.
        self._viewed: dict[SimulatedActor, QueryView] = {}

    def answers(self, actor: SimulatedActor, value: Any) -> None:
        """An actor is about to get the answer to its last effect."""
        asked, self.answered = actor.last, value
        if type(asked) not in _MINDED:
            return
        if isinstance(asked, Look) and value is not None and value.verdict is Verdict.DONE:
            self._viewed[actor] = value
        if isinstance(asked, _INSISTED) and _verdict(value) in _FOR_NOW:
            self._refused[actor] = asked
        elif isinstance(asked, _OF_CHANNELS) and _verdict(value) in _FOR_GOOD:
            self._refused[actor] = _NOTHING
        elif isinstance(asked, Push) and asked.point is FailPoint.REREAD_DELIVER:
            held = value.held if value is not None else ()
            if held and len(held) < len(asked.items):
                self._refused[actor] = asked
        elif isinstance(asked, Execute) and asked.point not in _REPEATED and value.output.satisfied:
            self._satisfied.add(actor)
        elif isinstance(asked, Advance) and actor in self._satisfied:
            self._satisfied.discard(actor)
            self._refused[actor] = CloseEarly(asked.task.of, 0)

    def yields(self, actor: SimulatedActor, effect: Any) -> None:
        """Its next effect; None if it has ended."""
        if self._viewed and isinstance(effect, Pause) and actor in self._viewed:
            _require_adopted(actor, self._viewed.pop(actor))
        asked = self._refused.get(actor) if self._refused else None
        if asked is None:
            return
        if asked is _NOTHING and effect is not None:
            raise InvariantViolation(
                6, f"{actor.name} at {actor.process.id} is over, and asks for {brief(effect)}"
            )
        if asked is _NOTHING or _is_over(actor, asked):
            del self._refused[actor]
            return
        if isinstance(effect, Pause | Complain):
            return
        again = type(effect) is type(asked)
        if again and isinstance(effect, Push):
            again = effect.target == asked.target and effect.items == asked.items[-len(effect.items) :]
        if not again:
            then = brief(effect) if effect is not None else "nothing"
            raise InvariantViolation(
                7, f"{actor.name} at {actor.process.id} gives up: {brief(asked)}; and then: {then}"
            )
        del self._refused[actor]


def _verdict(value: Any) -> Any:
    return value.verdict if isinstance(value, CommitReply | RecordsReply) else value


def _require_adopted(actor: SimulatedActor, view: QueryView) -> None:
    """Check that a session has adopted the epoch, and the closed channels, of its look."""
    assert actor.worker_query is not None
    session = actor.worker_query.session
    closed = [each.channel for each in view.assignments if each.closed]
    if session.context.epoch != view.epoch or not all(session.runs[name].closed for name in closed):
        raise InvariantViolation(8, f"{actor.process.id} has looked, and goes on as if it had not")


def _is_over(actor: SimulatedActor, asked: Any) -> bool:
    """Has the query, the run or, for a re-read, the epoch ended, so that nothing has to be repeated?"""
    assert actor.worker_query is not None
    session, run = actor.worker_query.session, actor.run
    if isinstance(asked, Push) and session.context.epoch != asked.epoch:
        return True
    return session.over or (run is not None and session.runs.get(run.channel) is not run)


def require_current_run(actor: SimulatedActor, effect: Any) -> None:
    """Check that nothing is done in the name of an ended run (invariant 6)."""
    run, worker_query = actor.run, actor.worker_query
    if run is None or worker_query is None or worker_query.session.over:
        return
    if worker_query.session.runs.get(run.channel) is not run:
        raise InvariantViolation(6, f"the old {actor.name} at {actor.process.id} asks for {brief(effect)}")
