"""The process between Wallaby and its embedded `redis-server`, which makes sure that no server is orphaned.

`embedded.py` runs this file as a script. It reads one line of JSON from standard input, starts the server,
and then watches three things until one of them ends: the pipe from its parent (closed by `stop`, or by the
kernel when the parent is killed), its parent's process id (a process forked from the parent may hold the
pipe open after the parent is gone), and the server itself. Whatever ends first, the server is stopped and
its private directory is removed. If the watcher itself is killed, the kernel kills the server with it.

The kernel could kill the server directly with its parent. But that signal is tied to the *thread* that started the
child, and drivers start processes on threads that end. The watcher has a single thread as long as it lives.

It writes to standard output, one JSON object per line: `started` with the server's process id, `ready`, and
`exited` with the server's exit status and the end of its log. Nothing else, so the pipe never fills.

It uses only the standard library, and nothing of Wallaby: it is started with `python -I -S`.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: How often to check whether the parent is still the parent; the pipe usually shows it at once.
PARENT_CHECK_SECONDS = 0.5
#: How much of the server's log is kept.
LOG_LINES_KEPT = 40
LOG_LINE_BYTES = 500
#: What Redis logs when it has bound its port and serves it.
READY_MARK = b"Ready to accept connections"
#: From <linux/prctl.h>: deliver a signal to this process when its parent thread ends.
PR_SET_PDEATHSIG = 1


def die_with_this_process() -> Callable[[], None]:
    """Run in the child before it becomes the server: let the kernel kill it when the watcher ends."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    watcher = os.getpid()

    def before_exec() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != watcher:  # the watcher died before the line above took hold
            os._exit(1)

    return before_exec


def tell(**message: object) -> None:
    """Send one message to the parent, if it is still there."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


class Log:
    """The end of the server's log, and whether the server has logged that it is ready."""

    def __init__(self, read_fd: int) -> None:
        self.read_fd = read_fd
        self.ready = False
        self._partial = b""
        self._lines: collections.deque[bytes] = collections.deque(maxlen=LOG_LINES_KEPT)

    def read(self) -> bool:
        """Read what is available; False when the server has closed its end, which means that it has ended."""
        chunk = os.read(self.read_fd, 65536)
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        self._partial = self._partial[:LOG_LINE_BYTES]
        for line in lines:
            self._lines.append(line[:LOG_LINE_BYTES])
            self.ready = self.ready or READY_MARK in line
        return bool(chunk)

    def tail(self) -> list[str]:
        """The last lines, oldest first."""
        return [line.decode(errors="replace") for line in [*self._lines, self._partial] if line.strip()]


def read_order() -> dict[str, Any]:
    """Read the line of JSON that says what to start."""
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    return order


def watch(parent: int, log: Log) -> None:
    """Return when the parent closed the pipe, when the parent is gone, or when the server ended."""
    order_fd = sys.stdin.fileno()
    told_ready = False
    while os.getppid() == parent:
        readable, _, _ = select.select([order_fd, log.read_fd], [], [], PARENT_CHECK_SECONDS)
        if order_fd in readable and not os.read(order_fd, 1):
            return
        if log.read_fd in readable and not log.read():
            return
        if log.ready and not told_ready:
            told_ready = True
            tell(event="ready")


def end(server: subprocess.Popen[bytes], log: Log, grace_seconds: float) -> None:
    """Ask the server to end, then kill it; both within a time limit."""
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(grace_seconds)
    while select.select([log.read_fd], [], [], 0)[0] and log.read():
        pass


def main() -> None:
    """Start the server that standard input describes and stay until it, or the parent, ends."""
    order = read_order()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    os.umask(0o077)
    grace_seconds = float(order["grace_seconds"])
    try:
        server = subprocess.Popen(  # noqa: S603 - the path comes from the wheel or from the caller
            order["command"],
            cwd=order["directory"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_this_process(),  # noqa: PLW1509 - there is one thread here
        )
        assert server.stdin is not None
        assert server.stdout is not None
        log = Log(server.stdout.fileno())
        try:
            with contextlib.suppress(BrokenPipeError):  # it ended before it had read its settings
                server.stdin.write(order["config"].encode())
                server.stdin.close()
            tell(event="started", pid=server.pid)
            watch(int(order["parent"]), log)
        finally:
            end(server, log, grace_seconds)
            tell(event="exited", status=server.returncode, log=log.tail())
    except OSError as error:
        tell(event="exited", status=None, log=[str(error)])
    finally:
        shutil.rmtree(order["directory"], ignore_errors=True)


if __name__ == "__main__":
    main()
