"""The magic for notebooks, and what they show of results, plans and the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import wallaby
from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError
from wallaby.results.result import Result


class Shell:
    """What the extension uses of IPython."""

    def __init__(self) -> None:
        self.magics: dict[str, Callable[..., Any]] = {}
        self.user: dict[str, Any] = {}

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        assert kind == "line_cell"
        self.magics[name] = function

    def push(self, variables: dict[str, Any]) -> None:
        self.user |= variables


def test_sql_in_a_cell_runs_through_the_engine(engine: Engine, spark: SparkSession) -> None:
    shell = Shell()
    wallaby.load_ipython_extension(shell)  # not among the public names
    wsql = shell.magics["wsql"]
    spark.sql("select 1")  # makes the session the active one
    cell = wsql("totals", "select n_regionkey r, count(*) n from nation group by 1;\n")
    assert isinstance(cell, Result)
    assert shell.user == {"totals": cell}
    assert cell._repr_html_().count("<tr>") == 6
    assert wsql("select count(*) from nation").rows()[0][0] == 25
    with pytest.raises(InvalidArgumentError, match="empty"):
        wsql("totals", " ;")
    with pytest.raises(InvalidArgumentError, match="variable"):
        wsql("not a name", "select 1")
    assert "<pre>" in engine.explain(spark.table("nation"))._repr_html_()  # type: ignore[attr-defined]
    assert "TaskManagers" in engine._repr_html_()
    assert "<table>" in engine.history()._repr_html_()


def test_a_result_that_runs_is_shown_without_waiting(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.table("short"))
    assert "<table>" not in result._repr_html_()
    result.cancel()
    on_spark = engine.run(spark.sql("select sin(n_nationkey) from nation"))
    assert "on Spark" in on_spark._repr_html_()
    on_spark.rows()
    assert "Sin" in on_spark._repr_html_()
