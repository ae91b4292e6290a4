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
from wallaby_lab.simulation.drawn.stay import SOON_MS, Stay, Visit
from wallaby_lab.simulation.drawn.staying import kept_result
from wallaby_lab.simulation.drawn.workload import draw_workload
from wallaby_lab.simulation.world.flow import FREE, PLENTY_BYTES, Flow

#: The seeds with one of these aims.
SHARE = 0.35

Drawn = tuple[Scenario, tuple[SimulatedFault, ...]]


def aimed(seed: int, scenario: Scenario) -> Drawn | None:
    """What an aimed seed draws; None for the others."""
    random = Random(f"aims {seed}")
    taken = scenario.flow.forgotten is not None or scenario.stays
    if random.random() >= SHARE or taken or any(hold.aimed for hold in scenario.schedule.holds):
        return None
    calm = replace(scenario, flow=FREE, schedule=EVEN, slow_worker=False, workers=3)
    can_stay = not scenario.session.tolerance.durable
    return random.choice((*AIMS, *OF_RESULTS_THAT_STAY) if can_stay else AIMS)(random, calm)


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
    lease_ms, silent_ms = random.choice(((200, 400), (200, 1_200), *2 * ((500, 400),)))
    coordinator = replace(scenario.coordinator, lease_ms=lease_ms, poll_ms=50, silent_ms=silent_ms)
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


def _dismissal_unanswered(random: Random, scenario: Scenario) -> Drawn:
    """A worker may leave, and the store does not answer the head's request to dismiss it."""
    scenario = replace(scenario, coordinator=replace(scenario.coordinator, poll_ms=50))
    asked = _at(FaultKind.DRAIN, random.choice((FailPoint.READ, FailPoint.COMMIT)), random.randint(1, 3))
    kind = random.choice((FaultKind.REPLY_LOST, FaultKind.REFUSED))
    return scenario, (asked, _at(kind, FailPoint.EXPEL))


def _claim_unanswered(random: Random, scenario: Scenario) -> Drawn:
    """The store gives a re-read to a worker, which does not get the answer."""
    lost = _at(FaultKind.CRASH, FailPoint.READ, random.randint(3, 8))
    faults = tuple(_at(FaultKind.REPLY_LOST, FailPoint.CLAIM, nth) for nth in (1, 2, 4, 6))
    session = replace(scenario.session, reread_slots=1)
    return replace(scenario, session=session), (lost, *faults)


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
        _at(FaultKind.CUT_FOR_GOOD, FailPoint.DELIVER, random.randint(1, 6)) for _ in range(5)
    )


def _published_meanwhile(random: Random, scenario: Scenario) -> Drawn:
    """A worker writes deliveries down, which takes long or has to be repeated, and publishes more meanwhile."""
    session = replace(scenario.session, window_bytes=1_000, outputs_per_push=random.choice((1, 32)))
    kinds = (FaultKind.REFUSED, FaultKind.REPLY_LOST)
    faults = tuple(_at(random.choice(kinds), FailPoint.ACKNOWLEDGE, nth) for nth in range(1, 6))
    return replace(scenario, session=session, workers=random.choice((1, 2))), faults


def _late_acknowledgement(random: Random, scenario: Scenario) -> Drawn:
    """Deliveries that were written down, or reported with a commit, reach the store after later ones."""
    scenario = _patient(random, scenario, 4_000)
    points = (FailPoint.ACKNOWLEDGE, FailPoint.ACKNOWLEDGE, FailPoint.COMMIT)
    return scenario, tuple(
        _at(FaultKind.REORDER, random.choice(points), random.randint(1, 8)) for _ in range(4)
    )


def _session_not_opened(random: Random, scenario: Scenario) -> Drawn:
    """The answer to the request to open a session is lost, perhaps with the session."""
    flow = Flow(forgotten=(FailPoint.DISCOVER, random.randint(2, 5), random.random() < 0.3))
    return replace(scenario, flow=flow, workers=1), ()


def _sleeping_head(random: Random, scenario: Scenario) -> Drawn:
    """The driver is paused while workers send it rows: they complain of it, and none may be given up for that."""
    scenario = _patient(random, scenario, random.choice((300, 600)))
    coordinator = replace(scenario.coordinator, lease_ms=random.choice((300, 500)))
    scenario = replace(scenario, coordinator=coordinator, renew_every_ms=coordinator.lease_ms // 3)
    point = random.choice((*3 * (FailPoint.COLLECT,), FailPoint.DELIVER, FailPoint.WATCH))
    pause = _at(FaultKind.HEAD_PAUSE, point, random.randint(1, 4))
    return scenario, (pause, _at(FaultKind.HEAD_PAUSE, FailPoint.COLLECT, random.randint(4, 8)))


def _whole_when_it_is_judged(random: Random, scenario: Scenario) -> Drawn:
    """The client takes the last rows while the stall watch judges the last answers of a query that has stood still."""
    coordinator = replace(scenario.coordinator, lease_ms=1_500, poll_ms=450, unreachable_ms=3_000)
    session = replace(scenario.session, look_every_ms=800)
    flow = Flow(
        forgotten=(FailPoint.COLLECT, random.choice((1, 1, 1, 2)), True),
        comes_in_round=random.choice((16, 16, 17, 18)),
    )
    small = min((draw_workload(random) for _ in range(3)), key=lambda workload: len(workload.graph.stages))
    scenario = replace(scenario, workloads=(small,), flow=flow, renew_every_ms=500, workers=1)
    return replace(scenario, coordinator=coordinator, session=session), ()


def _kept(random: Random, scenario: Scenario, stay: Stay, workers: int) -> Scenario:
    """One query whose result stays."""
    workload = kept_result(draw_workload(random))
    while not workload.graph.keeps:
        workload = kept_result(draw_workload(random))
    return replace(scenario, workloads=(workload,), stays=(stay,), workers=workers, room_bytes=PLENTY_BYTES)


def _reader_that_is_held_up(random: Random, scenario: Scenario) -> Drawn:
    """Outputs come late, one after the other, within a reader's patience; all of them together take longer."""
    nth = random.randint(1, 3)
    hold = Hold(FailPoint.FETCH, nth, False, random.choice((450, 600)), crash=False)
    stay = Stay((Visit(0, 1, SOON_MS),), None)
    scenario = _kept(random, scenario, stay, random.choice((1, 2)))
    return replace(scenario, schedule=Schedule((hold,))), (_at(FaultKind.DROP, FailPoint.FETCH, nth + 1),)


def _released_when_almost_whole(random: Random, scenario: Scenario) -> Drawn:
    """A result is released just before it is whole, and the coordinator looks at it later."""
    coordinator = replace(scenario.coordinator, lease_ms=3_000, poll_ms=1_500, unreachable_ms=6_000)
    scenario = _kept(
        random, replace(scenario, coordinator=coordinator, renew_every_ms=1_000), Stay((), 10_000), 2
    )
    point = random.choice((FailPoint.COMMIT, FailPoint.ADVANCE, FailPoint.EXECUTE))
    return scenario, (_at(FaultKind.RELEASE, point, random.randint(3, 15)),)


#: Aims at results that stay, which not every policy has.
OF_RESULTS_THAT_STAY: tuple[Callable[[Random, Scenario], Drawn], ...] = (
    _reader_that_is_held_up,
    _released_when_almost_whole,
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
    _dismissal_unanswered,
    _claim_unanswered,
    _loss_while_rereading,
    _refused_in_turn,
    _cut_off,
    _published_meanwhile,
    _late_acknowledgement,
    _session_not_opened,
    _sleeping_head,
    _whole_when_it_is_judged,
)
