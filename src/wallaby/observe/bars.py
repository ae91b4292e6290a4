"""Draw progress bars: on a terminal with rich, in a notebook as HTML, which needs no widgets."""

from __future__ import annotations

import importlib
from html import escape
from typing import Any, Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from wallaby.observe.units import duration

BAR_PIXELS: Final = 220


class Bars(Protocol):
    """Some lines with a bar each; `close` removes them all."""

    def show(self, key: str, share: float, text: str, seconds: float) -> None:
        """Draw a line, or draw it again."""
        ...

    def hide(self, key: str) -> None:
        """Remove a line."""
        ...

    def close(self) -> None:
        """Remove everything."""
        ...


def bars_on(console: Console) -> Bars:
    """The bars for this console: in the notebook or on the terminal."""
    return NotebookBars() if console.is_jupyter else TerminalBars(console)


class TerminalBars:
    """Lines at the end of a terminal, which are wiped away."""

    def __init__(self, console: Console) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[standing]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._progress.start()

    def show(self, key: str, share: float, text: str, seconds: float) -> None:
        """Draw a line."""
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(key, total=1.0, standing="")
            self._progress.tasks[-1].start_time = self._progress.get_time() - seconds
        self._progress.update(self._tasks[key], completed=share, standing=text)
        self._progress.refresh()

    def hide(self, key: str) -> None:
        """Remove a line."""
        if key in self._tasks:
            self._progress.remove_task(self._tasks.pop(key))

    def close(self) -> None:
        """Wipe everything away."""
        self._progress.stop()


class NotebookBars:
    """An output of a cell that is replaced again and again, and is empty in the end."""

    def __init__(self) -> None:
        self._ipython: Any = importlib.import_module("IPython.display")
        self._lines: dict[str, str] = {}
        self._output: Any = None

    def show(self, key: str, share: float, text: str, seconds: float) -> None:
        """Draw a line."""
        self._lines[key] = (
            f"<div><code>{escape(key)}</code> "
            f'<progress value="{share:.3f}" max="1" style="width: {BAR_PIXELS}px"></progress> '
            f"{escape(text)} · {duration(seconds)}</div>"
        )
        self._draw()

    def hide(self, key: str) -> None:
        """Remove a line."""
        if self._lines.pop(key, None) is not None:
            self._draw()

    def close(self) -> None:
        """Leave an empty output behind."""
        self._lines.clear()
        self._draw()

    def _draw(self) -> None:
        drawn = self._ipython.HTML("".join(self._lines.values()))
        if self._output is None:
            self._output = self._ipython.display(drawn, display_id=True)
        else:
            self._output.update(drawn)
