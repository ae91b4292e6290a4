"""The order in which the parts of an engine start."""

from __future__ import annotations

from typing import Any

import pytest

from wallaby import engine_parts
from wallaby.engine_parts import EngineParts


class Noting:
    """A part that notes what is called, under its own name."""

    def __init__(self, name: str, called: list[str]) -> None:
        self._name, self._called = name, called

    def __getattr__(self, method: str) -> Any:
        return lambda: self._called.append(f"{self._name}.{method}")


def test_the_warm_up_leaves_the_cores_to_taskmanagers_that_start(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    parts: Any = object.__new__(EngineParts)
    parts.site = type("Site", (), {"shares": Noting("shares", called)})()
    parts.deployment, parts.jobs = Noting("deployment", called), Noting("jobs", called)
    parts._warm_up = Noting("warm_up", called)
    monkeypatch.setattr(engine_parts, "recover_known", lambda: called.append("recovered"))
    parts.start()
    assert called[0] == "shares.require_enough", "which may refuse"
    assert called.index("deployment.await_workers") < called.index("warm_up.start")
    assert called[-1] == "recovered"
