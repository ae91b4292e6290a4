"""What refers to itself in a circle is let go of: rows do not stay because an error passed by them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from wallaby.node.garbage import collect_garbage, let_go_of_frames


class Rows:
    """Something large."""


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    """Python looks for circles only when it is told to."""
    gc.disable()
    yield
    gc.enable()


def failed() -> tuple[ValueError, weakref.ref[Rows]]:
    def step() -> weakref.ref[Rows]:
        rows = Rows()
        seen.append(weakref.ref(rows))
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("then") from error

    seen: list[weakref.ref[Rows]] = []
    try:
        step()
    except ValueError as error:
        return error, seen[0]
    raise AssertionError("it fails")


def test_an_error_that_is_kept_keeps_no_rows() -> None:
    error, rows = failed()
    assert rows() is not None
    let_go_of_frames(error)
    assert rows() is None
    let_go_of_frames(None)


def test_circles_are_found_when_they_are_looked_for() -> None:
    rows = Rows()
    rows.me = rows  # type: ignore[attr-defined]  # the circle
    seen = weakref.ref(rows)
    del rows
    assert seen() is not None
    collect_garbage()
    assert seen() is None
