"""Every native entry of the registry has an example, and examples become valid expressions."""

from __future__ import annotations

import re
from random import Random

import pyarrow as pa
import pytest

from wallaby.errors import InvalidArgumentError
from wallaby.functions.entry import Exactness
from wallaby.functions.registry import REGISTRY
from wallaby_lab.differential.generated.examples import CLOSE, EXAMPLES, WITHOUT_EXAMPLE
from wallaby_lab.differential.generated.expand import expand
from wallaby_lab.differential.generated.values import COLUMNS, literal

NATIVE = {name for name, entry in REGISTRY.items() if entry.exactness is not Exactness.UNSUPPORTED}


def test_every_native_entry_has_an_example_or_says_why_not() -> None:
    assert NATIVE - EXAMPLES.keys() - WITHOUT_EXAMPLE.keys() == set()


def test_there_are_examples_of_nothing_else() -> None:
    assert EXAMPLES.keys() - NATIVE == set()
    assert WITHOUT_EXAMPLE.keys() - NATIVE == set()
    assert CLOSE.keys() - EXAMPLES.keys() == set()
    assert not EXAMPLES.keys() & WITHOUT_EXAMPLE.keys()


@pytest.mark.parametrize("entry", sorted(EXAMPLES))
def test_every_placeholder_is_filled_and_the_same_each_time(entry: str) -> None:
    for example in EXAMPLES[entry]:
        found = expand(entry, example, 3)
        assert found == expand(entry, example, 3)
        assert len({expression.sql for expression in found}) == len(found) > 0
        assert all(not re.search(r"\{(?!table\})", expression.sql) for expression in found)


def test_placeholders_of_a_class_become_each_of_its_kinds_mixtures_and_constants() -> None:
    sql = [expression.sql for expression in expand("Add", "{whole} + {whole}", 0)]
    assert {"tinyint_a + tinyint_b", "bigint_a + bigint_b"} <= set(sql)
    assert any(len(set(re.findall(r"([a-z]+)_[abc]", text))) == 2 for text in sql)
    assert any("cast(null as" in text for text in sql)


def test_a_placeholder_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="'txt'"):
        expand("Upper", "upper({txt})", 0)


@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_a_kind_fit_its_type_and_have_a_literal(name: str) -> None:
    column = COLUMNS[name]
    random = Random(5)
    for draw in (column.tame, column.wild):
        values = [draw(random) for _ in range(200)]
        assert pa.array(values, column.arrow).null_count == 0
        assert all(literal(value, column) for value in values)
