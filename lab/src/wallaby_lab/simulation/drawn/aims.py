"""Seeds that are aimed at one rare course of events each, which hardly ever happens by chance.

An aim changes what a seed has drawn: the queries, the settings and the faults that lead there. Everything else, and
when exactly things happen, stays random. Draws come from a generator of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import TaskName
from wallaby_lab.simulation.drawn.chain import draw_chain
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.drawn.scenario import Scenario
from wallaby_lab.simulation.drawn.schedules import EVEN, Hold, Schedule
from wallaby_lab.simulation.drawn.workload import draw_workload
from wallaby_lab.simulation.world.flow import FREE, Flow

#: The seeds with one of these aims.
SHARE = 0.2

Drawn = tuple[Scenario, tuple[SimulatedFault, ...]]


def aimed(seed: int, scenario: Scenario) -> Drawn | None:
    """What an aimed seed draws; None for the others."""
    random = Random(f"aims {seed}")
    taken = scenario.flow.forgotten is not None or scenario.stays
    if random.random() >= SHARE or taken or any(hold.aimed for hold in scenario.schedule.holds):
        return None
    calm = replace(scenario, flow=FREE, schedule=EVEN, slow_worker=False, workers=3)
    return random.choice(AIMS)(random, calm)


def _at(kind: FaultKind, point: FailPoint, nth: int = 1, *, after: bool = False) -> SimulatedFault:
    return SimulatedFault(kind, point, nth, after)


def _patient(random: Random, scenario: Scenario, unreachable_ms: int) -> Scenario:
    """Small windows, so that something is always being sent, and complaints that cost nobody soon."""
    session = replace(
        scenario.session, window_bytes=random.choice((1, 8)), outputs_per_push=random.choice((1, 2))
    )
    coordinator = replace(scenario.coordinator, unreachable_ms=unreachable_ms)
    return replace(scenario, session=session, coordinator=coordinator)


def _two_queries_over_one_wire(random: Random, scenario: Scenario) -> Drawn:
    """Two queries complain of the same wire, and one of them takes that back before the other."""
    scenario = _patient(random, scenario, 4_000)
    scenario = replace(scenario, workloads=(draw_workload(random), draw_workload(random)), workers=2)
    kinds = (FaultKind.PARTITION, FaultKind.FLAPPING, FaultKind.PICKY_WIRE)
    return scenario, tuple(
        _at(random.choice(kinds), FailPoint.DELIVER, random.randint(2, 12)) for _ in range(2)
    )


def _reporter_that_leaves(random: Random, scenario: Scenario) -> Drawn:
    """A query ends while a worker complains in its name; another one goes on for longer than complaints last."""
    scenario = _patient(random, scenario, 2_500)
    scenario = replace(
        scenario,
        workloads=(draw_workload(random), draw_workload(random)),
        flow=Flow(slow_execute=random.randint(6, 16)),
        workers=random.choice((2, 3)),
    )
    wires = [_at(FaultKind.PARTITION, FailPoint.DELIVER, random.randint(2, 8)) for _ in range(2)]
    return scenario, (*wires, _at(FaultKind.CANCEL, FailPoint.COMPLAIN, after=True))


def _withdrawal_that_is_lost(random: Random, scenario: Scenario) -> Drawn:
    """A wire works again, and the store does not get to know."""
    scenario = _patient(random, scenario, 4_000)
    wires = [_at(FaultKind.PARTITION, FailPoint.DELIVER, random.randint(2, 10)) for _ in range(2)]
    return scenario, (*wires, _at(FaultKind.REFUSED, FailPoint.COMPLAIN, 2))


def _complaint_after_its_end(random: Random, scenario: Scenario) -> Drawn:
    """Complaints last about as long as it takes to renew them: some are renewed, which costs a worker, some not."""
    scenario = replace(_patient(random, scenario, 1), complaint_ms=1_250)
    kinds = (FaultKind.CUT_FOR_GOOD, FaultKind.FLAPPING, FaultKind.PARTITION)
    return scenario, tuple(
        _at(random.choice(kinds), FailPoint.DELIVER, random.randint(1, 6)) for _ in range(2)
    )


def _late_error(random: Random, scenario: Scenario) -> Drawn:
    """A task fails, and that is reported in a later epoch, or by a worker that has been expelled."""
    workload = scenario.workloads[0]
    stage = random.randrange(len(workload.graph.stages) - 1)
    failing = replace(workload, error=TaskName(stage, 0, random.choice((0, 0, 1))), poison=None, fickle=None)
    scenario = replace(scenario, workloads=(failing,))
    if random.random() < 0.5:
        kind = random.choice((FaultKind.PAUSE, FaultKind.STORE_PARTITION, FaultKind.REORDER))
        return scenario, (_at(kind, FailPoint.FAIL), _at(FaultKind.CRASH, FailPoint.FAIL, 2))
    hold = Hold(FailPoint.FAIL, 1, False, random.choice((900, 1_500)), crash=True)
    return replace(scenario, schedule=Schedule((hold,))), ()


def _late_registration(random: Random, scenario: Scenario) -> Drawn:
    """A call to register is so late that its worker has been expelled meanwhile."""
    coordinator = replace(scenario.coordinator, lease_ms=200, poll_ms=50)
    scenario = replace(
        scenario, coordinator=coordinator, workers=random.choice((1, 2)), restarts=True, renew_every_ms=66
    )
    crash = _at(FaultKind.CRASH, FailPoint.RENEW, random.choice((1, 1, 2)), after=True)
    return scenario, (_at(FaultKind.REORDER, FailPoint.REGISTER), crash)


def _late_membership(random: Random, scenario: Scenario) -> Drawn:
    """A call to make a worker a member is so late that the query has lost that worker meanwhile."""
    coordinator = replace(scenario.coordinator, lease_ms=200, poll_ms=50)
    scenario = replace(scenario, coordinator=coordinator, renew_every_ms=66, workers=2)
    join = _at(FaultKind.JOIN, FailPoint.READ, random.randint(1, 3))
    late, crash = _at(FaultKind.REORDER, FailPoint.JOIN), _at(FaultKind.CRASH, FailPoint.JOIN, 2, after=True)
    return replace(scenario, flow=Flow(slow_execute=random.randint(4, 10))), (join, late, crash)


def _store_silent_again(random: Random, scenario: Scenario) -> Drawn:
    """The store is silent several times: never for as long as its limit, or just for longer."""
    lease_ms = random.choice((200, 200, 500))
    coordinator = replace(
        scenario.coordinator, lease_ms=lease_ms, poll_ms=50, silent_ms=random.choice((400, 1_200))
    )
    scenario = replace(
        scenario,
        coordinator=coordinator,
        renew_every_ms=lease_ms // 3,
        flow=Flow(slow_execute=random.randint(1, 6)),
        workers=random.choice((1, 2)),
    )
    looks = sorted(random.sample(range(4, 60), 3))
    return scenario, tuple(_at(FaultKind.STORE_PAUSE, FailPoint.WATCH, nth) for nth in looks)


def _loss_while_leaving(random: Random, scenario: Scenario) -> Drawn:
    """A worker dies after the freeze that lets it leave, and before its channels are elsewhere."""
    asked = _at(FaultKind.DRAIN, random.choice((FailPoint.COMMIT, FailPoint.DELIVER)), random.randint(1, 6))
    lost = _at(FaultKind.REPLY_LOST, FailPoint.FREEZE)
    return scenario, (asked, lost, _at(FaultKind.CRASH, FailPoint.FREEZE))


def _leaving_unanswered(random: Random, scenario: Scenario) -> Drawn:
    """A worker wants to leave, and the store does not answer one of the head's questions."""
    asked = _at(FaultKind.DRAIN, random.choice((FailPoint.COMMIT, FailPoint.DELIVER)), random.randint(1, 6))
    kind = random.choice((FaultKind.REPLY_LOST, FaultKind.REFUSED))
    point, nth = random.choice(
        ((FailPoint.DRAIN, 1), (FailPoint.DRAIN, 2), (FailPoint.DRAIN, 3), (FailPoint.EXPEL, 1))
    )
    return scenario, (asked, _at(kind, point, nth))


def _loss_while_rereading(random: Random, scenario: Scenario) -> Drawn:
    """Re-reads take long, their stage goes on meanwhile, and another worker is lost."""
    lost = _at(FaultKind.CRASH, FailPoint.READ, random.randint(4, 10))
    point = random.choice((FailPoint.CLAIM, FailPoint.CLAIM, FailPoint.REREAD, FailPoint.REREAD_DELIVER))
    hold = Hold(point, random.randint(1, 4), random.random() < 0.5, random.choice((200, 800)), crash=True)
    if random.random() < 0.7:
        scenario = replace(scenario, workloads=(draw_chain(random),))
    session = replace(scenario.session, reread_slots=1, window_bytes=random.choice((1, 8, 40)))
    return replace(scenario, session=session, schedule=Schedule((hold,)), workers=4), (lost,)


def _refused_in_turn(random: Random, scenario: Scenario) -> Drawn:
    """Pushes of an output are lost, and then refused: the wire works again, and its other end has not looked yet."""
    scenario = _patient(random, scenario, 4_000)
    coordinator = replace(scenario.coordinator, lease_ms=200, poll_ms=50)
    scenario = replace(scenario, coordinator=coordinator, renew_every_ms=66)
    hold = Hold(
        FailPoint.LOOK, random.randint(6, 20), True, random.choice((3_000, 4_000)), crash=True, cuts=True
    )
    return replace(scenario, schedule=Schedule((hold,))), ()


def _cut_off(random: Random, scenario: Scenario) -> Drawn:
    """Several wires are cut for good, so that one worker is at the end of more of them than others."""
    scenario = replace(_patient(random, scenario, 600), workers=4)
    return scenario, tuple(
        _at(FaultKind.CUT_FOR_GOOD, FailPoint.DELIVER, random.randint(1, 10)) for _ in range(3)
    )


AIMS: tuple[Callable[[Random, Scenario], Drawn], ...] = (
    _two_queries_over_one_wire,
    _reporter_that_leaves,
    _withdrawal_that_is_lost,
    _complaint_after_its_end,
    _late_error,
    _late_registration,
    _late_membership,
    _store_silent_again,
    _loss_while_leaving,
    _leaving_unanswered,
    _loss_while_rereading,
    _refused_in_turn,
    _cut_off,
)
