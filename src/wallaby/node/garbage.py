"""Objects that refer to each other: who collects them, and when.

Python frees an object when nobody refers to it any more, and looks for objects that only refer to each other now and
then. An error refers to the frames that it passed, those to rows, mapped files and the query's work, and that to the
error. Until Python looked, a query that had ended kept what it held: under a budget of 128 MiB, up to 80 MiB of mapped
files. So a TaskManager looks when a query is over and when memory is short. What it had when it began to serve, mostly
code, is left out, so that a look takes milliseconds.
"""

from __future__ import annotations

import gc


def leave_out_what_is_here() -> None:
    """Look only at objects that are made from now on."""
    gc.collect()
    gc.freeze()


def collect_garbage() -> None:
    """Free objects that only refer to each other."""
    gc.collect()


def let_go_of_frames(error: BaseException | None) -> None:
    """Have an error, and those that it came from, refer to no frames any more."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
