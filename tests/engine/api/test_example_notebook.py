"""The example notebook, cell by cell in this process; `make notebook` runs it in Jupyter and looks at it."""

from __future__ import annotations

import ast
import json
from contextlib import chdir
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.engine.api.test_notebook import Shell
from tests.engine.api.test_pages import PATIENT, spark_works_in
from tests.pages import ROOT
from tests.spark_sessions import Engines

import wallaby
from wallaby_lab import tpch

NOTEBOOK = ROOT / "examples" / "first_queries.ipynb"


def cells() -> list[str]:
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


class Notebook(Shell):
    """Runs cells as IPython does, with the magics of an extension."""

    def run(self, cell: str) -> Any:
        """The value that the notebook would show below the cell."""
        if cell.startswith("%load_ext "):
            module = __import__(cell.removeprefix("%load_ext "))
            return module.load_ipython_extension(self)
        if cell.startswith("%%"):
            line, _, body = cell.removeprefix("%%").partition("\n")
            name, _, argument = line.partition(" ")
            return self.magics[name](argument, body)
        tree = ast.parse(cell)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), self.user)
        if not isinstance(last, ast.Expr):
            return None
        return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), self.user)


def as_html(value: Any) -> str:
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)


def test_the_notebook_runs_from_top_to_bottom(
    engines: Engines, spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    engines.close()
    before = {key: spark.conf.get(key, None) for key in (*PATIENT, "spark.wallaby.window")}
    for key, value in PATIENT.items():
        spark.conf.set(key, value)
    notebook = Notebook()
    try:
        with chdir(tmp_path), spark_works_in(spark, tmp_path):
            shown = {cell: as_html(notebook.run(cell)) for cell in cells()}
    finally:
        wallaby.disable(spark)
        for key, known in before.items():
            spark.conf.unset(key) if known is None else spark.conf.set(key, known)
        tpch.register(spark, data)  # the notebook has tables of the same names
    assert notebook.user["rows"] == 600_000
    assert notebook.user["result"].stats.recoveries >= 1, "the killed worker was noticed"
    assert "<table>" in next(text for cell, text in shown.items() if cell.startswith("%%wsql"))
    assert "Sin(" in next(text for cell, text in shown.items() if "fallback_reasons" in cell)
    assert "lost" in shown["engine.history()"] or notebook.user["victim"].id in shown["engine.history()"]


def test_the_notebook_is_kept_without_outputs() -> None:
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in found)
