"""Engines whose processes are broken on purpose, by orders of the tests."""

from __future__ import annotations

from pathlib import Path

from tests.engine.test_ends import until
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.faults.orders import FaultOrders, parse_all


class Chaos:
    """Engines that can be broken on purpose, with the book in which orders stand."""

    def __init__(self, engines: Engines, directory: Path) -> None:
        self.workers = 2
        self._engines = engines
        self._directory = directory
        self.book = FaultOrders(directory)

    def engine(self, **settings: object) -> Engine:
        found = self._engines.get(
            workers=self.workers,
            threads=1,
            split=1,
            chaos_enabled=True,
            chaos_directory=str(self._directory),
            **{"task_target": 1000, **settings},
        )
        until(lambda: places(found) == {f"w{at}" for at in range(self.workers)}, 90)
        return found

    def order(self, text: str) -> str:
        return self.book.give(parse_all(text))


def places(engine: Engine) -> set[str]:
    return {worker.id.partition("-")[0] for worker in engine.workers() if worker.is_live}


def require_all_struck(chaos: Chaos, name: str) -> None:
    struck = {strike.order for strike in chaos.book.struck(name)}
    assert struck == {str(order) for order in chaos.book.orders().values()}
