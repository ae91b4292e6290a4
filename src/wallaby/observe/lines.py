"""The events of one query in memory, for the live page: bounded, compressed once the query has ended.

Nothing is parsed until somebody looks, so a query pays only for an append.
"""

from __future__ import annotations

import threading
import zlib
from typing import Final

#: About seven thousand events; later ones are counted only.
LINES_BYTES_MAX: Final = 2 << 20


class KeptLines:
    """Lines of events as they came. Any thread may use it."""

    def __init__(self, bytes_max: int = LINES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._text = bytearray()
        self._size = 0
        self._packed: bytes | None = None
        #: Events of workers that found no room.
        self.left_out = 0

    def add(self, lines: bytes, *, always: bool = False) -> None:
        """Keep whole lines. Those of the head are few, and always kept."""
        with self._lock:
            if self._size + len(lines) > self._bytes_max and not always:
                self.left_out += lines.count(b"\n")
                return
            if self._packed is not None:
                self._text, self._packed = bytearray(zlib.decompress(self._packed)), None
            self._text += lines
            self._size += len(lines)

    def since(self, mark: int) -> tuple[bytes, int]:
        """The lines after a mark, 0 for all of them, and the mark of their end."""
        with self._lock:
            if mark == self._size:
                return b"", mark
            text = self._text if self._packed is None else zlib.decompress(self._packed)
            return bytes(text[mark:]), self._size

    def pack(self) -> None:
        """The query has ended: take less room."""
        with self._lock:
            if self._packed is None:
                self._packed, self._text = zlib.compress(bytes(self._text), 1), bytearray()
