"""Parts of some work are shared out: each is done once, by somebody who is free, and a process that ends is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from wallaby.errors import InternalError
from wallaby_lab.differential.crew import Say, shared_out

_BAD = 13


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares numbers, but not the bad one, and leaves a file behind where it has begun and ended well."""

    directory: Path

    @contextmanager
    def begin(self, say: Say) -> Iterator[Callable[[int], tuple[int, int]]]:
        say("begins")
        yield self._square
        (self.directory / str(os.getpid())).touch()

    def _square(self, number: int) -> tuple[int, int]:
        if number == _BAD:
            os._exit(3)
        return number * number, os.getpid()


def test_each_part_is_done_once_by_several_processes_which_end_well(tmp_path: Path) -> None:
    said: list[str] = []
    found = list(shared_out(Squares(tmp_path), range(12), said.append, processes=2))
    assert sorted((number, square) for number, (square, _) in found) == [(n, n * n) for n in range(12)]
    by = {process for _, (_, process) in found}
    ended = {int(path.name) for path in tmp_path.iterdir()}
    assert by <= ended
    assert len(ended) == 2
    assert os.getpid() not in ended
    assert said == ["begins", "begins"]


def test_one_process_does_it_here(tmp_path: Path) -> None:
    found = dict(shared_out(Squares(tmp_path), range(3), print))
    assert found == {n: (n * n, os.getpid()) for n in range(3)}
    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]


def test_a_process_that_ends_in_the_middle_is_told(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="in the middle of 13, with 3"):
        list(shared_out(Squares(tmp_path), [_BAD], print, processes=2))
