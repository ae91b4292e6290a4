"""All tests are run, by one of two processes, and none of the two can fail unseen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tools.run_tests import parts, run

TESTS = Path(__file__).parent
LAB_TESTS = TESTS.parent / "lab" / "tests"


def test_every_test_is_in_one_part() -> None:
    first, second = parts((TESTS, LAB_TESTS), TESTS / "engine")
    for path in (*TESTS.rglob("test_*.py"), *LAB_TESTS.rglob("test_*.py")):
        holding = [part for part in (*first, *second) if path.is_relative_to(part)]
        assert len(holding) == 1, path
    assert all(Path(path).parent == TESTS / "engine" for path in first)


@pytest.mark.parametrize("codes", [(0, 0), (3, 0), (0, 4)])
def test_whoever_fails_fails_all_and_everything_is_printed(
    codes: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    said = [f"print('part {number}'); raise SystemExit({code})" for number, code in enumerate(codes)]
    assert run([[sys.executable, "-c", text] for text in said]) == max(codes)
    printed = capfd.readouterr().out
    assert [f"part {number}" in printed for number in (0, 1)] == [True, True]


def test_one_that_was_killed_has_failed() -> None:
    assert run([[sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]]) == 1
