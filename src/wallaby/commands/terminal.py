"""Printing for all commands: results to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wallaby.errors import InvalidArgumentError

#: The width of tables that go to a pipe or a file.
PIPE_COLUMNS = 160
_piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
out = Console(highlight=False, soft_wrap=True, width=PIPE_COLUMNS if _piped else None)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(line: str = "") -> None:
    """Print a line of the result."""
    out.print(line, markup=False)


def note(line: str) -> None:
    """Print a line about the result."""
    err.print(line, markup=False)


def step(line: str | Callable[[], str]) -> None:
    """Print on a terminal what a command is about to do, which may take a while."""
    if err.is_terminal and not os.environ.get("CI"):
        err.print(line if isinstance(line, str) else line(), markup=False, style="dim")


def progress() -> Progress:
    """Show a bar on a terminal; nothing in a pipe or in CI."""
    quiet = not sys.stderr.isatty() or bool(os.environ.get("CI"))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=err, transient=True, disable=quiet)


def open_for_writing(path: Path) -> TextIO:
    """Open a text file for writing; an error names the file."""
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"Cannot write {path}: {error.strerror}.", fix="Name another file."
        ) from error
