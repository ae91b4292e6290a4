"""Bodies that are not in memory: a slice may have a handle instead of its body, which reads the body when needed.

Before most pushes the receiver is asked, and many pushes are refused: only bodies that will be accepted are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from wallaby.lineage.effects import Slice


class GoneError(LookupError):
    """A body is not available, because its query was dropped or its record cannot be read now."""


class LazyBody:
    """A body in a file or in the durable store; `read` may raise `GoneError`."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], tuple[pa.RecordBatch, ...]]) -> None:
        self.read = read


def is_lazy(piece: Slice) -> bool:
    """Does this slice have a body that has yet to be read?"""
    return isinstance(piece.body, LazyBody)


def fetched(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """Read the bodies of slices; a body that several share is read once and stays shared. May wait for a disk."""
    read: dict[int, tuple[pa.RecordBatch, ...]] = {}
    found = []
    for piece in slices:
        handle = piece.body
        if isinstance(handle, LazyBody):
            body = read.get(id(handle)) or read.setdefault(id(handle), handle.read())
            found.append(replace(piece, body=body))
        else:
            found.append(piece)
    return tuple(found)
