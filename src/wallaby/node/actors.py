"""Actors: the generators that run in a process, named by what they do and what they serve.

A process drives a few actors of its own (its lease, the search for queries, on the head the coordinator) and, for every
query, a session, an actor for each channel, a delivery to each worker, and slots for re-reads. Code that wakes, stops
or judges an actor uses its kind.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from wallaby.lineage.names import ChannelName


class ActorKind(Enum):
    """What an actor does."""

    __hash__ = object.__hash__  # an enum's own hash is slow, and actors are looked up with every wake

    # of a worker as a whole
    TASK_MANAGER = "task manager"
    DISCOVERY = "discovery"
    # of the head as a whole
    COORDINATOR = "coordinator"
    STALL_WATCH = "stall watch"
    SUBMIT = "submit"
    DRAIN = "drain"
    # of one query
    SESSION = "session"
    CHANNEL = ""
    DELIVERY = "deliver to"
    RE_READ = "re-read"
    FAILURE = "failure"

    @property
    def is_errand(self) -> bool:
        """Does the actor end by itself, without ending its process?"""
        return self in (ActorKind.SUBMIT, ActorKind.DRAIN)

    @property
    def asks_again(self) -> bool:
        """Does it ask again if an answer is lost? It outlives a query, or ends what its process holds of one."""
        return self in _ASKING_AGAIN

    @property
    def sends(self) -> bool:
        """Does it wait for room at other workers? Nobody announces room, so it checks more often."""
        return self in (ActorKind.DELIVERY, ActorKind.RE_READ)


_ASKING_AGAIN = frozenset(
    {
        ActorKind.TASK_MANAGER,
        ActorKind.DISCOVERY,
        ActorKind.COORDINATOR,
        ActorKind.STALL_WATCH,
        ActorKind.SUBMIT,
        ActorKind.DRAIN,
        ActorKind.SESSION,
    }
)


class ActorName(NamedTuple):
    """A kind, and the channel, worker, query or slot it serves; unique in a process, or for a query in it."""

    kind: ActorKind
    of: ChannelName | str | int | None = None

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind.value, "" if self.of is None else str(self.of)) if part)


TASK_MANAGER = ActorName(ActorKind.TASK_MANAGER)
DISCOVERY = ActorName(ActorKind.DISCOVERY)
COORDINATOR = ActorName(ActorKind.COORDINATOR)
STALL_WATCH = ActorName(ActorKind.STALL_WATCH)
SESSION = ActorName(ActorKind.SESSION)
