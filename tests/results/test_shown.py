"""What notebooks show: HTML in which nothing of the data is executed, and never many rows."""

from __future__ import annotations

import pyarrow as pa

from wallaby.observe.finding import Finding, FindingKind
from wallaby.results.shown import ROWS_MAX, Explained, shown_result

EVIL = "<script>"


def test_a_result_shows_its_first_rows_and_what_cost_most() -> None:
    batches = [pa.record_batch({"a": [*range(15)], "b": [EVIL, None, *"x" * 13]})] * 2
    finding = Finding(FindingKind.CLIENT, 0.4, f"{EVIL} waited.", "Hurry.")
    html = shown_result(f"Result {EVIL}", ["a", EVIL], batches, (finding,))
    assert EVIL not in html
    assert html.count("<tr>") == ROWS_MAX + 1
    assert "NULL" in html
    assert "the first 20 of 30 rows" in html
    assert "<b>40%</b>" in html


def test_rows_that_have_not_arrived_are_not_waited_for() -> None:
    assert "<table>" not in shown_result("Result", ["a"], None, ())
    assert "<td>" not in shown_result("Result", ["a"], [], ())
    long = pa.record_batch({"a": ["y" * 1000]})
    assert len(shown_result("Result", ["a"], [long], ())) < 300


def test_a_plan_is_text_that_notebooks_show_as_it_is() -> None:
    text = Explained(f"s0 scan {EVIL}\n  s1")
    assert text == f"s0 scan {EVIL}\n  s1"
    assert text._repr_html_() == "<pre>s0 scan &lt;script&gt;\n  s1</pre>"
