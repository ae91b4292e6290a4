"""One run: a query, a fault, and the outcome, as one JSON object.

A run is good only if its fault is proved to have struck and the answer is Spark's (or the query failed as it must). If
the query never reached the fault's point, the run is reported as not reached, which is neither good nor bad.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from wallaby.engine import Engine, attach
from wallaby.errors import GcsError, QueryCancelledError, WallabyError, WorkerLostError
from wallaby.faults.orders import FaultAct, FaultOrders, parse
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.tolerance import OFF
from wallaby.observe.event import EventKind
from wallaby.results.result import Result
from wallaby.spark.bypass import on_spark
from wallaby_lab import tpch
from wallaby_lab.chaos.faults import ChaosFault
from wallaby_lab.chaos.outside import Outside, Proof
from wallaby_lab.chaos.repairs import Repairs
from wallaby_lab.chaos.wires import CUT_WIRE, SILENCE_WIRE, HostWires
from wallaby_lab.compare import DifferentError, require_same

#: A query that takes longer than this after a fault hangs.
HANG_SECONDS: Final = 180.0
#: How long an engine may take to recover fully.
SETTLE_SECONDS: Final = 90.0
_POLL_SECONDS: Final = 0.02


class RunVerdict(Enum):
    """The verdict on a run."""

    EQUAL = "equal"
    FAILED_AS_IT_MUST = "failed as it must"
    NOT_REACHED = "not reached"
    DIFFERS = "DIFFERS"
    FAILED = "FAILED"
    HUNG = "HUNG"
    LEFT_SOMETHING = "LEFT SOMETHING"
    REWOUND_OTHERS = "REWOUND OTHERS"

    @property
    def is_good(self) -> bool:
        """Was every promise kept? A fault that was not reached shows nothing, and is counted separately."""
        return self in (RunVerdict.EQUAL, RunVerdict.FAILED_AS_IT_MUST, RunVerdict.NOT_REACHED)


@dataclass(slots=True)
class Undisturbed:
    """A query without faults: Spark's answer, and its time."""

    answer: pa.Table
    seconds: float
    commits: int
    graph: StageGraph


@dataclass(slots=True)
class RunOutcome:
    """One cell of a grid."""

    query: int
    fault: str
    orders: list[str]
    outside: str
    tolerant: bool
    verdict: str = ""
    detail: str = ""
    #: The proof that the fault struck: time, place, effect.
    struck: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    undisturbed_seconds: float = 0.0
    detect_seconds: float | None = None
    settle_seconds: float = 0.0
    #: The number of repairs that were compared with an independent calculation; see `repairs`.
    repairs_checked: int = 0
    stats: dict[str, Any] = field(default_factory=dict)


class ChaosArena:
    """A session with an engine that may be broken, attached again when it is beyond repair."""

    def __init__(self, spark: SparkSession, directory: Path, workers: int, **settings: object) -> None:
        self.spark = spark
        self.book = FaultOrders(directory)
        self.workers = workers
        self._settings = settings
        self._undisturbed: dict[int, Undisturbed] = {}
        self._engine: Engine | None = None
        self._repairs = Repairs()

    @property
    def engine(self) -> Engine:
        """The engine, attached if there is none."""
        if self._engine is None or not self._engine.is_open:
            self._engine = attach(
                self.spark,
                workers=self.workers,
                chaos_enabled=True,
                chaos_directory=str(self.book.directory),
                attach_timeout=180,
                progress_enabled=False,
                spark_errors=False,
                **self._settings,
            )
            self._engine.inspection.watch_coordinator(self._repairs.noticed)
        return self._engine

    def close(self) -> None:
        """End the engine."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def change(self, **settings: object) -> None:
        """Continue with other settings, and so with another engine, whose plans and times may differ."""
        changed = {**self._settings, **settings}
        if changed != self._settings:
            self.close()
            self._settings = changed
            self._undisturbed.clear()

    def settle(self) -> float | None:
        """Wait until the engine has fully recovered; returns the time, None if it did not."""
        began = time.monotonic()
        while time.monotonic() - began < SETTLE_SECONDS:
            try:
                live = [worker.id for worker in self.engine.workers() if worker.is_live]
                places = {worker.partition("-")[0] for worker in live}
                if len(places) == len(live) == self.workers and not self.engine.inspection.queries_in_store():
                    return time.monotonic() - began
            except GcsError:
                return None
            time.sleep(_POLL_SECONDS)
        return None

    def undisturbed(self, number: int) -> Undisturbed:
        """A query without faults, run twice, the second time for its time."""
        if number not in self._undisturbed:
            df = self.spark.sql(tpch.query(number))
            with on_spark():
                answer = df.toArrow()
            require_same(self.engine.run(df).arrow(), answer, order=tpch.ORDERS[number])
            began = time.monotonic()
            result = self.engine.run(self.spark.sql(tpch.query(number)))
            result.arrow()
            seconds = time.monotonic() - began
            assert result.plan is not None, "the engine runs every query of TPC-H"
            self._undisturbed[number] = Undisturbed(
                answer, seconds, int(result.stats.tasks), result.plan.graph
            )
        return self._undisturbed[number]

    def compare(self, number: int) -> tuple[str, int]:
        """Run a query; returns how its answer differs from Spark's, and the number of recoveries."""
        result = self.engine.run(self.spark.sql(tpch.query(number)))
        with _hanging(result):
            answer = result.arrow()
        try:
            require_same(answer, self.undisturbed(number).answer, order=tpch.ORDERS[number])
        except DifferentError as error:
            return str(error), result.stats.recoveries
        return "", result.stats.recoveries

    def run(self, number: int, fault: ChaosFault) -> RunOutcome:
        """Run a query under a fault."""
        if fault.outside in (CUT_WIRE, SILENCE_WIRE):
            with self._proxied() as wires:
                return self._run(number, fault, wires)
        return self._run(number, fault, None)

    @contextmanager
    def _proxied(self) -> Iterator[HostWires]:
        """A separate engine whose workers reach each other only through proxies."""
        self.close()
        wires = HostWires(self.engine)
        try:
            yield wires
        finally:
            self.close()
            wires.close()

    def _run(self, number: int, fault: ChaosFault, wires: HostWires | None) -> RunOutcome:
        tolerant = self.engine.tolerance != OFF
        if self.settle() is None:
            self.close()
            self.settle()
        usual = self.undisturbed(number)
        fault = fault.for_query(usual.graph, self.engine.workers()[0].id.partition("-")[0])
        outcome = RunOutcome(
            number, fault.name, [str(order) for order in fault.orders], fault.outside, tolerant
        )
        outcome.undisturbed_seconds = round(usual.seconds, 3)
        expects = fault.expects if tolerant or not fault.costs_a_worker else WorkerLostError.condition
        outside = Outside(self.engine, wires)
        name = self.book.give(fault.orders)
        try:
            began = time.monotonic()
            result = self.engine.run(self.spark.sql(tpch.query(number)))
            with (
                self._struck_outside(outside, fault, result, usual, name) as proofs,
                _hanging(result) as hung,
            ):
                verdict, outcome.detail = _judge(result, usual.answer, number, expects)
            outcome.seconds = round(time.monotonic() - began, 3)
            self.engine.inspection.await_removed(
                result, SETTLE_SECONDS
            )  # a fault may strike until the query is gone
        finally:
            self.book.give(())
            outside.undo()
        strikes = self.book.struck(name)
        outcome.struck = [
            *({"at": s.at, "what": s.order, "worker": s.worker, "effect": s.effect} for s in strikes),
            *({"at": p.at, "what": p.what} for p in proofs),
        ]
        wanted = {str(order) for order in fault.orders if order.act is not FaultAct.SLOW}
        missed = wanted - {s.order for s in strikes} or (fault.outside and not proofs)
        if hung.is_set():
            verdict = RunVerdict.HUNG
        elif missed and verdict in (RunVerdict.EQUAL, RunVerdict.FAILED_AS_IT_MUST, RunVerdict.FAILED):
            lost_but_unplanned = verdict is RunVerdict.FAILED and not expects
            verdict = verdict if lost_but_unplanned else RunVerdict.NOT_REACHED
        self._look_back(outcome, result, fault)
        assert result.plan is not None, "the engine runs every query of TPC-H"
        outcome.repairs_checked, violation = self._repairs.check(
            self.engine.inspection.query_of(result), result.plan.graph, self.engine.tolerance
        )
        if violation and verdict.is_good:
            verdict, outcome.detail = RunVerdict.REWOUND_OTHERS, violation
        if verdict.is_good and outcome.settle_seconds < 0:
            verdict, outcome.detail = RunVerdict.LEFT_SOMETHING, "the engine is not as good as new"
        outcome.verdict = verdict.value
        return outcome

    def _look_back(self, outcome: RunOutcome, result: Result, fault: ChaosFault) -> None:
        """Collect what the query did, how soon it noticed the fault, and whether the engine has fully recovered."""
        outcome.stats = {
            key: value for key, value in result.stats.as_dict().items() if key not in ("query", "event_log")
        }
        froze = [e.at for e in result.events if e.kind == EventKind.FROZE.value and e.fields["lost"]]
        slow = {str(order) for order in fault.orders if order.act is FaultAct.SLOW}
        first = min((strike["at"] for strike in outcome.struck if strike["what"] not in slow), default=None)
        after = [at for at in froze if first is not None and at >= first]
        outcome.detect_seconds = round(after[0] - first, 3) if after and first is not None else None
        if fault.outside == "restart store":
            self.close()
        settled = self.settle()
        outcome.settle_seconds = round(settled, 3) if settled is not None else -1.0

    @contextmanager
    def _struck_outside(
        self, outside: Outside, fault: ChaosFault, result: Result, usual: Undisturbed, orders: str
    ) -> Iterator[list[Proof]]:
        """Take the action from outside while the query runs."""
        proofs: list[Proof] = []
        if not fault.outside:
            yield proofs
            return

        def strike() -> None:
            inspection, wanted = self.engine.inspection, max(int(usual.commits * fault.at), 1)
            began = time.monotonic()
            while not result.is_over:
                if fault.during is not None:
                    due = any(parse(each.order).point is fault.during for each in self.book.struck(orders))
                elif self.engine.tolerance.recorded:
                    due = inspection.status(inspection.query_of(result)).commits >= wanted
                else:  # there are no commits
                    due = time.monotonic() - began >= usual.seconds * fault.at
                if due:
                    done = outside.kinds[fault.outside]()
                    proofs.extend(done)
                    return
                time.sleep(_POLL_SECONDS / 4)

        thread = threading.Thread(target=strike, name="chaos-outside", daemon=True)
        thread.start()
        try:
            yield proofs
        finally:
            thread.join(HANG_SECONDS)


@contextmanager
def _hanging(result: Result) -> Iterator[threading.Event]:
    """Cancel a query that takes too long, and say so."""
    hung = threading.Event()

    def give_up() -> None:
        hung.set()
        result.cancel()

    timer = threading.Timer(HANG_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield hung
    finally:
        timer.cancel()


def _judge(result: Result, answer: pa.Table, number: int, expects: str) -> tuple[RunVerdict, str]:
    try:
        ours = result.arrow()
    except QueryCancelledError as error:
        return RunVerdict.FAILED, str(error)
    except WallabyError as error:
        as_it_must = expects and error.condition == expects
        return RunVerdict.FAILED_AS_IT_MUST if as_it_must else RunVerdict.FAILED, str(error)
    try:
        require_same(ours, answer, order=tpch.ORDERS[number])
    except DifferentError as error:
        return RunVerdict.DIFFERS, str(error)
    if expects:
        return RunVerdict.NOT_REACHED, f"answered, although {expects} was expected"
    return RunVerdict.EQUAL, ""
