"""Bodies that are not in memory: a slice may have a handle in its body's place, which reads it when it is needed.

Most pushes are asked about first, and many are refused: only what will be taken is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from wallaby.lineage.effects import Slice


class GoneError(LookupError):
    """There is no such body, any more or now: its query was dropped, or what is committed cannot be told."""


class LazyBody:
    """A body in a file or in the durable store; `read` may raise `GoneError`."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], tuple[pa.RecordBatch, ...]]) -> None:
        self.read = read


def is_lazy(piece: Slice) -> bool:
    """Has this slice a body that is to be read?"""
    return isinstance(piece.body, LazyBody)


def fetched(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """The same slices with their bodies read; what several have is read once and stays one. May wait for a disk."""
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
