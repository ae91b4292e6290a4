"""What is done is judged when it is asked for: a wait without a reason is no slow query but a violation."""

from __future__ import annotations

from typing import Any

import pytest

from wallaby.lineage.effects import Await
from wallaby.lineage.outbox import Outbox
from wallaby_lab.simulation.judges.scrutiny import Scrutiny
from wallaby_lab.simulation.run import run_seed

SEEDS = 12


def failures() -> list[str]:
    return [failure.what for seed in range(SEEDS) if (failure := run_seed(seed).failure) is not None]


def test_commits_go_together_and_every_wait_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Any] = []
    yields = Scrutiny.yields

    def listen(self: Scrutiny, actor: Any, effect: Any, state: Any) -> None:
        judged.append(type(effect))
        yields(self, actor, effect, state)

    monkeypatch.setattr(Scrutiny, "yields", listen)
    results = [run_seed(seed) for seed in range(SEEDS)]
    assert not [result.failure for result in results if result.failure]
    assert sum(result.tally.commits_together for result in results)
    assert sum(result.tally.held for result in results)
    assert judged.count(Await)


def test_a_delivery_that_waits_with_something_due_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    due = Outbox.due

    def nothing_at_first(self: Outbox, *arguments: Any, **named: Any) -> Any:
        found = due(self, *arguments, **named)
        return found if len(found) > 1 else ()

    monkeypatch.setattr(Outbox, "due", nothing_at_first)
    assert any("waits" in what for what in failures())


def test_a_record_that_says_something_else_than_what_ran_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    committed = Scrutiny.committed

    def forget(self: Scrutiny, worker: Any, effect: Any, saved: object) -> None:
        self._ran[worker, effect.task] = next(iter(self._ran.values()))
        committed(self, worker, effect, saved)

    monkeypatch.setattr(Scrutiny, "committed", forget)
    assert any("is committed as" in what for what in failures())
