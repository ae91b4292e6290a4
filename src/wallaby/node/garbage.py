"""Collect objects that refer to each other when a query has ended or memory is short.

Python frees an object when nothing refers to it any more, but looks for cycles only from time to time. An error refers
to the frames that it passed, those refer to rows, mapped files and the query's work, and that refers to the error.
Until Python's next collection, an ended query kept what it held: under a budget of 128 MiB, up to 80 MiB of mapped
files. So a TaskManager collects when a query has ended and when memory is short. Objects that existed when it began to
serve, mostly code, are excluded, so that a collection takes milliseconds.
"""

from __future__ import annotations

import gc


def leave_out_what_is_here() -> None:
    """Exclude all present objects from future collections."""
    gc.collect()
    gc.freeze()


def collect_garbage() -> None:
    """Free objects that are referenced only by each other."""
    gc.collect()


def let_go_of_frames(error: BaseException | None) -> None:
    """Remove the frames from an error and from its causes."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
