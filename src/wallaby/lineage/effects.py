"""Effects: everything that the protocol's generators ask the outside world to do, each at a named fail point.

Algorithm 1, delivery, re-reads and recovery are generators. Before every side effect they yield one of these values;
the driver of the generator performs it and sends the answer back in. Production performs effects on threads, the
simulation under a virtual clock. Either may kill the process at any fail point, so the list of fail points is closed
and shared. The type of an effect names the type of its answer. An answer of None always means that no answer came: the
effect may or may not have happened.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar, cast

from wallaby.lineage.lineage import Draw
from wallaby.lineage.names import ChannelName, Edge, TaskName, Upstream, WorkerId
from wallaby.lineage.verdict import Claim, CommitReply, RecordsReply, Verdict

Answer = TypeVar("Answer")
Returned = TypeVar("Returned")


class FailPoint(Enum):
    """Every step at which something can go wrong: the places where the simulation and tests inject faults."""

    __hash__ = object.__hash__  # an enum's own hash is slow, and the simulation counts every visit

    # a TaskManager as a whole
    REGISTER = "register"
    RENEW = "renew"
    DISCOVER = "discover"
    LOOK = "look"
    # Algorithm 1
    CHOOSE = "choose"
    READ = "read"
    EXECUTE = "execute"
    SAVE_STATE = "save state"
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
    RESTORE_STATE = "restore state"
    RETRACE = "retrace"
    RETRACE_BACK_UP = "retrace: back up"
    # re-reads of a moved reader's outputs
    CLAIM = "claim"
    REREAD = "re-read"
    REREAD_BACK_UP = "re-read: back up"
    REREAD_DELIVER = "re-read: deliver"
    # the collector on the head
    COLLECT = "collect"
    # kept results: the head's look at them, and their readers
    KEEP = "keep"
    LOCATE = "locate"
    FETCH = "fetch"
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
    """An action outside the protocol, with the type of its answer."""

    __slots__ = ()
    #: The place where a fault may strike, before the action or before its answer.
    point: FailPoint
    #: Whoever performs it answers within this time, whatever fails; afterwards its answer must have been lost. Effects
    #: that may take longer are requested only by actors for which that does not matter; see `node.driving`.
    answered_within_seconds = 30.0


#: A generator of the protocol: it yields effects, receives their answers, and returns a result. What is sent in has no
#: type here, so only `ask` can use it: a bare `answer = yield effect` does not pass the type checker.
Effects = Generator[Effect[Any], object, Returned]


def ask(effect: Effect[Answer]) -> Effects[Answer]:
    """Yield an effect and return its typed answer. If no answer is needed, `yield` is enough."""
    return cast("Answer", (yield effect))


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of one output that goes over one edge. `body` is None if there are no rows."""

    task: TaskName
    edge: Edge
    final: bool
    size_bytes: int = 0
    body: object = None


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one step: slices for every outgoing edge, and whether the channel needs no more input.

    With a `rest`, the input gives more than one output should hold: the channel's next task consumes nothing and
    continues with the rest. A reader's outputs are repeated one by one, so its next task must itself name where it
    continues: it reads `next_split`, a number that represents the rest of the split.
    """

    checksum: int
    slices: Mapping[Edge, tuple[int, object]]
    satisfied: bool = False
    rest: bool = False
    next_split: int | None = None


@dataclass(frozen=True, slots=True)
class Await(Effect[bool]):
    """Wait until something has arrived or changed, at most as long as the driver's limit.

    The answer is True if nothing came within the time: then a task may be smaller than its target.
    """

    point = FailPoint.CHOOSE


@dataclass(frozen=True, slots=True)
class Pause(Effect[object]):
    """Wait for the given time, or until there is news of the query; arriving data does not end the wait."""

    limit_ms: int
    point: FailPoint = FailPoint.LOOK


class Executed(NamedTuple):
    """The answer to `Execute`: the channel's new state, and what the step made."""

    state: Any
    output: Output


@dataclass(frozen=True, slots=True)
class Execute(Effect[Executed]):
    """Run one step. Never repeated on the same state.

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
    """Keep an output on this worker; the answer is False if there is no room for it.

    On a worker with kept results, an error that ends the query is thrown instead.
    """

    point: FailPoint
    task: TaskName
    output: Output
    final: bool
    #: The epoch of the channel run that made it, or in which it was re-read.
    since_epoch: int = 1


def replaces(since_epoch: int, kept_since_epoch: int) -> bool:
    """Does an output replace another that its worker has kept under the same name?

    A name has one content once it is committed. An attempt of an earlier channel run may never have been committed: the
    output of the later run stays, whichever of the two is stored last.
    """
    return since_epoch >= kept_since_epoch


@dataclass(frozen=True, slots=True)
class SaveState(Effect[bool]):
    """Save the state after a task, if a checkpoint is due: the answer is whether it is now in the durable store.

    `key` distinguishes attempts at the task; `totals` are the numbers of outputs of the upstream channels whose end is
    known.
    """

    task: TaskName
    key: str
    state: Any
    totals: Mapping[Upstream, int]
    point = FailPoint.SAVE_STATE


class RestoredState(NamedTuple):
    """The answer to `RestoreState`: the state, and the totals that were saved with it."""

    state: Any
    totals: Mapping[Upstream, int]


@dataclass(frozen=True, slots=True)
class RestoreState(Effect[RestoredState]):
    """Restore a saved state."""

    task: TaskName
    key: str
    point = FailPoint.RESTORE_STATE


@dataclass(frozen=True, slots=True)
class ReadRecords(Effect[RecordsReply | None]):
    """Read the committed records of a channel."""

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
    #: The epoch of the channel run that attempted it.
    since_epoch: int = 1
    #: The rest of the split that was read, for the next task.
    next_split: int | None = None
    point = FailPoint.COMMIT


@dataclass(frozen=True, slots=True)
class Advance(Effect[None]):
    """The task is committed: free what it consumed. Only now may its output leave."""

    task: TaskName
    point = FailPoint.ADVANCE


@dataclass(frozen=True, slots=True)
class CloseEarly(Effect[Verdict | None]):
    """Close channels from which nobody will draw again: the answer is a verdict."""

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

    A push that would be too large is cut: `held` then covers only the first slices, which were sent. A slice that was
    not sent has not been refused: see `Outbox.confirm`. `accepted` is False if the receiver took none, because of
    another epoch or because it does not host the consumer.
    """

    accepted: bool
    held: tuple[bool, ...] = ()

    def of_all(self, sent: Iterable[bool]) -> PushReply:
        """Extend this reply to all slices: those that were not sent are not held."""
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
    """End this worker as if it had crashed, because it cannot continue (its backup is full)."""

    reason: str
    point = FailPoint.BACK_UP


@dataclass(frozen=True, slots=True)
class Fail(Effect[Verdict | None]):
    """Report a task's own error, which ends the query: the answer is a verdict."""

    error: Exception
    epoch: int
    point = FailPoint.FAIL
