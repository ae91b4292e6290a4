"""Let ordered faults strike in this process: a performer in front of the real performer.

It lets the faults in `orders` strike at the fail points of effects, and passes all other effects on. Sessions, attempts
and the coordinator do not know about it: to them a fault looks like a real one, an answer that does not come or a
process that ends.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from wallaby.errors import KernelError
from wallaby.faults.hoarding import Hoarding
from wallaby.faults.lingering import Lingering
from wallaby.faults.orders import FaultAct, FaultOrder, FaultOrders, Strike
from wallaby.lineage import effects as protocol
from wallaby.lineage.effects import Effect
from wallaby.node import effects as working
from wallaby.node.node import Actor, EngineNode, Performs, WorkerQuery, worker_query_of

_log = logging.getLogger(__name__)
_EFFECT_CHARACTERS: Final = 120

#: The answer of an effect that fails.
Failures = Mapping[type[Effect[Any]], Callable[[Any], Any]]


def no_answer(_: object) -> None:
    """The failure of a call to the store or to another worker: no answer."""


def refusal(_: object) -> bool:
    """The failure of an effect that is answered with yes or no: no."""
    return False


#: Effects that are not listed cannot fail.
WORKERS_FAILURES: Final[Failures] = {
    protocol.CommitTask: no_answer,
    protocol.CloseEarly: no_answer,
    protocol.Acknowledge: no_answer,
    protocol.ClaimReRead: no_answer,
    protocol.ReadRecords: no_answer,
    protocol.Push: no_answer,
    protocol.Fail: no_answer,
    working.Register: no_answer,
    working.Renew: no_answer,
    working.Discover: no_answer,
    working.Look: no_answer,
    working.Complain: no_answer,
    protocol.BackUp: refusal,
    working.OpenSession: refusal,
    protocol.Execute: lambda effect: KernelError(f"{effect.task} was ordered to fail.", task=effect.task),
}


class FaultInjector:
    """Injects faults. `restart` restarts the head's coordinator; `deafen` closes a worker's data server."""

    def __init__(
        self,
        performer: Performs,
        node: EngineNode,
        book: FaultOrders,
        failures: Failures = WORKERS_FAILURES,
        restart: Callable[[], None] = lambda: None,
        deafen: Callable[[], object] = lambda: None,
    ) -> None:
        self._performer = performer
        self._node = node
        self._book = book
        self._failures = failures
        self._restart = restart
        self._deafen = deafen
        self._visits: Counter[str] = Counter()
        self._slow: set[str] = set()

    def close(self, worker_query: WorkerQuery) -> None:
        """Forget a query that has ended here."""
        self._performer.close(worker_query)

    def has_idle_kernel(self) -> bool:
        """Is there a thread with nothing to execute?"""
        return self._performer.has_idle_kernel()

    def has_busy_kernel(self) -> bool:
        """Is there a thread that executes something?"""
        return self._performer.has_busy_kernel()

    def perform(self, actor: Actor, effect: Effect[Any]) -> None:
        """Perform an effect, unless a fault strikes first."""
        order = self._due(effect)
        if order is None:
            self._performer.perform(actor, effect)
        elif order.after:
            actor.effects = _Struck(actor, lambda value: self._after(order, effect, value))  # type: ignore[assignment]
            self._performer.perform(actor, effect)
        else:
            self._before(order, actor, effect)

    def _due(self, effect: Effect[Any]) -> FaultOrder | None:
        """The order that strikes at this effect; it has already been recorded."""
        for name, order in self._book.orders().items():
            if not order.counts(effect) or not order.concerns(self._node.worker):
                continue
            if order.act is FaultAct.FAIL and type(effect) not in self._failures:
                continue
            self._visits[name] += 1
            if name in self._slow:
                return order
            if self._visits[name] == order.nth or (order.times > 1 and self._visits[name] > order.nth):
                strike = Strike(
                    str(order), self._node.worker, os.getpid(), time.time(), repr(effect)[:_EFFECT_CHARACTERS]
                )
                if self._book.claim(name, order, strike):
                    if order.act is FaultAct.SLOW:
                        self._slow.add(name)
                    return order
        return None

    def _before(self, order: FaultOrder, actor: Actor, effect: Effect[Any]) -> None:
        match order.act:
            case FaultAct.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case FaultAct.STOP:
                stand_still(order.seconds)
                self._performer.perform(actor, effect)
            case FaultAct.FAIL:
                self._node.answer(actor, effect, self._failures[type(effect)](effect))
            case FaultAct.DELAY if isinstance(effect, protocol.Execute):
                worker_query = worker_query_of(actor)
                worker_query.work = Lingering(worker_query.work, effect, order.seconds)
                self._performer.perform(actor, effect)
            case FaultAct.DELAY | FaultAct.SLOW:
                self._node.loop.after(order.seconds, self._performer.perform, actor, effect)
            case FaultAct.DEAFEN:
                threading.Thread(target=self._deafen, name="wallaby-deafen", daemon=True).start()
                self._performer.perform(actor, effect)
            case FaultAct.HOARD | FaultAct.HOARD_SQL | FaultAct.HOARD_NATIVE:
                assert isinstance(effect, protocol.Execute), "memory is taken before a step"
                worker_query = worker_query_of(actor)
                worker_query.work = Hoarding(worker_query.work, effect, order.act, order.size_bytes)
                self._performer.perform(actor, effect)
            case FaultAct.FILL:
                fill_disk(order.size_bytes)
                self._performer.perform(actor, effect)
            case FaultAct.FORGET:
                pass  # a bug that loses an effect, or a wake: no answer will ever come
            case FaultAct.RESTART:
                self._restart()
                if actor.alive:  # the old coordinator's pending effect is not performed
                    self._performer.perform(actor, effect)
        _log.warning("%s has struck at %s", order, self._node.worker)

    def _after(self, order: FaultOrder, effect: Any, value: Any) -> Any:
        """Apply a fault to an answer that has arrived."""
        match order.act:
            case FaultAct.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case FaultAct.STOP:
                stand_still(order.seconds)
            case FaultAct.FAIL:
                return self._failures[type(effect)](effect)
            case FaultAct.DELAY | FaultAct.SLOW:
                time.sleep(order.seconds)  # this blocks the whole loop, so everything after it waits too
            case FaultAct.DEAFEN:
                threading.Thread(target=self._deafen, name="wallaby-deafen", daemon=True).start()
            case FaultAct.RESTART:
                self._restart()
            case FaultAct.FILL:
                fill_disk(order.size_bytes)
            case FaultAct.HOARD | FaultAct.HOARD_SQL | FaultAct.HOARD_NATIVE:
                raise AssertionError("memory is taken before a step")
            case FaultAct.FORGET:
                raise AssertionError("what is forgotten has no answer")
        return value


class _Struck:
    """A generator whose next answer a fault strikes; after that it behaves normally."""

    def __init__(self, actor: Actor, befall: Callable[[Any], Any]) -> None:
        self._actor = actor
        self._effects = actor.effects
        self._befall = befall

    def send(self, value: Any) -> Any:
        """Pass the answer in."""
        self._actor.effects = self._effects
        return self._effects.send(self._befall(value))

    def throw(self, error: BaseException) -> Any:
        """Pass an error on."""
        self._actor.effects = self._effects
        return self._effects.throw(error)


def fill_disk(size_bytes: int) -> None:
    """Let no file of this process grow beyond a size: a write that would goes through up to there, and then fails."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, most))


def stand_still(seconds: float) -> None:
    """Stop this whole process; another process lets it continue after a time."""
    waker = subprocess.Popen(  # noqa: S603 - nothing of it comes from outside
        ["/bin/sh", "-c", f"sleep {seconds:.3f}; kill -CONT {os.getpid()}"],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.kill(os.getpid(), signal.SIGSTOP)
    threading.Thread(target=waker.wait, args=(10.0,), name="wallaby-waker", daemon=True).start()
