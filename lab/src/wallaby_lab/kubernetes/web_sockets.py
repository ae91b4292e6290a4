"""The server's side of a WebSocket (RFC 6455), as far as a watch needs it: text goes out, a close comes in."""

from __future__ import annotations

import base64
import hashlib
import threading
from typing import BinaryIO, Final

_MAGIC: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_FINAL: Final = 0x80


def accepted_key(key: str) -> str:
    """What proves to a client that its handshake was understood."""
    digest = hashlib.sha1(f"{key}{_MAGIC}".encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


class WebSocket:
    """A connection after its handshake. Reading and writing may be done by two threads."""

    def __init__(self, reads: BinaryIO, writes: BinaryIO) -> None:
        self._reads, self._writes = reads, writes
        self._writing = threading.Lock()
        #: Has either side ended the connection?
        self.over = threading.Event()

    def send(self, text: bytes) -> None:
        """Send one message."""
        self._frame(_TEXT, text)

    def close(self) -> None:
        """Say that nothing more will come."""
        if not self.over.is_set():
            self.over.set()
            self._frame(_CLOSE, (1000).to_bytes(2, "big"))

    def read_to_end(self) -> None:
        """Answer pings until the client closes or has gone."""
        try:
            while (frame := self._read()) is not None:
                code, content = frame
                if code == _PING:
                    self._frame(_PONG, content)
                if code == _CLOSE:
                    self.close()
                    return
        except (OSError, ValueError):
            pass  # the connection is broken, or the server has closed it
        finally:
            self.over.set()

    def _frame(self, code: int, content: bytes) -> None:
        size = len(content)
        if size < 126:
            head = bytes((_FINAL | code, size))
        elif size < 1 << 16:
            head = bytes((_FINAL | code, 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((_FINAL | code, 127)) + size.to_bytes(8, "big")
        with self._writing:
            self._writes.write(head + content)
            self._writes.flush()

    def _read(self) -> tuple[int, bytes] | None:
        """One frame of the client, which are masked and short; None at the end."""
        head = self._reads.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(self._reads.read(2 if size == 126 else 8), "big")
        mask = self._reads.read(4) if head[1] & 0x80 else bytes(4)
        content = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self._reads.read(size)))
        return head[0] & 0xF, content
