"""Queries and tables become small as long as what is wrong with them stays, and the script shows what is left."""

from __future__ import annotations

import ast
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from wallaby_lab.differential.campaign import group_of, query_of
from wallaby_lab.differential.generated.functions import ExampleFunction
from wallaby_lab.differential.generated.schemas import Field, RandomTable, random_tables
from wallaby_lab.differential.generated.values import COLUMNS
from wallaby_lab.differential.script import script
from wallaby_lab.differential.shrink import Case, shrink
from wallaby_lab.differential.syntax import Piece, listed, smaller, text

FUNCTIONS = [
    ExampleFunction("{0} + {1}", ("int", "int"), "int", native=True, risky=True, exact=True),
    ExampleFunction("upper({0})", ("string",), "string", native=True, risky=False, exact=True),
    ExampleFunction("length({0})", ("string",), "int", native=True, risky=False, exact=True),
    ExampleFunction("{0} like 'a%'", ("string",), "boolean", native=True, risky=False, exact=True),
    ExampleFunction("year({0})", ("date",), "int", native=True, risky=False, exact=True),
]


def test_a_piece_is_written_with_its_parts() -> None:
    piece = Piece("select {0} from {1}", (listed((text("a"), text("b{c}"))), text("t")), "query")
    assert str(piece) == "select a, b{c} from t"


def test_what_is_smaller_leaves_out_or_puts_a_part_in_the_place_of_the_whole() -> None:
    inner = Piece("upper({0})", (text("x", "string"),), "string")
    where = Piece(" where {0}", (text("y", "boolean"),), optional=True)
    query = Piece("select {0} from t{1}", (listed((inner, text("b", "int"))), where), "query")
    assert {str(one) for one in smaller(query)} == {
        "select upper(x), b from t",
        "select b from t where y",
        "select upper(x) from t where y",
        "select x, b from t where y",
    }


def test_a_case_becomes_as_small_as_what_is_wrong_allows() -> None:
    table = RandomTable("t", (Field("a", "int"), Field("b", "string")), tuple((n, "x") for n in range(50)))
    other = RandomTable("u", (Field("c", "int"),), ((1,),))
    bad = Piece("bad({0})", (text("a", "int"),), "int")
    items = listed(
        (
            Piece("upper({0})", (text("b", "string"),), "string"),
            Piece("({0} + {1})", (bad, text("1", "int")), "int"),
        )
    )
    query = Piece(
        "select {0} from t{1}",
        (items, Piece(" where {0}", (text("a > 1", "boolean"),), optional=True)),
        "query",
    )
    asked = 0

    def still_wrong(case: Case) -> bool:
        nonlocal asked
        asked += 1
        rows = {row[0] for one in case.tables if one.name == "t" for row in one.rows}
        return "bad(" in str(case.query) and {17, 40} <= rows

    small = shrink(Case(query, (table, other)), still_wrong, 400)
    assert str(small.query) == "select bad(a) from t"
    assert small.tables == (RandomTable("t", (Field("a", "int"),), ((17,), (40,))),)
    assert asked < 400


def test_trials_have_an_end() -> None:
    table = RandomTable("t", (Field("a", "int"),), tuple((n,) for n in range(50)))
    case = Case(text("select a from t", "query"), (table,))
    assert shrink(case, lambda _: True, 0) == case


@pytest.mark.parametrize("seed", range(40))
def test_a_seed_is_a_query_and_the_same_one_each_time(seed: int) -> None:
    group = group_of(seed // 10)
    query = query_of(seed, group, FUNCTIONS)
    assert query == query_of(seed, group, FUNCTIONS)
    assert str(query.piece).count("(") == str(query.piece).count(")")
    assert group == group_of(seed // 10)


def test_random_tables_are_what_they_say() -> None:
    for table in random_tables(Random(7)):
        arrow = table.arrow()
        assert arrow.num_rows == len(table.rows)
        assert arrow.schema.types == [COLUMNS[field.kind].arrow for field in table.fields]


def test_files_have_no_bounds_of_floating_point_numbers(tmp_path: Path) -> None:
    table = RandomTable("t", (Field("a", "double"), Field("b", "int")), ((float("nan"), 1), (-2.75, 2)))
    table.write(tmp_path / "t")
    group = pq.read_metadata(tmp_path / "t" / "0.parquet").row_group(0)
    assert [group.column(place).is_stats_set for place in (0, 1)] == [False, True]


def test_a_script_is_python_and_holds_rows_and_query() -> None:
    table = RandomTable(
        "t", (Field("a", "int"), Field("b", "decimal_5_2")), ((1, Decimal("2.50")), (None, None))
    )
    made = script(
        "select 'it''s \\\\ \"\"\"' from t",
        (table,),
        {"spark.sql.ansi.enabled": "true"},
        {"split": 1},
        'a """ b',
    )
    tree = ast.parse(made)
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert "select 'it''s \\\\ \"\"\"' from t" in texts
    assert "(1, Decimal('2.50'))," in made
    assert "threads=1, spark_errors=False, split=1)" in made
    assert "a int, b decimal(5,2)" in texts


def test_a_map_is_a_dictionary_in_a_script() -> None:
    table = RandomTable(
        "t", (Field("a", "map_int"), Field("b", "struct")), (([("k", 1)], {"x": 2, "y": "z"}),)
    )
    made = script("select a from t", (table,), {}, {}, "different")
    assert "({'k': 1}, {'x': 2, 'y': 'z'})," in made
    assert "a map<string,int>, b struct<x:int,y:string>" in made


def test_some_tables_have_nested_columns_and_some_queries_their_elements() -> None:
    groups = [group_of(number) for number in range(12)]
    kinds = {field.kind for group in groups for table in group.tables for field in table.fields}
    assert {"array_int", "array_string", "map_int", "struct"} <= kinds
    made = [str(query_of(seed, groups[seed // 25], FUNCTIONS).piece) for seed in range(300)]
    assert sum("explode(" in query for query in made) > 10
