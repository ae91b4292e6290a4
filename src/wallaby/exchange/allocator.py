"""Let the C library keep memory that gRPC and DuckDB free.

gRPC and DuckDB allocate incoming messages and results with the C library, which by default returns the memory to the
system each time, so the next allocation pays for fresh pages. Measured: half of the receiver's time per byte. A
TaskManager calls this once, before it starts threads; C libraries other than glibc are left as they are.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

#: How much freed memory is kept at the end of each heap: a fraction of the budget, within bounds.
TRIM_PARTS = 16
TRIM_BYTES_MIN = 16 << 20
TRIM_BYTES_MAX = 512 << 20
#: Blocks above a quarter of that are mapped and unmapped one by one. More than a message, which is 1 MiB, and no more
#: than glibc accepts.
MAP_PARTS = 4
MAP_BYTES_MAX = 32 << 20

#: The number of heaps that threads share: each keeps its own freed memory, and by default there are eight per core.
ARENAS_MAX = 2

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory(memory_bytes: int = 0) -> bool:
    """Let the C library keep a little freed memory under this budget. False if it does not support that."""
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
    """Let the C library and Arrow return the memory that they keep, when less will be needed from now on."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
        trim(0)
