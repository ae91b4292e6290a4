"""The differential suite over some entries; at length it is `make differential`. It finds what is wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.faults.orders import FaultOrders
from wallaby.results.result import Result
from wallaby.worker.scratch import PREFIX
from wallaby_lab.differential import campaign
from wallaby_lab.differential.arena import QUICK, ComparisonArena
from wallaby_lab.differential.entries import MODES, EntrySuite
from wallaby_lab.differential.generated.functions import scalar_functions
from wallaby_lab.differential.generated.schemas import Field, RandomTable
from wallaby_lab.differential.generated.tables import TABLES, register, write_tables
from wallaby_lab.differential.layouts import configured
from wallaby_lab.differential.losses import Losses
from wallaby_lab.differential.tops import leftovers

FUNCTIONS = ("Add", "CaseWhen", "Upper", "Length", "Like", "AddMonths", "Year", "Substring")
ENTRIES = ("Upper", "DayOfMonth", "OnlyOfAGroupSet")


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    write_tables(tmp_path, 1)
    register(spark, tmp_path)
    with configured(spark, {**MODES[0], **QUICK}):
        yield
    for name in TABLES:
        spark.catalog.dropTempView(name)


@pytest.mark.usefixtures("tables")
def test_entries_agree_with_spark(spark: SparkSession, engine: Engine) -> None:
    tallies = EntrySuite(spark, engine, 1, print).run(ENTRIES, MODES[:1])
    assert [one for tally in tallies.values() for one in tally.differences] == []
    assert [name for name, tally in tallies.items() if not (tally.shown and tally.compared)] == []


class Liar:
    """An engine whose words have the wrong case."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fallback_reasons(self, df: DataFrame) -> list[str]:
        return self._engine.fallback_reasons(df)

    def run(self, df: DataFrame) -> Result:
        result = self._engine.run(df)
        truth = result.arrow
        result.arrow = lambda: _swapped(truth())  # type: ignore[method-assign]  # the lie
        return result


def _swapped(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            words = [None if word is None else word.swapcase() for word in table.column(place).to_pylist()]
            table = table.set_column(place, field, pa.array(words, field.type))
    return table


@pytest.mark.usefixtures("tables")
def test_random_queries_agree_with_spark(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    functions = scalar_functions(spark, engine, FUNCTIONS)
    found = campaign.run(
        ComparisonArena(spark, engine, tmp_path / "random"), functions, range(10), print, trials=20
    )
    assert found.differences == []
    assert found.how["native"] > 5
    assert found.queries + found.how["large"] == 10


@pytest.mark.usefixtures("tables")
def test_random_queries_that_lose_a_worker_agree_with_spark(
    spark: SparkSession, engines: Engines, tmp_path: Path
) -> None:
    book = tmp_path / "orders"
    engine = engines.get(workers=2, threads=1, split=1, chaos_enabled=True, chaos_directory=str(book))
    functions = scalar_functions(spark, engine, FUNCTIONS)
    arena = ComparisonArena(spark, engine, tmp_path / "random")
    seeds = range(100, 105)
    found = campaign.run(arena, functions, seeds, print, trials=0, losses=Losses(FaultOrders(book)))
    assert found.differences == []
    assert found.struck > 1


@pytest.mark.usefixtures("tables")
def test_a_wrong_query_is_made_small(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    liar: Engine = Forgetful(engine)  # type: ignore[assignment]  # it has what the arena needs
    functions = scalar_functions(spark, engine, ("IsNull",))
    arena = ComparisonArena(spark, liar, tmp_path / "random")
    found = campaign.run(arena, functions, range(669, 670), print, trials=25)
    _, what, text = found.differences[0]
    assert "rows instead of" in what
    assert text.count("\n    (") < 20  # rows
    assert "wallaby.attach" in text


class Hasty:
    """An engine that fails with the error of another query."""

    def __init__(self, engine: Engine, failing: DataFrame) -> None:
        self._failing = failing
        self.settings = engine.settings

    def fallback_reasons(self, _: DataFrame) -> list[str]:
        return []

    def run(self, _: DataFrame) -> Result:
        raise AssertionError(self._failing.collect())


@pytest.mark.parametrize(
    ("failing", "different"),
    [
        ("element_at(array(id), 6)", ""),
        ("1 / id", ""),
        ("cast(concat('a', id) as int)", "CAST_INVALID_INPUT instead of DIVIDE_BY_ZERO"),
    ],
)
def test_of_errors_in_several_rows_each_will_do(
    spark: SparkSession, engine: Engine, tmp_path: Path, failing: str, different: str
) -> None:
    hasty: Any = Hasty(engine, spark.sql(f"select {failing} from range(1)"))
    arena = ComparisonArena(spark, hasty, tmp_path / "random")
    arena.use((RandomTable("t0", (Field("x", "int"),), ((0,), (1,), (2,))),), {})
    query = "select if(x = 0, 1 div x, element_at(array(1), x + 5)) as y from t0"
    assert arena.ask(query).different == different
    assert "instead of 3 rows" in arena.ask("select x from t0").different, (
        "where Spark raises none, none will do"
    )
    assert spark.table("t0").collect() == [(0,), (1,), (2,)], "as it was"


class Forgetful:
    """An engine that loses a row of each answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.settings = engine.settings

    def fallback_reasons(self, df: DataFrame) -> list[str]:
        return self._engine.fallback_reasons(df)

    def run(self, df: DataFrame) -> Result:
        result = self._engine.run(df)
        whole = result.arrow
        result.arrow = lambda: whole().slice(1)  # type: ignore[method-assign]  # the lie
        return result


@pytest.mark.usefixtures("tables")
def test_a_wrong_answer_is_found_and_belongs_to_its_expression(spark: SparkSession, engine: Engine) -> None:
    liar: Engine = Liar(engine)  # type: ignore[assignment]  # it has what the suite needs
    tallies = EntrySuite(spark, liar, 1, print).run(("Lower", "Length"), MODES[:1])
    assert tallies["Lower"].differences
    assert not tallies["Length"].differences
    assert all("lower(" in one.query and "c1" not in one.query for one in tallies["Lower"].differences)


@pytest.mark.usefixtures("tables")
def test_what_spark_ran_after_all_is_not_compared_with_spark(spark: SparkSession, engine: Engine) -> None:
    """Over odd rows a value is in doubt in the one expression, and what shares the query with it is compared alone."""
    tallies = EntrySuite(spark, engine, 1, print).run(("Upper", "GetJsonObject"), MODES[:1])
    assert tallies["Upper"].compared
    assert not tallies["Upper"].in_doubt
    assert tallies["GetJsonObject"].in_doubt
    assert tallies["GetJsonObject"].compared, "plain values are"


def test_what_an_engine_leaves_behind_is_found(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Path(str(spark.conf.get("spark.local.dir")))
    assert leftovers.leftovers(engine, local) == []
    kept = engine.persist(spark.sql("select k, v from few where v > 3"))
    planted = next(iter(local.rglob(f"{PREFIX}*"))) / "planted"
    planted.touch()
    with monkeypatch.context() as impatient:
        impatient.setattr(leftovers, "_WAIT_SECONDS", 0.5)
        found = " ".join(leftovers.leftovers(engine, local))
    for sign in ("rows of", "in the control store", "the head knows", "file planted in scratch"):
        assert sign in found
    kept.unpersist()
    planted.unlink()
    assert leftovers.leftovers(engine, local) == []
