"""The simulation can fail: mistakes put into the protocol on purpose are noticed."""

from __future__ import annotations

import importlib

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby_lab.simulation.mutants.catalogue import CATALOGUE, TO_COVER
from wallaby_lab.simulation.mutants.hunt import Catch, format_catches, hunt_all, hunt_one, mutants_named
from wallaby_lab.simulation.mutants.mutant import Edit, Mutant, StaleMutantError, apply_mutant, source_of

#: Mutants of every area that few seeds find; `wallaby simulate --mutants` hunts them all.
QUICK = (
    "deliver-before-commit",
    "final-task-with-stale-lineage",
    "probe-before-build",
    "empty-slices-not-counted",
    "sent-is-delivered",
    "session-outlives-its-query",
    "live-channels-rewound",
    "no-new-epoch-at-all",
    "split-given-to-two",
    "plan-applied-in-pieces",
    "states-left-behind",
    "side-inputs-beyond-the-barrier",
)
#: Seeds that are clean without a mutant, as `test_campaign.py` shows.
QUICK_SEEDS = 60


@pytest.mark.parametrize("mutant", CATALOGUE, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    for module in mutant.modules:
        source = source_of(module)
        mutated = mutant.mutate(module, source)
        assert mutated != source
        compile(mutated, module, "exec", dont_inherit=True)


def test_names_are_unique_and_every_mutant_says_what_it_breaks() -> None:
    names = [mutant.name for mutant in CATALOGUE]
    assert len(names) == len(set(names))
    for mutant in CATALOGUE:
        assert mutant.what
        assert mutant.breaks
        assert set(mutant.breaks) <= set(TO_COVER)


@pytest.mark.parametrize("what", TO_COVER)
def test_every_invariant_hole_and_known_mistake_has_a_mutant(what: str) -> None:
    assert any(what in mutant.breaks for mutant in CATALOGUE)


def test_mutants_change_production_code_only() -> None:
    production = (
        "wallaby.lineage.",
        "wallaby.node.",
        "wallaby.worker.",
        "wallaby.exchange.",
        "wallaby.head.",
        "wallaby.coordinator.",
        "wallaby.gcs.memory",
        "wallaby.gcs.complaints",
    )
    for mutant in CATALOGUE:
        assert all(module.startswith(production) for module in mutant.modules)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_quick_selection_is_caught() -> None:
    catches = hunt_all(QUICK, seeds_max=QUICK_SEEDS, processes=2)
    survivors = [catch.mutant for catch in catches if not catch.caught]
    assert not survivors, format_catches(catches)


def test_an_edit_that_does_not_fit_is_an_error() -> None:
    for text in ("this text stands nowhere", "return"):
        stale = Mutant("stale", "", ("1",), "wallaby.lineage.choose", text, "raise SystemExit")
        with pytest.raises(StaleMutantError, match="expects once"):
            stale.mutate("wallaby.lineage.choose", source_of("wallaby.lineage.choose"))


def test_an_edit_that_changes_nothing_is_an_error() -> None:
    idle = Mutant("idle", "", ("1",), "wallaby.lineage.choose", "class Finish:", "class Finish:")
    with pytest.raises(StaleMutantError):
        idle.mutate("wallaby.lineage.choose", source_of("wallaby.lineage.choose"))


def test_a_mutant_that_comes_after_its_module_was_imported_is_an_error() -> None:
    (mutant,) = mutants_named(["deliver-before-commit"])
    for module in mutant.modules:
        importlib.import_module(module)
    with pytest.raises(StaleMutantError, match="too late"):
        apply_mutant(mutant)


def test_edits_apply_to_their_own_module_and_in_order() -> None:
    mutant = Mutant("two", "", ("1",), "one", "a", "b", more=(Edit("one", "b", "c"), Edit("other", "x", "y")))
    assert mutant.modules == ("one", "other")
    assert mutant.mutate("one", "a") == "c"
    assert mutant.mutate("other", "x") == "y"


def test_a_mutant_that_is_not_caught_is_reported_so() -> None:
    (mutant,) = mutants_named(["session-outlives-its-query"])
    catch = hunt_one(mutant, seeds_max=1, seconds_max=0.0)
    assert (catch.caught, catch.seeds) == (False, 0)


def test_unknown_names_and_empty_hunts_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="no such mutant, or"):
        mutants_named(["no such mutant, or so"])
    with pytest.raises(InvalidArgumentError):
        hunt_all((), seeds_max=0)


def test_the_table_names_each_mutant_and_what_caught_it() -> None:
    catches = [
        Catch("one", ("1", "H1"), "invariant 1", "a worker sends s0.c0.t0", 3, 0.1),
        Catch("two", ("7",), "", "", 2000, 60.0),
    ]
    table = format_catches(catches)
    assert "one" in table
    assert "1 H1" in table
    assert "invariant 1" in table
    assert "NOT CAUGHT" in table
    assert table.endswith("1 of 2 mutants caught; the hardest needed 3 seeds.\n")
