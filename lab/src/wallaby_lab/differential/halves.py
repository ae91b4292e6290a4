"""Test many items at once: only if the result is bad is each half tested again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")
BATCH: Final = 40


def bad_ones(items: Sequence[Item], is_good: Callable[[Sequence[Item]], bool]) -> Iterator[Item]:
    """The bad items, where a group is good only if each of its items is."""
    for begin in range(0, len(items), BATCH):
        yield from _bad(items[begin : begin + BATCH], is_good)


def _bad(items: Sequence[Item], is_good: Callable[[Sequence[Item]], bool]) -> Iterator[Item]:
    if not items or is_good(items):
        return
    if len(items) == 1:
        yield items[0]
        return
    middle = len(items) // 2
    yield from _bad(items[:middle], is_good)
    yield from _bad(items[middle:], is_good)
