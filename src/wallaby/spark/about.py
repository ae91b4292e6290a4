"""Describe a query as its user knows it: by its SQL, from Spark, and by the line that called, from Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from wallaby.observe.about import About

#: Code of these packages is not the user's.
_OURS: Final = frozenset(
    {
        "wallaby",
        "pyspark",
        "py4j",
        "pandas",
        "contextlib",
        "functools",
        "typer",
        "click",
        "_thread",
        "threading",
    }
)
#: Notebooks run each cell as a file of such a directory.
_CELL: Final = "ipykernel_"


def calling() -> About:
    """The action that this thread is in, and the line of the program that called it."""
    frame = sys._getframe(1)
    action = ""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _OURS:
            return About(action=action, line=f"{_file(frame.f_code.co_filename)}:{frame.f_lineno}")
        action = frame.f_code.co_name
        if frame.f_back is None:
            break
        frame = frame.f_back
    return About()  # a thread of Spark's or of ours


def _file(path: str) -> str:
    return "cell" if _CELL in path or path.startswith("<ipython") else Path(path).name
