"""The progress bar: how far a query is, for whom it shows, and that it leaves no line behind."""

from __future__ import annotations

import io
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console
from tests.builders import W, at, pipeline, snapshot

from wallaby.gcs.interface import Gcs
from wallaby.lineage.names import QueryId
from wallaby.lineage.snapshot import Snapshot
from wallaby.observe import progress
from wallaby.observe.bars import bars_on
from wallaby.observe.progress import ProgressBoard, is_wanted, standing

GRAPH = pipeline(readers=2, executors=1, splits=10)


def some_way() -> Snapshot:
    states = {(0, 0): at(W[1], 4), (0, 1): at(W[1], 2), (1, 0): at(W[1], 1)}
    return replace(snapshot(GRAPH, states, members=(W[1],)), gate_open=True)


def test_how_far_a_query_is() -> None:
    stands = standing(GRAPH, some_way())
    assert (stands.splits_read, stands.splits, stands.stages_done, stands.stages, stands.tasks) == (
        6,
        10,
        0,
        2,
        7,
    )
    assert str(stands) == "6/10 splits · 0/2 stages · 7 tasks"
    assert 0.0 < stands.share < 1.0
    assert "recovering" in str(standing(GRAPH, replace(some_way(), gate_open=False)))


def test_nothing_is_shown_in_pipes_and_in_ci() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True)
    pipe = Console(file=io.StringIO(), force_terminal=False)
    assert is_wanted(terminal, {})
    assert not is_wanted(terminal, {"CI": "true"})
    assert not is_wanted(terminal, {"TERM": "dumb"})
    assert not is_wanted(pipe, {})


class Store:
    """A store that knows one answer, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    def snapshot(self, _query: QueryId) -> Snapshot:
        self.asked += 1
        return some_way()


def board(monkeypatch: pytest.MonkeyPatch, store: Store, screen: io.StringIO) -> ProgressBoard:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.005)
    console = Console(file=screen, force_terminal=True, width=100)
    gcs: Gcs = store  # type: ignore[assignment] # a fake of the one action that is used
    return ProgressBoard(gcs, console)


def test_a_slow_query_is_drawn_and_wiped_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    screen, store = io.StringIO(), Store()
    shown = board(monkeypatch, store, screen)
    done = shown.follow(QueryId("q-1"), GRAPH)
    deadline = time.monotonic() + 10
    while "6/10 splits" not in screen.getvalue() and time.monotonic() < deadline:
        time.sleep(0.005)
    done()
    assert "6/10 splits" in screen.getvalue()
    assert "\x1b[2K" in screen.getvalue().rpartition("7 tasks")[2]  # the line is erased
    written = screen.getvalue()
    time.sleep(0.05)
    assert screen.getvalue() == written


def test_a_quick_query_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, store = io.StringIO(), Store()
    shown = board(monkeypatch, store, screen)
    done = shown.follow(QueryId("q-1"), GRAPH)
    done()
    deadline = time.monotonic() + 10
    while shown._thread is not None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert (screen.getvalue(), store.asked) == ("", 0)


class Notebook:
    """What a notebook's cell shows, for `IPython.display`."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.outputs = 0

    def HTML(self, text: str) -> str:  # noqa: N802 - IPython's name
        return text

    def display(self, text: str, display_id: bool) -> Notebook:
        assert display_id
        self.outputs += 1
        self.shown.append(text)
        return self

    def update(self, text: str) -> None:
        self.shown.append(text)


def test_a_notebook_without_widgets_shows_one_output_that_is_empty_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    console = Console(file=io.StringIO(), force_jupyter=True)
    assert is_wanted(console, {})
    shown = bars_on(console)
    shown.show("q-1", 0.5, "6/10 splits <b>", 1.5)
    shown.show("q-2", 0.1, "recovering", 2.0)
    shown.hide("q-1")
    shown.hide("nobody")
    shown.close()
    assert notebook.outputs == 1
    assert 'value="0.500"' in notebook.shown[0]
    assert "&lt;b&gt;" in notebook.shown[0]
    assert "q-1" in notebook.shown[1]
    assert "q-1" not in notebook.shown[2]
    assert notebook.shown[-1] == ""
