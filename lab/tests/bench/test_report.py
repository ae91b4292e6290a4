"""Figures of a benchmark: what is said follows from what was measured, failures and wrong answers included."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from wallaby_lab.bench.breakdown import HEADINGS
from wallaby_lab.bench.plots import draw_means, draw_queries
from wallaby_lab.bench.report import speedups, to_json, to_page
from wallaby_lab.bench.rounds import Timed

FACTS: dict[str, Any] = {
    **dict.fromkeys(HEADINGS, 0.5),
    "threads": 2,
    "tasks": 10,
    "lineage_bytes": 130,
    "store_calls": 15,
    "exchanged_bytes": 2048,
    "sent_bytes": 1024,
    "spilled_bytes": 4096,
}
MEASURED = {
    "contenders": {
        "spark": {"what": "SparkSQL", "start_seconds": 1.0},
        "other": {
            "what": "Other",
            "start_seconds": 1.0,
            "attach_seconds": [2.0, 1.0, 3.0],
            "close_seconds": [0.5],
        },
    },
    "absent": {"third": "it is not installed"},
    "results": {
        "spark": {1: Timed([9.0, 4.0, 2.0]), 2: Timed([1.0, 1.0, 1.0]), 3: Timed([1.0])},
        "other": {
            1: Timed([1.0, 2.0, 1.0], compared=True, worker_peak_bytes=3 << 20, breakdown=FACTS),
            2: Timed([4.0, 4.0, 4.0], compared=True, difference="one row"),
            3: Timed(error="out of memory"),
        },
    },
    "took_seconds": 30.0,
    "timed_seconds": 20.0,
}


def tables(page: str) -> dict[str, dict[str, list[str]]]:
    """The cells of each table of a page, by the heading before it and the first cell of a row."""
    found: dict[str, dict[str, list[str]]] = {}
    heading = ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("| "):
            first, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.setdefault(heading, {})[first] = cells
    return found


def test_a_page_has_medians_ratios_and_what_went_wrong() -> None:
    page = to_page(MEASURED, "A title", data="sf1")
    cells = tables(page)["A title"]
    assert cells["1"] == ["4.00 (9.00, ±3.50)", "1.00 (1.00, ±0.50)", "4.00"]
    assert cells["2"] == ["1.00 (1.00, ±0.00)", "4.00 (4.00, ±0.00) DIFFERS", "0.25"]
    assert cells["3"] == ["1.00 (1.00, ±0.00)", "failed: out of memory", ""]
    assert cells["all: sum, geometric mean"] == ["6.0", "5.0", "**1.00**"]
    assert cells["least"][-1] == "0.25"
    assert "1 of 2 answers were equal to SparkSQL's" in page
    assert "third did not take part: it is not installed" in page


def test_a_page_says_where_time_and_memory_went() -> None:
    found = tables(to_page(MEASURED, "A title"))
    assert found["Attaching and closing"]["other"] == ["2.00 (1.00 to 3.00)", "0.50 (0.50 to 0.50)"]
    assert found["Peak memory"]["1"] == ["0 B", "0 B", "3.0 MiB", "4.0 KiB"]
    went = found["Where the time of other went"]
    assert went["query"][: len(HEADINGS)] == list(HEADINGS.values())
    assert went["1"] == [*["0.50"] * len(HEADINGS), "10", "2.0 KiB", "1.0 KiB", "13.0", "1.50"]


def test_without_spark_the_page_says_that_nothing_was_compared() -> None:
    measured = {"contenders": {"duckdb": {"what": "DuckDB"}}, "results": {"duckdb": {1: Timed([1.0])}}}
    assert "not compared" in to_page(measured, "A title")


def test_the_raw_figures_are_all_there() -> None:
    raw = to_json(MEASURED, data="sf1")
    assert raw["results"]["spark"]["1"]["seconds"] == [9.0, 4.0, 2.0]
    assert raw["results"]["other"]["3"]["error"] == "out of memory"
    assert raw["machine"]["cores"]


SVG = "{http://www.w3.org/2000/svg}"


def bars(drawn: ElementTree.Element) -> list[str]:
    """The names of the bars of a drawing."""
    return [name for group in drawn.iter(f"{SVG}g") if (name := group.get("id", "")).startswith("bar-")]


def texts(drawn: ElementTree.Element) -> list[str]:
    """What stands in a drawing."""
    return ["".join(element.itertext()) for element in drawn.iter(f"{SVG}text")]


def test_plots_have_a_bar_for_each_ratio() -> None:
    ratios = speedups(MEASURED["results"])  # type: ignore[arg-type]
    drawn = ElementTree.fromstring(draw_queries({**ratios, "<third>": {1: 30.0}}, "a < b").svg())
    assert bars(drawn) == ["bar-0-1", "bar-0-2", "bar-1-1"]
    scale = [f"{tick}×" for tick in ("0.2", "0.5", "1", "2", "5", "10", "20", "50")]
    assert texts(drawn) == ["1", "2", *scale, "a < b", "other", "<third>"]
    drawn = ElementTree.fromstring(draw_means({"other": 1.0, "none": float("nan")}, "means").svg())
    assert bars(drawn) == ["bar-0"]
    assert texts(drawn) == ["other", "1.00×", "means"]


def test_a_plot_of_nothing_is_empty() -> None:
    assert bars(ElementTree.fromstring(draw_queries({}, "nothing").svg())) == []
    assert bars(ElementTree.fromstring(draw_means({}, "nothing").svg())) == []


def test_the_same_figures_always_give_the_same_files() -> None:
    one, other = (draw_queries({"a": {1: 2.0, 3: 0.5}}, "again") for _ in range(2))
    assert one.svg() == other.svg() == one.svg()
    assert one.png() == other.png()
    assert "date" not in one.svg()
