"""How the C library keeps memory that gRPC and DuckDB free.

gRPC gathers every incoming message in memory of the C library, and DuckDB makes its results there, which by default
gives it back to the system each time: the next one pays for fresh pages. Measured: half of the receiver's time per
byte. A TaskManager calls this once, before it starts threads; what is not glibc is left as it is.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

#: Freed memory at the end of a heap that is kept, per heap: a part of the budget, within bounds.
TRIM_PARTS = 16
TRIM_BYTES_MIN = 16 << 20
TRIM_BYTES_MAX = 512 << 20
#: Blocks above a quarter of that are mapped and unmapped one by one. More than a message, which is 1 MiB, and no more
#: than glibc takes.
MAP_PARTS = 4
MAP_BYTES_MAX = 32 << 20

#: Threads share so many heaps: each keeps freed memory of its own, and by default there are eight per core.
ARENAS_MAX = 2

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory(memory_bytes: int = 0) -> bool:
    """Tell the C library to keep a little of what is freed, under this budget. False if it does not know how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    kept_bytes = min(max(memory_bytes // TRIM_PARTS, TRIM_BYTES_MIN), TRIM_BYTES_MAX)
    wanted = (
        (_M_TRIM_THRESHOLD, kept_bytes),
        (_M_MMAP_THRESHOLD, min(kept_bytes // MAP_PARTS, MAP_BYTES_MAX)),
        (_M_ARENA_MAX, ARENAS_MAX),
    )
    done = [mallopt(option, value) for option, value in wanted]
    return all(done)


def give_freed_memory_back() -> None:
    """Have the C library and Arrow return what they keep: for moments after which less will be needed."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
        trim(0)
