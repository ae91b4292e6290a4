"""Threads of real nodes, interleaved: the code as it is stands every schedule, and what is wrong in it is noticed."""

from __future__ import annotations

import threading

import pytest

from wallaby_lab.simulation.interleavings.run import run_interleaving
from wallaby_lab.simulation.mutants.catalogue_interleaved import INTERLEAVED
from wallaby_lab.simulation.mutants.hunt import hunt_one


@pytest.mark.parametrize("seed", range(8))
def test_a_seed_of_every_scene_is_clean_and_leaves_no_thread(seed: int) -> None:
    before = set(threading.enumerate())
    found = run_interleaving(seed)
    assert not found.failure
    assert found.switches
    assert set(threading.enumerate()) <= before


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert run_interleaving(1) == run_interleaving(1)
    assert run_interleaving(1).switches != run_interleaving(9).switches


@pytest.mark.timeout(300)
def test_replies_that_go_to_others_are_noticed() -> None:
    (mutant,) = [mutant for mutant in INTERLEAVED if mutant.name == "replies-to-others"]
    catch = hunt_one(mutant, seeds_max=40)
    assert catch.caught_by == "interleavings", catch
