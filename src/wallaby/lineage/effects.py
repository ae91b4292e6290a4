"""Effects: all that the protocol's generators ask of the world, each at a named fail point.

Algorithm 1, delivery, re-reads and recovery are generators. Before every side effect they yield one of these
values; whoever drives them performs it and sends the answer back in. Production performs effects on threads,
the simulation under a virtual clock, and either may kill the process at any fail point: that is why the list
of fail points is closed and shared. The type of an effect says what its answer is. An answer of None always means:
no answer came, it may or may not have happened.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from wallaby.lineage.lineage import Draw
from wallaby.lineage.names import ChannelName, Edge, TaskName, Upstream, WorkerId
from wallaby.lineage.verdict import Claim, CommitReply, Verdict

Answer = TypeVar("Answer")
Returned = TypeVar("Returned")


class FailPoint(Enum):
    """Every step at which something can go wrong: the places where simulation and tests strike."""

    __hash__ = object.__hash__  # an enum's own is slow, and the simulation counts every visit

    # a TaskManager as a whole
    REGISTER = "register"
    RENEW = "renew"
    DISCOVER = "discover"
    LOOK = "look"
    # Algorithm 1
    CHOOSE = "choose"
    READ = "read"
    EXECUTE = "execute"
    BACK_UP = "back up"
    COMMIT = "commit"
    ADVANCE = "advance"
    CLOSE_EARLY = "close early"
    FAIL = "fail"
    # delivery
    DELIVER = "deliver"
    ACKNOWLEDGE = "acknowledge"
    COMPLAIN = "complain"
    # retrace of a rewound channel
    READ_RECORDS = "read records"
    RETRACE = "retrace"
    RETRACE_BACK_UP = "retrace: back up"
    # re-reads of a moved reader's outputs
    CLAIM = "claim"
    REREAD = "re-read"
    REREAD_BACK_UP = "re-read: back up"
    REREAD_DELIVER = "re-read: deliver"
    # the collector on the head
    COLLECT = "collect"
    # what clients ask of the head
    SUBMIT = "submit"
    DRAIN = "drain"
    # Algorithm 2
    WATCH = "watch"
    PING = "ping"
    EXPEL = "expel"
    STATUS = "status"
    JOIN = "join"
    FREEZE = "freeze"
    SNAPSHOT = "snapshot"
    RESUME = "resume"
    REMOVE = "remove"


class Effect(Generic[Answer]):
    """Something to be done outside of the protocol, and the type of the answer that comes back."""

    __slots__ = ()
    #: The place where a fault may strike before it is done, or before it is answered.
    point: FailPoint


#: A generator of the protocol: it yields effects, is sent their answers, and returns something in the end.
Effects = Generator[Effect[Any], Any, Returned]


def ask(effect: Effect[Answer]) -> Effects[Answer]:
    """Yield an effect and return its answer, with its type. Where no answer is wanted, `yield` is enough."""
    answer: Answer = yield effect
    return answer


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of one output that goes over one edge. `body` is None where there are no rows."""

    task: TaskName
    edge: Edge
    final: bool
    size_bytes: int = 0
    body: object = None


@dataclass(frozen=True, slots=True)
class Output:
    """What one step made: slices for every outgoing edge, and whether the channel needs no more input.

    With a `rest`, what was consumed gives more than one output should hold: the channel's next task consumes
    nothing and goes on with it. A reader's outputs are made again one by one, so its next task has to say itself where
    it goes on: what it reads is `next_split`, a number that stands for what is left of its split.
    """

    checksum: int
    slices: Mapping[Edge, tuple[int, object]]
    satisfied: bool = False
    rest: bool = False
    next_split: int | None = None


@dataclass(frozen=True, slots=True)
class Await(Effect[bool]):
    """Wait until something has arrived or changed, at most as long as the driver's limit.

    The answer is True if nothing came although there was time: then a task may be smaller than its target.
    """

    point = FailPoint.CHOOSE


@dataclass(frozen=True, slots=True)
class Pause(Effect[object]):
    """Wait for the given time, or until there are news of the query; what arrives meanwhile does not matter."""

    limit_ms: int
    point: FailPoint = FailPoint.LOOK


@dataclass(frozen=True, slots=True)
class Execute(Effect[tuple[Any, Output]]):
    """Run one step; the answer is the new state and the `Output`. Never repeated on the same state.

    `inputs` are the drawn slices, or empty; `sides` are the slices of the side links used, by link.
    """

    point: FailPoint
    task: TaskName
    state: Any
    split: int | None
    draw: Draw | None
    inputs: tuple[Slice, ...]
    sides: Mapping[int, tuple[Slice, ...]]
    last: bool


@dataclass(frozen=True, slots=True)
class BackUp(Effect[bool]):
    """Keep an output on this worker; the answer is False if there is no room left for it."""

    point: FailPoint
    task: TaskName
    output: Output
    final: bool
    #: The epoch of the channel run whose attempt it is, or in which it was re-read.
    since_epoch: int = 1


def replaces(since_epoch: int, kept_since_epoch: int) -> bool:
    """Does an output take the place of another that its worker has kept under the same name?

    A name has one content once it is committed. An attempt of an earlier channel run may never have been: what a
    later one has made stays instead, whichever of the two is kept last.
    """
    return since_epoch >= kept_since_epoch


@dataclass(frozen=True, slots=True)
class SaveState(Effect[bool]):
    """Save the state after a task, if it is time for that: the answer is whether it is in the durable store now.

    `key` tells attempts at the task apart; `totals` says how many outputs there are of the upstream channels whose
    end is known.
    """

    task: TaskName
    key: str
    state: Any
    totals: Mapping[Upstream, int]
    point = FailPoint.BACK_UP


@dataclass(frozen=True, slots=True)
class RestoreState(Effect[tuple[Any, Mapping[Upstream, int]]]):
    """Take up a saved state: the answer is the state and the totals that were saved with it."""

    task: TaskName
    key: str
    point = FailPoint.READ_RECORDS


@dataclass(frozen=True, slots=True)
class ReadRecords(Effect[tuple[Verdict, tuple[bytes, ...]] | None]):
    """The committed records of a channel: the answer is `(verdict, records)`."""

    channel: ChannelName
    epoch: int
    point = FailPoint.READ_RECORDS


@dataclass(frozen=True, slots=True)
class CommitTask(Effect[CommitReply | None]):
    """Commit one task's record: the answer is a `CommitReply`."""

    task: TaskName
    record: bytes
    final: bool
    delivered: tuple[tuple[Edge, int], ...]
    epoch: int
    #: The epoch of the channel run in which it was attempted.
    since_epoch: int = 1
    #: What is left of the split that was read, for the next task.
    next_split: int | None = None
    point = FailPoint.COMMIT


@dataclass(frozen=True, slots=True)
class Advance(Effect[None]):
    """The task is committed: free what it consumed. Only now may its output leave."""

    task: TaskName
    point = FailPoint.ADVANCE


@dataclass(frozen=True, slots=True)
class CloseEarly(Effect[Verdict | None]):
    """Close what nobody will draw from again: the answer is a verdict."""

    channel: ChannelName
    epoch: int
    point = FailPoint.CLOSE_EARLY


@dataclass(frozen=True, slots=True)
class Push(Effect["PushReply | None"]):
    """Send slices from the backup to one worker: the answer is a `PushReply`."""

    point: FailPoint
    epoch: int
    sender: WorkerId
    target: WorkerId
    items: tuple[tuple[Edge, TaskName], ...]


@dataclass(frozen=True, slots=True)
class PushReply:
    """Which of the pushed slices the receiver now holds; False where it had no room.

    A push that would be too large is cut: `held` then speaks of the first slices, which were sent, and says nothing of
    the others. Not to be sent is no refusal: see `Outbox.confirm`.
    `accepted` is False if it took none because of another epoch, or because it does not host the consumer.
    """

    accepted: bool
    held: tuple[bool, ...] = ()

    def of_all(self, sent: Iterable[bool]) -> PushReply:
        """This reply to some slices as one to all, of which these were sent: the others are not held."""
        if not self.accepted:
            return self
        held = iter(self.held)
        return PushReply(True, tuple(is_sent and next(held) for is_sent in sent))


@dataclass(frozen=True, slots=True)
class Acknowledge(Effect[Verdict | None]):
    """Write deliveries of ended channels to the GCS: the answer is a verdict."""

    delivered: tuple[tuple[Edge, int], ...]
    epoch: int
    point = FailPoint.ACKNOWLEDGE


@dataclass(frozen=True, slots=True)
class ClaimReRead(Effect[Claim | None]):
    """Complete a slot's re-read and take the next: the answer is a `Claim`."""

    slot: int
    completed: TaskName | None
    epoch: int
    point = FailPoint.CLAIM


@dataclass(frozen=True, slots=True)
class Collect(Effect[None]):
    """Hand slices to the client. They are never taken back."""

    slices: tuple[Slice, ...]
    point = FailPoint.COLLECT


@dataclass(frozen=True, slots=True)
class Leave(Effect[None]):
    """This worker cannot go on (its backup is full): it ends itself, as if it had crashed."""

    reason: str
    point = FailPoint.BACK_UP


@dataclass(frozen=True, slots=True)
class Fail(Effect[Verdict | None]):
    """Report a task's own error, which ends the query: the answer is a verdict."""

    error: Exception
    epoch: int
    point = FailPoint.FAIL
