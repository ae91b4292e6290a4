"""Renames that Linux has and POSIX lacks: swap two names, or rename without replacing an existing file."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Final

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100
#: The errors of a kernel, a C library or a file system that does not know these renames.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
_libc: Final = ctypes.CDLL(None, use_errno=True)


def exchange(one: Path, other: Path) -> bool:
    """Swap two files or folders in one step; False if this file system cannot."""
    return _rename(one, other, _EXCHANGE)


def rename_to_new(source: Path, target: Path) -> None:
    """Rename a file or a folder.

    Raises:
        FileExistsError: there is something under the new name.
    """
    if _rename(source, target, _NOREPLACE):
        return
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)


def _rename(source: Path, target: Path, flags: int) -> bool:
    call = getattr(_libc, "renameat2", None)
    if call is None:
        return False
    if not call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags)):
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))
