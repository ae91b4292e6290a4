"""The faults of a run: at fail points, from outside, and drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from wallaby.errors import GcsLostError, InvalidArgumentError, KernelError
from wallaby.faults.orders import FaultAct, FaultOrder, parse_all, point_name
from wallaby.lineage.effects import FailPoint
from wallaby.lineage.graph import StageGraph, StageKind
from wallaby_lab.chaos.wires import CUT_WIRE, SILENCE_WIRE


@dataclass(frozen=True, slots=True)
class ChaosFault:
    """The fault of one run."""

    name: str
    #: Orders that strike inside the processes; see `faults.orders`.
    orders: tuple[FaultOrder, ...] = ()
    #: An action from outside; see `outside`.
    outside: str = ""
    #: The share of the commits of an undisturbed run after which the action is taken.
    at: float = 0.3
    #: Alternatively: as soon as an order at this point has struck.
    during: FailPoint | None = None
    #: The condition of the error with which the query must end; empty: it must give an answer.
    expects: str = ""
    #: Does it cost a worker, so that it fails the query without recovery?
    costs_a_worker: bool = True

    def for_query(self, graph: StageGraph, first: str) -> ChaosFault:
        """The same, with the stage and the worker that are meant in this query; `first` is the first one's place."""
        executing = [at for at, stage in enumerate(graph.stages) if stage.kind is StageKind.EXECUTE]
        orders = [replace(o, who=first) if o.who == NEXT_TO_THE_HEAD else o for o in self.orders]
        if executing:
            orders = [replace(o, only=f"s{executing[0]}") if o.only == STATEFUL else o for o in orders]
        return replace(self, orders=tuple(orders))


def _ordered(name: str, text: str, *, costs_a_worker: bool = True) -> ChaosFault:
    return ChaosFault(name, parse_all(text), costs_a_worker=costs_a_worker)


#: Points of Algorithm 1, of delivery and of a TaskManager's life, and the visit at which a worker dies there.
_ATTEMPT: Final = {
    FailPoint.REGISTER: 1,
    FailPoint.RENEW: 1,
    FailPoint.DISCOVER: 1,
    FailPoint.LOOK: 3,
    FailPoint.CHOOSE: 2,
    FailPoint.READ: 2,
    FailPoint.EXECUTE: 2,
    FailPoint.BACK_UP: 2,
    FailPoint.COMMIT: 2,
    FailPoint.ADVANCE: 2,
    FailPoint.DELIVER: 2,
    FailPoint.ACKNOWLEDGE: 1,
}
#: Points of a retrace and of re-reads: a first loss makes them happen, the fault is a second one.
_RETRACE: Final = (FailPoint.READ_RECORDS, FailPoint.RETRACE, FailPoint.RETRACE_BACK_UP)
_REREAD: Final = (FailPoint.CLAIM, FailPoint.REREAD, FailPoint.REREAD_BACK_UP, FailPoint.REREAD_DELIVER)
#: A placeholder for the first stage of a query that keeps state; see `for_query`.
STATEFUL: Final = "s9999"
#: A placeholder for the worker that sends the result to the head: the first, with the first channel of every stage.
NEXT_TO_THE_HEAD: Final = "w9999"
#: A loss of a channel that has committed something, so that it has a past to retrace.
_LOSE_STATE: Final = f"*:execute@{STATEFUL}:2:kill"
#: Points of Algorithm 2, on the head.
_RECOVERY: Final = (
    FailPoint.SUBMIT,
    FailPoint.WATCH,
    FailPoint.PING,
    FailPoint.EXPEL,
    FailPoint.STATUS,
    FailPoint.FREEZE,
    FailPoint.SNAPSHOT,
    FailPoint.RESUME,
    FailPoint.COLLECT,
    FailPoint.REMOVE,
)
#: Those that the head reaches only after a loss.
_AFTER_A_LOSS: Final = (
    FailPoint.PING,
    FailPoint.EXPEL,
    FailPoint.FREEZE,
    FailPoint.SNAPSHOT,
    FailPoint.RESUME,
)
#: Points that a query reaches only when a worker joins. If all workers are lost, it cannot end before one does.
_ALL_LOST: Final = "kill all"
_A_MOMENT: Final = "*:read:1:slow=40ms:x9"


#: In per cent of the commits of an undisturbed run.
KILL_SHARES: Final = (10, 25, 50, 75, 90)


def point_faults() -> tuple[ChaosFault, ...]:
    """A loss at every fail point, before the effect and, where that differs, after it."""
    faults = [
        ChaosFault("register: kill", parse_all(f"*:register:1:kill; {_A_MOMENT}"), outside=_ALL_LOST),
        ChaosFault("join: restart", parse_all(f"head:join:1:restart; {_A_MOMENT}"), outside=_ALL_LOST),
        ChaosFault(
            "join: restart after", parse_all(f"head:join:1:restart:after; {_A_MOMENT}"), outside=_ALL_LOST
        ),
        # Enough that one worker has had three from the same other one, whatever the routes.
        _ordered("complain: kill", "*:deliver:1:fail:x30; *:complain:1:kill"),
        _ordered("complain: kill after", "*:deliver:1:fail:x30; *:complain:1:kill:after"),
        # An unreported error has no effect, because another worker does not make it; a reported one ends the query.
        _ordered("fail: kill", "*:read:2:fail; *:fail:1:kill"),
        ChaosFault(
            "fail: kill after",
            parse_all("*:read:2:fail; *:fail:1:kill:after"),
            expects=KernelError.condition,
            costs_a_worker=False,
        ),
    ]
    for point, nth in _ATTEMPT.items():
        name = point_name(point)
        if point is not FailPoint.REGISTER:
            faults.append(_ordered(f"{name}: kill", f"*:{name}:{nth}:kill"))
            faults.append(_ordered(f"{name}: kill after", f"*:{name}:{nth}:kill:after"))
    for point in _RETRACE:
        name = point_name(point)
        faults.append(_ordered(f"{name}: kill", f"{_LOSE_STATE}; *:{name}:1:kill"))
        faults.append(_ordered(f"{name}: kill after", f"{_LOSE_STATE}; *:{name}:1:kill:after"))
    for point in _REREAD:
        name = point_name(point)
        faults.append(_ordered(f"{name}: kill", f"*:advance:1:kill; *:{name}:1:kill"))
        faults.append(_ordered(f"{name}: kill after", f"*:advance:1:kill; *:{name}:1:kill:after"))
    for point in _RECOVERY:
        name = point_name(point)
        faults.append(_ordered(f"{name}: restart", f"*:commit:2:kill; head:{name}:1:restart"))
        faults.append(_ordered(f"{name}: restart after", f"*:commit:2:kill; head:{name}:1:restart:after"))
    return tuple(faults)


def other_faults() -> tuple[ChaosFault, ...]:
    """Every kind of fault that is not a death at a fail point."""
    return (
        *(
            ChaosFault(f"a worker is killed at {share} %", outside="kill", at=share / 100)
            for share in KILL_SHARES
        ),
        ChaosFault("two workers are killed", outside="kill two"),
        ChaosFault("all workers are killed", outside="kill all"),
        ChaosFault(
            "the replacement is killed again", parse_all("*:read:1:slow=300ms:x9"), outside="kill again"
        ),
        ChaosFault("a zombie wakes", parse_all(_A_MOMENT), outside="stop"),
        # Its TaskManager outlives it by a second or two, until Spark's daemon notices.
        ChaosFault(
            "an executor's JVM is killed",
            parse_all("*:read:1:slow=400ms:x9"),
            outside="kill executor",
            at=0.1,
        ),
        _ordered("a zombie wakes in mid-commit", "*:commit:2:stop=4s"),
        _ordered("a data server is dead", "w1:look:1:deafen"),
        _ordered("the backup disk is full", "*:back-up:2:fail"),
        _ordered("the network is cut from w0 to w1", "w0:deliver@w1:1:fail:x300"),
        _ordered("the network is cut from w1 to w2", "w1:deliver@w2:1:fail:x300"),
        _ordered("the network is cut to the head", f"{NEXT_TO_THE_HEAD}:deliver@head:1:fail:x500"),
        ChaosFault("the wire between two workers is cut", parse_all(_A_MOMENT), outside=CUT_WIRE),
        ChaosFault("the wire between two workers is silent", parse_all(_A_MOMENT), outside=SILENCE_WIRE),
        _ordered(
            "a slow worker",
            "w1:execute:1:slow=100ms; w1:read:1:slow=100ms; w1:commit:1:slow=50ms",
            costs_a_worker=False,
        ),
        _ordered("a commit's answer is lost", "*:commit:1:fail:after:x3", costs_a_worker=False),
        _ordered("commits do not reach the store", "*:commit:1:fail:x3", costs_a_worker=False),
        _ordered("pushes are not answered", "*:deliver:1:fail:after:x2", costs_a_worker=False),
        _ordered("a submission's answer is lost", "head:submit:1:fail:after:x3", costs_a_worker=False),
        _ordered("a late submission", "head:submit:1:delay=800ms", costs_a_worker=False),
        _ordered(
            "the network is cut to w1 for re-reads", "*:advance:1:kill; w0:reread-deliver@w1:1:fail:x300"
        ),
        _ordered("a late freeze", "*:commit:2:kill; head:freeze:1:delay=800ms"),
        _ordered("a late resume", "*:commit:2:kill; head:resume:1:delay=800ms"),
        _ordered("a resume's answer is lost", "*:commit:2:kill; head:resume:1:fail:after"),
        _ordered("a false alarm", "*:commit:2:kill; head:ping:1:fail"),
        ChaosFault("the store is paused", outside="pause store", costs_a_worker=False),
        ChaosFault(
            "the driver's connections to the store are reset",
            parse_all(_A_MOMENT),
            outside="reset store",
            costs_a_worker=False,
        ),
        ChaosFault(
            "the store is restarted empty",
            outside="restart store",
            expects=GcsLostError.condition,
            costs_a_worker=False,
        ),
        _ordered("three deep", "*:commit:2:kill; *:look:3:kill:x2; head:resume:1:restart"),
    )


#: An actor is held here for a moment, so that the wire is cut meanwhile.
_STAND: Final = "delay=500ms"


def wire_faults() -> tuple[ChaosFault, ...]:
    """The wire between two workers, cut in every phase of a query, of a retrace, of re-reads and of a recovery."""
    orders = {point: f"*:{point_name(point)}:{nth}:{_STAND}" for point, nth in _ATTEMPT.items()}
    del orders[FailPoint.REGISTER]  # the address of a worker that has not registered is unknown
    for point in _RETRACE:
        orders[point] = f"{_LOSE_STATE}; *:{point_name(point)}:1:{_STAND}"
    for point in _REREAD:
        orders[point] = f"*:advance:1:kill; *:{point_name(point)}:1:{_STAND}"
    for point in _RECOVERY:
        loss = "*:commit:2:kill; " if point in _AFTER_A_LOSS else ""
        orders[point] = f"{loss}head:{point_name(point)}:1:{_STAND}"
    del orders[FailPoint.REMOVE]  # the query has ended: nothing is sent
    return tuple(
        ChaosFault(f"the wire is cut in {point_name(point)}", parse_all(text), outside=CUT_WIRE, during=point)
        for point, text in orders.items()
    )


#: The paper's queries, with each kind of plan.
POLICY_QUERIES: Final = (1, 3, 5, 6, 7, 8, 9, 10)
#: Faults that every policy has to withstand: deaths in a step, in a delivery and from outside, an apparent death, and
#: several deaths.
POLICY_FAULTS: Final = (
    "execute: kill",
    "deliver: kill",
    "a worker is killed at 50 %",
    "two workers are killed",
    "a zombie wakes in mid-commit",
)


def drawn_fault(seed: int) -> ChaosFault:
    """One to three faults at random points; a seed always draws the same."""
    random = Random(seed)  # noqa: S311 - a schedule, no secret
    points = [
        *(p for p in _ATTEMPT if p is not FailPoint.REGISTER),
        *_RETRACE,
        *_REREAD,
    ]
    orders = []
    for _ in range(random.choice((1, 2, 2, 3))):
        if random.random() < 0.2:
            act = random.choice((FaultAct.RESTART, FaultAct.FAIL, FaultAct.DELAY))
            order = FaultOrder(
                "head",
                random.choice(_RECOVERY[:-2]),
                random.randint(1, 3),
                act,
                _seconds(act),
                random.random() < 0.4,
            )
        else:
            act = random.choice(
                (FaultAct.KILL, FaultAct.KILL, FaultAct.KILL, FaultAct.STOP, FaultAct.FAIL, FaultAct.DELAY)
            )
            point = random.choice(points)
            if act is FaultAct.FAIL and point in (
                FailPoint.READ,
                FailPoint.EXECUTE,
                FailPoint.RETRACE,
                FailPoint.REREAD,
            ):
                act = FaultAct.KILL  # a failing step rightly ends its query
            order = FaultOrder("*", point, random.randint(1, 6), act, _seconds(act), random.random() < 0.4)
        orders.append(order)
    return ChaosFault(f"seed {seed}", tuple(orders))


def _seconds(act: FaultAct) -> float:
    return {FaultAct.STOP: 4.0, FaultAct.DELAY: 0.3}.get(act, 0.0)


def all_faults() -> dict[str, ChaosFault]:
    """Every fault by its name."""
    return {fault.name: fault for fault in (*point_faults(), *other_faults(), *wire_faults())}


def chosen(names: list[str]) -> tuple[ChaosFault, ...]:
    """Select faults by name, by the beginning of a name, or as orders."""
    known = all_faults()
    found: list[ChaosFault] = []
    for name in names:
        matches = [fault for each, fault in known.items() if each == name or each.startswith(f"{name}:")]
        if matches:
            found += matches
        elif ":" in name:
            found.append(ChaosFault(name, parse_all(name)))
        else:
            raise InvalidArgumentError(
                f"There is no fault {name!r}.", fix="wallaby chaos --list prints all of them."
            )
    return tuple(found)
