"""Scenarios under pressure: what a seed draws for the flow of outputs.

Draws come from a separate random generator, so they change nothing else that a seed draws.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from wallaby.lineage.choose import Dynamic, Static
from wallaby.lineage.effects import FailPoint
from wallaby_lab.simulation.drawn.chain import draw_chain
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.drawn.schedules import Aim, Hold, draw_aimed
from wallaby_lab.simulation.drawn.workload import Operator
from wallaby_lab.simulation.world.flow import FREE, PLENTY_BYTES, Flow

#: Longer than faults can delay anything: they strike for six seconds in total, and a worker that is cut from the store
#: for good is expelled about six seconds after its lease, or after the coordinator has gone on without a lost answer.
STALL_MS = 16_000
#: More workers than any seed loses.
LOSSES_MAX = 1_000
CALM_LEASE_MS, CALM_POLL_MS, CALM_LOOK_MS = 1_500, 450, 800
#: The seeds with trouble on wires while lost outputs are sent again, and with the loss before it.
WIRES_SHARE = 0.12
#: The seeds in which a worker and a query appear while the coordinator looks at older leases; twice as many in which a
#: push, a commit or an acknowledgement is answered after its epoch, and the worker concerned is lost.
LATE_SHARE = 0.03
_LATE = (FailPoint.ACKNOWLEDGE, FailPoint.COMMIT, *2 * (FailPoint.DELIVER,))
#: The seeds with little room for side inputs.
SIDES_SHARE = 0.18
_LOST_AT = (FailPoint.ADVANCE, FailPoint.ADVANCE, FailPoint.COMMIT, FailPoint.DELIVER)
_WIRES = (
    *3 * (FaultKind.PICKY_WIRE,),
    FaultKind.CUT_FOR_GOOD,
    FaultKind.ONE_WAY,
    *2 * (FaultKind.PARTITION,),
    FaultKind.FLAPPING,
)
#: The fail points of an early end, and the faults that may strike then.
_EARLY = {Operator.LIMIT, Operator.AT_LEAST}
_AT_AN_EARLY_END = (
    *2 * (FaultKind.CRASH,),
    FaultKind.CRASH_TWO,
    FaultKind.REFUSED,
    FaultKind.REPLY_LOST,
    FaultKind.PAUSE,
)
_LOSING = (*3 * (FaultKind.CRASH,), FaultKind.DRAIN, FaultKind.JOIN, FaultKind.PAUSE)
_SENT_AGAIN = (*3 * (FailPoint.REREAD_DELIVER,), FailPoint.DELIVER)
#: Where a bug may lose an effect or its answer. The actor waits for ever, and the stall watch must end the query,
FORGETTABLE = (
    FailPoint.READ,
    FailPoint.EXECUTE,
    FailPoint.SAVE_STATE,
    FailPoint.BACK_UP,
    FailPoint.COLLECT,
    FailPoint.CLOSE_EARLY,
    FailPoint.RESTORE_STATE,
    FailPoint.RETRACE,
    FailPoint.RETRACE_BACK_UP,
    FailPoint.REREAD,
    FailPoint.REREAD_BACK_UP,
    FailPoint.ADVANCE,
    FailPoint.CHOOSE,
    FailPoint.COMMIT,
    FailPoint.DELIVER,
    FailPoint.ACKNOWLEDGE,
    FailPoint.CLAIM,
    FailPoint.REREAD_DELIVER,
    FailPoint.READ_RECORDS,
    FailPoint.COMPLAIN,
    FailPoint.FAIL,
)
#: or it must go on without the answer: these are requested on behalf of a process as a whole.
FORGETTABLE_OFTEN = (
    FailPoint.LOOK,
    FailPoint.RENEW,
    FailPoint.DISCOVER,
    FailPoint.WATCH,
    FailPoint.STATUS,
)
FORGETTABLE_SELDOM = (
    FailPoint.REGISTER,
    FailPoint.PING,
    FailPoint.EXPEL,
    FailPoint.JOIN,
    *2 * (FailPoint.FREEZE,),
    *2 * (FailPoint.SNAPSHOT,),
    *3 * (FailPoint.RESUME,),
    FailPoint.REMOVE,
    FailPoint.SUBMIT,
    FailPoint.DRAIN,
)
_AFTER_A_LOSS = {
    *FORGETTABLE_SELDOM,
    FailPoint.READ_RECORDS,
    FailPoint.RETRACE,
    FailPoint.RETRACE_BACK_UP,
    FailPoint.RESTORE_STATE,
    FailPoint.CLAIM,
    FailPoint.REREAD,
    FailPoint.REREAD_BACK_UP,
    FailPoint.REREAD_DELIVER,
}


def pressed(seed: int, scenario: Scenario) -> Scenario:
    """Add the flow that its seed draws to a scenario: half of them are under pressure, a few pause for long."""
    random = Random(f"flow {seed}")
    flow, session, workers = Flow(), scenario.session, scenario.workers
    if random.random() < 0.5:
        flow = replace(
            flow,
            push_bytes=random.choice((1, 16, 24, 40, 64)),
            incoming_bytes=random.choice((8, 24, PLENTY_BYTES)),
            ask_bytes=random.choice((0, 32, PLENTY_BYTES)),
        )
        session = replace(session, window_bytes=random.choice((1, 8, 16, 24)))
        workers = random.choice((1, 1, 2, workers))
    drawn = random.random()
    if drawn < 0.04:
        flow = replace(flow, slow_collect=random.choice((1, 1, 2)))
    elif drawn < 0.08:
        flow = replace(flow, slow_execute=random.randint(1, 8))
    elif drawn < 0.16:
        flow = replace(flow, forgotten=_forgotten(random))
    session = replace(session, sides_bytes=_sides_bytes(seed))
    coordinator = replace(scenario.coordinator, stall_ms=STALL_MS)
    scenario = replace(scenario, flow=flow, session=session, workers=workers, coordinator=coordinator)
    scenario = _calm(scenario) if drawn < 0.16 else scenario
    rewinds = scenario.session.tolerance.checkpoints and not scenario.session.tolerance.durable
    return _aimed(random, scenario) if rewinds and drawn > 0.6 else scenario


def _forgotten(random: Random) -> tuple[FailPoint, int, bool]:
    """The effect whose answer is lost; half of them are performed."""
    drawn = random.random()
    if drawn < 0.6:
        return random.choice(FORGETTABLE), random.choice((1, 2, random.randint(1, 12))), random.random() < 0.5
    if drawn < 0.75:
        return random.choice(FORGETTABLE_OFTEN), random.randint(1, 12), random.random() < 0.5
    return random.choice(FORGETTABLE_SELDOM), random.choice((1, 1, 2, 3)), random.random() < 0.5


def _sides_bytes(seed: int) -> int | None:
    """The room for side inputs: without a limit in most seeds."""
    random = Random(f"sides {seed}")
    return random.choice((8, 40, 120)) if random.random() < SIDES_SHARE else None


def _aimed(random: Random, scenario: Scenario) -> Scenario:
    """Aim losses so that they rewind a channel in place, which needs saved states without saved outputs."""
    schedule = replace(scenario.schedule, holds=(*_lost_later(random), *draw_aimed(random)))
    session = replace(
        scenario.session,
        policy=random.choice((Static(1), Static(1, several=True), Dynamic(8))),
        window_bytes=random.choice((8, 1_000, 1_000)),
        outputs_per_push=32,
    )
    return replace(
        scenario,
        # No task of the chain kills its workers, so none of another query may do so either.
        coordinator=replace(scenario.coordinator, task_worker_losses_max=LOSSES_MAX),
        workloads=(draw_chain(random), *(replace(each, poison=None) for each in scenario.workloads[1:])),
        schedule=schedule,
        session=session,
        workers=random.choice((3, 3, 4)),
        room_bytes=PLENTY_BYTES,
        flow=FREE,
        # The first operator of the chain saves its states, and the next one does not.
        saved_shares=tuple((0.5, 0.95, 0.0)[(at - scenario.random_seed) % 3] for at in range(3)),
    )


def _lost_later(random: Random) -> tuple[Hold, ...]:
    """A loss of a worker with a channel that has saved states: mostly after a commit, or else before it.

    Before it, the attempt is lost, and perhaps its state is saved; the next attempt may draw differently.
    """
    after = random.random() < 0.6
    return (Hold(FailPoint.COMMIT, random.randint(8, 24), after, 0, crash=True, aimed=Aim.OWN),)


def with_aimed_faults(
    seed: int, scenario: Scenario, faults: tuple[SimulatedFault, ...]
) -> tuple[Scenario, tuple[SimulatedFault, ...]]:
    """Add faults at early ends; some seeds lose a worker, and wires over which its outputs are sent again.

    There are enough workers for wires to matter, and windows are small, so that something is always being sent.
    """
    random = Random(f"wires {seed}")
    if any(_EARLY & set(workload.operators) for workload in scenario.workloads) and random.random() < 0.6:
        kind, after = random.choice(_AT_AN_EARLY_END), random.random() < 0.3
        faults = (SimulatedFault(kind, FailPoint.CLOSE_EARLY, 1, after), *faults)
    forgotten = scenario.flow.forgotten
    if forgotten is not None and forgotten[0] in _AFTER_A_LOSS and random.random() < 0.8:
        kind = FaultKind.DRAIN if forgotten[0] is FailPoint.DRAIN else random.choice(_LOSING)
        return scenario, (
            SimulatedFault(kind, random.choice(_LOST_AT), random.randint(1, 4), after=True),
            *faults[:2],
        )
    if forgotten is not None and random.random() < 0.5:
        # Some answers to the stall watch are lost, or all of one worker.
        kind = random.choice((*2 * (FaultKind.FLAPPING,), FaultKind.CUT_FOR_GOOD))
        silent = SimulatedFault(kind, FailPoint.WATCH, random.randint(1, 4), after=True)
        return scenario, (silent, *faults[:1])
    if random.random() < 0.03:  # it is given up, and arrives afterwards
        faults = (SimulatedFault(FaultKind.REORDER, FailPoint.SUBMIT, 1, after=False), *faults)
        scenario = replace(scenario, coordinator=replace(scenario.coordinator, submit_ms=300))
    if any(hold.aimed for hold in scenario.schedule.holds):
        return scenario, faults[: random.choice((0, 0, 1))]
    if random.random() < LATE_SHARE:
        hold = Hold(FailPoint.WATCH, random.randint(2, 4), True, random.choice((30, 60)), False, submits=True)
        schedule = replace(scenario.schedule, holds=(hold, *scenario.schedule.holds[:1]))
        return replace(scenario, schedule=schedule), faults[: random.choice((0, 1, 1, 2))]
    if random.random() < 2 * LATE_SHARE:
        point = random.choice(_LATE)
        hold = Hold(point, random.randint(1, 6), True, 1_500, crash=True)
        schedule = replace(scenario.schedule, holds=(hold,))
        return replace(scenario, schedule=schedule, workers=max(scenario.workers, 3)), faults[:1]
    if random.random() >= WIRES_SHARE:
        return scenario, faults
    lost = SimulatedFault(
        FaultKind.CRASH, random.choice(_LOST_AT), random.randint(1, 4), random.random() < 0.5
    )
    wires = tuple(
        SimulatedFault(
            random.choice(_WIRES), random.choice(_SENT_AGAIN), random.choice((1, 1, 2)), after=False
        )
        for _ in range(random.choice((1, 2)))
    )
    session = replace(
        scenario.session, window_bytes=random.choice((1, 8)), outputs_per_push=random.choice((1, 2))
    )
    scenario = replace(scenario, session=session, workers=random.choice((3, 4)), slow_worker=False)
    return scenario, (lost, *wires, *faults[: random.choice((0, 1))])


def _calm(scenario: Scenario) -> Scenario:
    """Lengthen leases where nothing moves for long, or most of a run would be renewals."""
    coordinator = replace(
        scenario.coordinator, lease_ms=CALM_LEASE_MS, poll_ms=CALM_POLL_MS, unreachable_ms=2 * CALM_LEASE_MS
    )
    session = replace(scenario.session, look_every_ms=CALM_LOOK_MS)
    return replace(scenario, coordinator=coordinator, session=session, renew_every_ms=CALM_LEASE_MS // 3)
