"""Configure whether allocators keep freed memory for a while or return it at once.

Arrow (mimalloc) and Polars (jemalloc) can keep freed pages for reuse. Under a small budget that breaks the budget: on a
scan with 100 MiB, 70 MiB were kept unused. Under a large one returning them is expensive: each task pays for fresh
pages again, which was half of the CPU time of TPC-H 7 and 9 at scale 10. So the budget decides: below 1 GiB nothing is
kept; below 4 GiB freed memory is kept for an instant, which covers what one task frees and the next one takes; from 4
GiB it is kept for some seconds and from one query to the next, and Polars takes huge pages, as numpy and mimalloc do by
themselves: at scale 3 a query took 100,000 fresh pages, a third of its CPU time. mimalloc has a heap for each thread
and keeps some of each even when told not to: 25 MiB in a TaskManager without a query. So under a small budget Arrow
uses the C library's heaps, of which there are two (`exchange.allocator`). The libraries read the environment once, when
they are loaded, so this must be called before that. Variables that are already set are not changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

#: From this budget on, freed memory is kept for an instant.
INSTANT_BYTES_MIN: Final = 1 << 30
#: From this budget on, freed memory is kept for some seconds.
KEEPING_BYTES_MIN: Final = 4 << 30

_AT_ONCE: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MIMALLOC_PURGE_DELAY": "0",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
}
_AFTER_AN_INSTANT: Final = {
    "MIMALLOC_PURGE_DELAY": "100",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:200,muzzy_decay_ms:0",
}
_AFTER_A_WHILE: Final = {
    "MIMALLOC_PURGE_DELAY": "2000",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:5000,muzzy_decay_ms:0,thp:always",
}


def allocator_variables(memory_bytes: int) -> Mapping[str, str]:
    """The environment variables for the allocators of a process with this budget."""
    if memory_bytes < INSTANT_BYTES_MIN:
        return _AT_ONCE
    return _AFTER_AN_INSTANT if memory_bytes < KEEPING_BYTES_MIN else _AFTER_A_WHILE


def keeps_between_queries(memory_bytes: int) -> bool:
    """Does a process with this budget keep freed memory when a query has ended, for the next one?"""
    return memory_bytes >= KEEPING_BYTES_MIN


def set_allocators(memory_bytes: int) -> None:
    """Configure the allocators of libraries that are not loaded yet. The process must belong to the TaskManager."""
    for name, value in allocator_variables(memory_bytes).items():
        os.environ.setdefault(name, value)
