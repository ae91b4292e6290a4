"""Every effect of the protocol has a performer in production and in the simulation."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from wallaby.above import reader
from wallaby.coordinator import effects as coordinating
from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.head import Head
from wallaby.lineage import barriers, kept
from wallaby.lineage import effects as protocol
from wallaby.lineage.barriers import BarrierDue, Cover, RestoreCut, SaveCut
from wallaby.node import effects as working
from wallaby_lab.simulation.cuts.performing import AlignedPerformer
from wallaby_lab.simulation.world.perform import SimulatedPerformer

EFFECTS = frozenset(
    each
    for module in (protocol, barriers, kept, working, coordinating)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, protocol.Effect) and each is not protocol.Effect
)


@pytest.fixture
def head() -> Iterator[Head]:
    nobody: Any = None  # nothing is performed
    head = Head(MemoryGcs(MemoryStore(lambda: 0)), nobody, nobody, nobody, CoordinatorSettings())
    yield head
    head._performer.stop(1.0)


def performed_by_readers() -> set[str]:
    """The effects that a reader of a kept result, in a task of Spark's, matches."""
    matches = (
        node for node in ast.walk(ast.parse(inspect.getsource(reader))) if isinstance(node, ast.MatchClass)
    )
    return {node.cls.id for node in matches if isinstance(node.cls, ast.Name)}


def test_all_effects_are_known_here() -> None:
    def below(kind: type[Any]) -> Iterator[type[Any]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    # By name, because a class with slots is made twice.
    names = {each.__name__ for each in below(protocol.Effect) if each.__module__.startswith("wallaby.")}
    assert names == {each.__name__ for each in EFFECTS}


def test_production_performs_every_effect(head: Head) -> None:
    performed = {each.__name__ for each in head._performer._methods} | performed_by_readers()
    assert {each.__name__ for each in EFFECTS} - performed == set()


def test_the_simulation_performs_every_effect() -> None:
    nothing: Any = SimpleNamespace(whole=[])  # nothing is performed
    assert EFFECTS - AlignedPerformer(nothing)._methods.keys() == set()
    together = {BarrierDue, SaveCut, RestoreCut, Cover}
    assert EFFECTS - SimulatedPerformer(nothing)._methods.keys() == together
