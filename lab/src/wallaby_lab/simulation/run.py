"""One seed: draw a scenario and its faults, let them strike, heal the world, and require the right outcome.

First faults strike, until all have struck or their time is over. Then the world is healed, and every query must end
within a bounded time: with the right rows, or with an error that one of the faults justifies. Nothing may be left
behind.
"""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.errors import (
    GcsLostError,
    GcsUnavailableError,
    InternalError,
    InvalidArgumentError,
    MemoryLimitError,
    NoWorkersError,
    PoisonTaskError,
    QueryCancelledError,
    QueryError,
    QueryStalledError,
    WallabyError,
)
from wallaby.lineage.choose import DrawPolicy, Dynamic, Static
from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import TaskName
from wallaby.node.session import QuerySessionSettings
from wallaby.worker.taskmanager import UNANSWERED_MAX
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.cuts.drawing import with_snapshots
from wallaby_lab.simulation.cuts.performing import AlignedPerformer
from wallaby_lab.simulation.cuts.rolling import go_on
from wallaby_lab.simulation.drawn.aims import aimed
from wallaby_lab.simulation.drawn.faults import STORE_LOST, SimulatedFault, draw_faults
from wallaby_lab.simulation.drawn.policies import MIXED, policy_named, policy_of, simulated
from wallaby_lab.simulation.drawn.pressure import LOSSES_MAX, pressed, with_aimed_faults
from wallaby_lab.simulation.drawn.scenario import PLENTY_BYTES, Scenario
from wallaby_lab.simulation.drawn.schedules import draw_schedule
from wallaby_lab.simulation.drawn.staying import with_faults_at_readers, with_results_kept
from wallaby_lab.simulation.drawn.workload import ToyWorkload, draw_workload
from wallaby_lab.simulation.world.lost import LostAnswers
from wallaby_lab.simulation.world.perform import CALL_TIMEOUT_US, SimulatedPerformer
from wallaby_lab.simulation.world.process import RunTally
from wallaby_lab.simulation.world.running import Running
from wallaby_lab.simulation.world.strike import Striker
from wallaby_lab.simulation.world.world import World

#: How long faults may strike before the world is healed.
FAULTY_MS = 6_000
#: From then on a query must end within this virtual time and number of steps. A few seeds draw queries whose
#: tasks multiply from stage to stage, and take tens of thousands of steps without anything being wrong.
HEALED_MS = 180_000
STEPS_MAX = 600_000
#: Within this time, paused processes wake and notice that their query has ended.
CLEAN_MS = 12_000
NEVER_MS = 10_000_000
#: How long a query waits for the moment at which it should be submitted.
LATEST_US = 2_000_000
WORKERS_MAX = 64


@dataclass(frozen=True)
class Failure:
    """What went wrong in a run, by the number of the invariant, and as a sentence."""

    number: int
    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class RunResult:
    """One run: what happened, and the failure, if there was one."""

    seed: int
    #: The policy of its queries, by name.
    policy: str
    faults: tuple[SimulatedFault, ...]
    tally: RunTally
    failure: Failure | None


def draw_scenario(random: Random) -> Scenario:
    """Draw queries, settings and workers."""
    queries = 2 if random.random() < 0.15 else 1
    poisoned = random.random() < 0.02
    lease_ms = random.choice((200, 300, 500))
    return Scenario(
        workloads=tuple(_spoiled(random, draw_workload(random), poisoned) for _ in range(queries)),
        session=QuerySessionSettings(
            policy=_draw_policy(random),
            window_bytes=random.choice((1, 8, 16, 40, 120, 1000)),
            outputs_per_push=random.choice((1, 2, 4, 32)),
            reread_slots=random.choice((1, 1, 2)),
            look_every_ms=random.choice((120, 300)),
        ),
        coordinator=CoordinatorSettings(
            lease_ms=lease_ms,
            poll_ms=random.choice((50, 150)),
            unreachable_ms=2 * lease_ms,
            no_workers_ms=random.choice((400, 1_500)) if random.random() < 0.1 else NEVER_MS,
            frozen_ms=NEVER_MS,
            submit_ms=random.choice((300, 1_500, NEVER_MS)),
            task_worker_losses_max=4 if poisoned else LOSSES_MAX,
        ),
        workers=random.choice((1, 2, 2, 3, 3, 4, 5)),
        renew_every_ms=lease_ms // 3,
        room_bytes=random.choice((PLENTY_BYTES, PLENTY_BYTES, 2_500)),
        slow_worker=random.random() < 0.15,
        restarts=random.random() < 0.7,
        random_seed=random.getrandbits(48),
        schedule=draw_schedule(random),
    )


def _draw_policy(random: Random) -> DrawPolicy:
    several = random.random() < 0.6
    if random.random() < 0.6:
        return Dynamic(random.choice((8, 24, 64, 1000)), several)
    return Static(random.choice((1, 2, 3)), several)


def _spoiled(random: Random, workload: ToyWorkload, poisoned: bool) -> ToyWorkload:
    """Sometimes add a task that kills its worker, raises its own error, or is nondeterministic."""
    kind = random.random()
    if not poisoned and kind >= 0.07:
        return workload
    stages = len(workload.graph.stages) - 1
    task = TaskName(random.randrange(stages), 0, random.choice((0, 1)))
    if poisoned:
        return replace(workload, poison=task)
    return replace(workload, error=task) if kind < 0.03 else replace(workload, fickle=task)


def draw(
    seed: int, workers: int | None = None, policy: str = MIXED
) -> tuple[Scenario, tuple[SimulatedFault, ...]]:
    """What a seed draws; `workers` overrides its initial number of workers. The policy changes little else."""
    check_workers(workers)
    tolerance = simulated(policy_of(seed, policy))
    random = Random(seed)
    scenario = draw_scenario(random)
    scenario = replace(scenario, session=replace(scenario.session, tolerance=tolerance))
    scenario = pressed(seed, scenario)
    faults = draw_faults(random, with_errors=any(w.error for w in scenario.workloads))
    if tolerance.rolls_back:
        scenario, faults = with_snapshots(seed, *with_aimed_faults(seed, scenario, faults))
    else:
        scenario = with_results_kept(seed, scenario)
        scenario, faults = aimed(seed, scenario) or _disturbed(seed, scenario, faults)
    if workers is not None:
        scenario = replace(scenario, workers=workers)
    return scenario, faults


def _disturbed(
    seed: int, scenario: Scenario, faults: tuple[SimulatedFault, ...]
) -> tuple[Scenario, tuple[SimulatedFault, ...]]:
    """A seed without a special aim: its own faults, and some at wires, early ends and readers."""
    scenario, faults = with_aimed_faults(seed, scenario, faults)
    return scenario, with_faults_at_readers(seed, scenario, faults)


def check_workers(workers: int | None) -> None:
    """Refuse an impossible number of workers."""
    if workers is not None and not 1 <= workers <= WORKERS_MAX:
        raise InvalidArgumentError(
            f"Impossible topology: {workers} workers.", fix=f"Start with 1 to {WORKERS_MAX} workers."
        )


def quiet_logs() -> None:
    """Keep the engine's log out of this process: a seed draws losses and stalls on purpose, thousands of them."""
    logging.getLogger("wallaby").setLevel(logging.CRITICAL)


def run_seed(seed: int, workers: int | None = None, policy: str = MIXED) -> RunResult:
    """Run one seed."""
    return run(seed, *draw(seed, workers, policy))


def run(
    seed: int,
    scenario: Scenario,
    faults: tuple[SimulatedFault, ...],
    story: list[str] | None = None,
    visits: Counter[tuple[FailPoint, bool]] | None = None,
) -> RunResult:
    """Run a scenario under given faults. The same arguments always give the same run.

    `story` gets a line for everything that happens, `visits` counts how often each fail point is reached.
    """
    rolls_back = scenario.session.tolerance.rolls_back
    if rolls_back:  # as the head does it
        scenario = replace(scenario, coordinator=replace(scenario.coordinator, recovers=False))
    performer = AlignedPerformer if rolls_back else SimulatedPerformer
    world = World(scenario, faults, performer, Striker, story, LostAnswers)
    world.counts_visits = visits is not None
    failure: Failure | None = None
    with _without_collecting():
        try:
            _run(world)
        except InvariantViolation as violation:
            failure = Failure(violation.number, violation.what)
        except InternalError as error:
            failure = Failure(0, f"internal error: {error.what}")
        except (AssertionError, LookupError, AttributeError, TypeError, ValueError, WallabyError) as error:
            failure = Failure(0, f"{type(error).__name__}: {error}")
        if failure is not None:
            world.tell(f"FAILED: {failure}")
        if visits is not None:
            visits.update(world.visits)
        tally = world.tally
        tally.virtual_ms = world.agenda.now_ms()
        world.dissolve()
    return RunResult(seed, policy_named(scenario.session.tolerance), faults, tally, failure)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Switch garbage collection off: a run has hardly any cycles, and looking for them takes a quarter of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run(world: World) -> None:
    wanted, queries = len(world.scenario.workloads), world.queries
    rolls_back = world.scenario.session.tolerance.rolls_back
    for number in range(wanted):
        late = number == wanted - 1 and any(hold.submits for hold in world.scenario.schedule.holds)
        delay_us = LATEST_US if late else 20_000 + number * world.soon_us(0, 200_000)
        world.agenda.after(delay_us, world.submit_late, number)

    def over() -> bool:
        if rolls_back and not go_on(world):
            return False
        if len(queries) < wanted:
            return False
        for query in queries.values():  # noqa: SIM110 - asked after every event, and a generator is slow
            if not query.ended:
                return False
        return True

    world.run_until(lambda: not world.pending_faults or over(), FAULTY_MS, STEPS_MAX)
    world.run_until(over, FAULTY_MS // 6, STEPS_MAX)
    world.striker.heal()
    if not world.run_until(over, HEALED_MS, STEPS_MAX):
        raise InvariantViolation(7, f"a query did not end: {_wait_for(world)}")
    for running in world.running.values():
        if not running.superseded:
            _judge(world, running)
    _require_clean(world)


def _judge(world: World, running: Running) -> None:
    """Judge whether the query has ended correctly."""
    error = running.query.error
    world.tally.outcomes.append(type(error).__name__ if error else "done")
    world.tell(f"{running.query.id} ends: {error or 'done'}")
    fired = {kind for _, kind in world.tally.fired}
    match error:
        case None:
            _judge_result(running)
            return
        case QueryCancelledError():
            justified = running.cancelled
        case GcsLostError():
            justified = bool(fired & set(STORE_LOST)) or world.given_up
        case GcsUnavailableError():
            justified = running.query.doubtful
        case NoWorkersError():
            justified = world.scenario.coordinator.no_workers_ms != NEVER_MS and world.tally.expelled > 0
        case MemoryLimitError():
            justified = len(running.strained) >= world.scenario.coordinator.strained_losses_max
            justified |= running.too_much_beside
        case QueryStalledError():
            justified = world.lapses.stalls and not running.whole_first
        case PoisonTaskError():
            justified = running.workload.poison is not None
        case QueryError():
            justified = running.workload.may_fail_with(error)
        case _:
            justified = False
    if not justified:
        raise InvariantViolation(7, f"{running.query.id} failed without a reason: {error}")


def _judge_result(running: Running) -> None:
    """A query that is done has given the right rows; readers of a result that stays have been judged themselves."""
    if running.query.graph.keeps:
        if not running.was_whole:
            raise InvariantViolation(7, f"{running.query.id} is done, and its result was never whole")
        return
    difference = running.workload.explain_difference(running.collected)
    if difference:
        raise InvariantViolation(7, f"the result of {running.query.id} is wrong: {difference}")


def _require_clean(world: World) -> None:
    """Check that no process and no key of the store still holds anything of a query (invariant 10).

    A worker that is cut from the store for good lives until it gives the store up.
    """
    noticing = list(world.processes.values())

    def clean() -> bool:
        return not any(process.worker_queries for process in noticing)

    given_up_ms = UNANSWERED_MAX * (world.scenario.renew_every_ms + CALL_TIMEOUT_US // 1000)
    blind = any(process.is_cut_from_store_for_good for process in noticing)
    if not world.run_until(clean, CLEAN_MS + given_up_ms * blind, STEPS_MAX):
        left = [f"{p.id}: {' '.join(p.worker_queries)}" for p in noticing if p.worker_queries]
        raise InvariantViolation(10, f"queries have ended but live on at {'; '.join(left)}")
    if not world.store_is_lost and world.store.queries:
        raise InvariantViolation(10, f"the store still holds {' '.join(world.store.queries)}")
    for process in noticing:
        if process.alive and process.room_bytes != process.capacity_bytes:
            raise InvariantViolation(10, f"{process.id} still keeps backups")


def _wait_for(world: World) -> str:
    """Why a query does not continue: for each channel that has not ended, what it has and what it lacks."""
    lines = []
    for query_id, running in world.running.items():
        state = world.store.queries.get(query_id)
        if running.query.ended or state is None:
            continue
        gate = "open" if state.gate_open else "closed"
        lines.append(f"{query_id} epoch {state.epoch} gate {gate} members {sorted(state.members)}")
        for name, channel in state.channels.items():
            if channel.ended:
                continue
            process = world.processes.get(channel.host)
            worker_query = process.worker_queries.get(query_id) if process is not None else None
            run = worker_query.session.runs.get(name) if worker_query is not None else None
            lacks = [
                f"{edge}@{run.inbox.holds(upstream)}"
                for edge in running.query.graph.edges_into(name)
                for upstream in running.query.graph.upstreams(name, edge.link)
                if run is not None and upstream.channel == edge.producer
            ]
            at = f"seq {run.seq}{' retracing' if run.retracing else ''}" if run is not None else "not begun"
            lines.append(f"{name} at {channel.host} length {channel.length} {at}: " + " ".join(lacks))
        lines.extend(f"re-read {reread}" for reread in (*state.claims.values(), *state.rereads))
    return "; ".join(lines) or "the store holds no query, and still one has not ended"
