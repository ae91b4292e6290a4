"""Generated mutants: each fits the code, compiles, and is hunted in a process of its own."""

from __future__ import annotations

import pytest

from wallaby.errors import InvalidArgumentError
from wallaby_lab.simulation.mutants.generated import generate
from wallaby_lab.simulation.mutants.mutant import StaleMutantError, source_of
from wallaby_lab.simulation.mutants.survey import SURVEYED, selected, survey


@pytest.mark.parametrize("module", SURVEYED)
def test_mutants_of_every_module_have_names_of_their_own_and_change_it(module: str) -> None:
    source = source_of(module)
    mutants = generate(module)
    assert mutants
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    assert all(mutant.mutate(module, source) != source for mutant in mutants)


def test_edits_of_every_kind_are_made() -> None:
    made = {(mutant.before, mutant.after) for mutant in generate("wallaby.lineage.outbox")}
    assert ("not is_held", "(is_held)") in made
    assert ("self._delivered[edge] == task.seq", "self._delivered[edge] != task.seq") in made
    assert ("task.seq + 1", "(task.seq - 1)") in made
    assert ("moved = True", "pass") not in made, "a name without a value is no mistake that anybody makes"
    assert ("self.news += 1", "pass") in made
    assert ("True", "False") in made
    assert any(after.startswith("reversed(list(") for _, after in made)
    assert any("\n" in after for _, after in made), "two statements are exchanged"


def test_a_mutant_of_other_code_is_an_error() -> None:
    mutant = generate("wallaby.lineage.recoverable")[0]
    with pytest.raises(StaleMutantError):
        mutant.mutate(mutant.module, "another text " + source_of(mutant.module))


def test_a_share_of_them_is_always_the_same_and_part_of_a_larger_one() -> None:
    modules = ("wallaby.lineage.inbox", "wallaby.lineage.outbox")
    few, many, every = (selected(modules, share) for share in (0.1, 0.4, 1.0))
    assert few == selected(modules, 0.1)
    assert 0 < len(few) < len(many) < len(every)
    assert set(few) < set(many) < set(every)


def test_unknown_modules_and_empty_shares_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="No seed runs"):
        selected(["wallaby.cli"])
    with pytest.raises(InvalidArgumentError, match="share of 0"):
        selected(SURVEYED, 0)
    with pytest.raises(InvalidArgumentError, match="0 seeds"):
        survey((), seeds_max=0, processes=1, seconds_max=1.0)


def test_a_survey_tells_the_fate_of_each_mutant_in_their_order() -> None:
    mutants = [
        m for m in generate("wallaby.lineage.outbox") if (m.before, m.after) == ("self.news += 1", "pass")
    ]
    heard: list[str] = []
    catches = survey(
        mutants, seeds_max=1, processes=2, seconds_max=20.0, on_catch=lambda catch: heard.append(catch.mutant)
    )
    assert [catch.mutant for catch in catches] == [mutant.name for mutant in mutants]
    assert sorted(heard) == sorted(mutant.name for mutant in mutants)
    assert all(catch.seeds == 1 for catch in catches)
