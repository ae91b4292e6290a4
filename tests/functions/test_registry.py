"""Every function is declared once, and the registry holds together."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from wallaby.functions import registry
from wallaby.functions.aggregate_sql import AggregateSql
from wallaby.functions.doubt import DOUBT
from wallaby.functions.entry import Exactness
from wallaby.functions.registry import (
    AGGREGATES,
    ALL_FAMILIES,
    ARROW_FUNCTIONS,
    DOUBTFUL_FUNCTIONS,
    REGISTRY,
    SCALARS,
)
from wallaby.functions.scalar_sql import ScalarSql
from wallaby.relations.expression import Call, Column
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType


def test_a_class_of_catalysts_has_one_entry() -> None:
    counted = Counter(entry.catalyst for family in ALL_FAMILIES for entry in family.entries)
    assert [name for name, count in counted.items() if count > 1] == []


def test_a_function_is_computed_in_one_way() -> None:
    scalars: Counter[str] = Counter()
    aggregates: Counter[str] = Counter()
    for family in ALL_FAMILIES:
        scalars.update(entry.function for entry in family.entries if isinstance(entry.sql, ScalarSql))
        scalars.update(list(family.also))
        aggregates.update(entry.function for entry in family.entries if isinstance(entry.sql, AggregateSql))
        aggregates.update(list(family.also_aggregates))
    assert [name for name, count in (scalars | aggregates).items() if count > 1] == []
    assert scalars.keys() == SCALARS.keys()
    assert aggregates.keys() == AGGREGATES.keys()


def test_a_function_whose_guard_names_a_doubt_is_declared_as_doubtful() -> None:
    noted = {entry.function for entry in REGISTRY.values() if DOUBT in entry.note}
    #: Casts, which have one entry for all types.
    casts = {"seconds_to_timestamp", "text_to_timestamp"}
    assert noted - {"cast"} | casts == DOUBTFUL_FUNCTIONS


def test_an_arrow_function_is_declared_once() -> None:
    counted = Counter(function.name for family in ALL_FAMILIES for function in family.arrow_functions)
    assert [name for name, count in counted.items() if count > 1] == []
    assert counted.keys() == ARROW_FUNCTIONS.keys()


def test_the_function_of_every_entry_is_known() -> None:
    named = {entry.function for entry in REGISTRY.values() if entry.function}
    assert named - SCALARS.keys() - AGGREGATES.keys() == set()


def test_only_native_entries_have_examples() -> None:
    odd = [
        e.catalyst
        for e in REGISTRY.values()
        if e.exactness is Exactness.UNSUPPORTED and (e.examples or e.sql)
    ]
    assert odd == []


@pytest.mark.parametrize(
    ("types", "refused"), [((STRING, INTEGER), False), ((STRING, STRING), True), ((BOOLEAN, INTEGER), True)]
)
def test_the_kinds_that_an_entry_takes_are_those_that_its_sql_takes(
    types: tuple[DataType, ...], refused: bool
) -> None:
    columns = tuple(Column(place, "c", type_, nullable=True) for place, type_ in enumerate(types))
    call = Call("repeat", columns, STRING, nullable=True)
    assert (registry.SCALARS["repeat"].refusal(call) is not None) is refused


def test_a_task_manager_that_knows_the_functions_knows_neither_the_bridge_nor_the_lab() -> None:
    """Importing them costs start-up time and memory of every worker."""
    program = "import sys, wallaby.functions.registry; print(*(m for m in sys.modules if m[:7] == 'wallaby'))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = ended.stdout.split()
    assert "wallaby.functions.text.letters" in loaded
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms <= {
        *(
            "functions",
            "catalyst",
            "relations",
            "sql",
            "errors",
            "error_text",
            "sql_states",
            "config",
            "version",
        ),
        *("batches", "plan", "lineage"),
    }
    assert {name for name in loaded if name.startswith("wallaby.catalyst.")} <= {
        "wallaby.catalyst.node",
        "wallaby.catalyst.data_types",
    }
