"""The example notebook in a real Jupyter kernel, and what a browser shows of it: `make notebook`.

`tests/engine/api/test_example_notebook.py` runs the same cells without Jupyter, as a part of `make test`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.pages import ROOT
from tests.ui.chromium import Chromium
from tests.ui.test_browser import PICTURES

nbformat: Any = pytest.importorskip("nbformat", reason="make notebook installs it")
nbclient: Any = pytest.importorskip("nbclient", reason="make notebook installs it")
nbconvert: Any = pytest.importorskip("nbconvert", reason="make notebook installs it")
pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
NOTEBOOK = ROOT / "examples" / "first_queries.ipynb"
CELL_SECONDS = 600


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook with the outputs of its cells."""
    here = tmp_path_factory.mktemp("notebook")
    found = nbformat.read(NOTEBOOK, as_version=4)
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 1g pyspark-shell"
    client = nbclient.NotebookClient(found, timeout=CELL_SECONDS, resources={"metadata": {"path": str(here)}})
    client.execute()
    return found


def outputs(notebook: Any, beginning: str) -> list[Any]:
    """The outputs of the cell that begins so."""
    return next(cell.outputs for cell in notebook.cells if cell.source.startswith(beginning))


def as_html(shown: list[Any]) -> str:
    return "".join(each.get("data", {}).get("text/html", "") for each in shown)


def test_cells_show_tables_plans_and_the_live_page(executed: Any) -> None:
    assert "live page</a>" in as_html(outputs(executed, "import os"))
    assert "<table>" in as_html(outputs(executed, "%%wsql"))
    assert "<pre>" in as_html(outputs(executed, "engine.explain"))
    assert "<table>" in as_html(outputs(executed, "engine.history"))


def test_no_progress_is_left_below_a_cell_that_has_ended(executed: Any) -> None:
    shown = "".join(as_html(cell.get("outputs", [])) for cell in executed.cells)
    assert "<progress" not in shown


def test_a_killed_worker_is_one_line(executed: Any) -> None:
    said = [
        line
        for each in outputs(executed, "spark.conf.set")
        if each.output_type == "stream"
        for line in each.text.splitlines()
    ]
    assert sum("lost w" in line for line in said) == 1, said
    assert len(said) == 1, said


def test_it_looks_right(executed: Any, browser: Chromium, tmp_path: Path) -> None:
    body, _ = nbconvert.HTMLExporter(template_name="lab", theme="light").from_notebook_node(executed)
    page = tmp_path / "notebook.html"
    page.write_text(body, encoding="utf-8")
    browser.open(page.as_uri())
    assert browser.too_wide() == 0
    browser.picture(PICTURES / "notebook.png", whole=True)
