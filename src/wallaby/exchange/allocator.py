"""How the C library keeps memory that gRPC frees.

gRPC gathers every incoming message in memory of the C library, which by default gives it back to the system
after each message: the next one pays for fresh pages. Measured: half of the receiver's time per byte. A
TaskManager calls this once, before it starts threads; what is not glibc is left as it is.
"""

from __future__ import annotations

import ctypes

#: Freed memory at the end of a heap that is kept, per heap.
TRIM_THRESHOLD_BYTES = 16 << 20
#: Blocks above this are mapped and unmapped one by one. More than a message, which is 1 MiB.
MAP_THRESHOLD_BYTES = 4 << 20

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Tell the C library to keep a little of what is freed. False if it does not know how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    done = mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES), mallopt(_M_MMAP_THRESHOLD, MAP_THRESHOLD_BYTES)
    return all(done)
