"""Ctrl-C cancels the user's jobs, but not the TaskManagers.

PySpark's own handler cancels every job of the application, including the TaskManagers: each Ctrl-C would cost the
engine all its workers. This handler cancels only the other jobs. It does so on a separate thread, because the
interrupted thread may be in the middle of a call into the JVM, on a connection that takes one call at a time. Such a
call is not aborted either: Py4J would close every idle connection of the process, and the JVM would continue. Its jobs
are cancelled, so it ends soon, and `KeyboardInterrupt` is raised right after; a second Ctrl-C does not wait.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: An interrupted program continues after this time, even if Spark has not answered.
CANCEL_SECONDS = 2.0
#: While an interrupted call has not ended, its jobs are cancelled this often: it may start another.
AGAIN_SECONDS = 0.1
_CANCEL, _END = b"c", b"e"


def spare_on_interrupt(context: SparkContext, tag: str) -> Callable[[], None]:
    """Replace PySpark's handler by one that spares jobs with a tag. Returns how to undo that.

    A handler that is not PySpark's, such as a notebook's, stays.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    is_pysparks = getattr(before, "__qualname__", "").startswith("SparkContext.")
    if not is_pysparks or threading.current_thread() is not threading.main_thread():
        return lambda: None
    gateway: Any = context._gateway
    canceller = Canceller(lambda: _cancel_others(context, tag), lambda: calls.interrupted)
    calls = MainThreadCalls(gateway._gateway_client, canceller.wait)

    def interrupted(_number: int, _frame: object) -> None:
        if calls.interrupt():
            canceller.ask()
            return
        try:
            canceller.cancel()
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)

    def undo() -> None:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is interrupted
        ):
            signal.signal(signal.SIGINT, before)
            calls.end()
            canceller.end()

    return undo


class MainThreadCalls:
    """The main thread's calls through a Py4J client: an interrupt waits for the end of a call."""

    def __init__(self, client: Any, settle: Callable[[], None] = lambda: None) -> None:
        """`settle` waits until cancelling has ended, so that the program's next jobs are not cancelled."""
        self._client = client
        self._settle = settle
        self._send = client.send_command
        self._depth = 0
        #: Is there an interrupted call that has not ended?
        self.interrupted = False
        client.send_command = self._send_whole

    def interrupt(self) -> bool:
        """Called in a signal handler: interrupt a running call at its end. False without one, or the second time."""
        if self.interrupted or not self._depth:
            self.interrupted = False
            return False
        self.interrupted = True
        return True

    def end(self) -> None:
        """Restore the client."""
        if self._client.__dict__.get("send_command") == self._send_whole:
            del self._client.send_command

    def _send_whole(self, *arguments: Any, **named: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return self._send(*arguments, **named)
        self._depth += 1
        try:
            return self._send(*arguments, **named)
        finally:
            self._depth -= 1
            if self.interrupted and not self._depth:
                self.interrupted = False
                self._settle()
                raise KeyboardInterrupt


class Canceller:
    """A thread that cancels on request of a signal handler. The handler takes no lock: it uses pipes."""

    def __init__(self, do: Callable[[], None], again: Callable[[], bool] = lambda: False) -> None:
        self._do = do
        self._again = again
        self._asked, self._ask = os.pipe()
        self._done, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="wallaby-interrupt", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Request cancelling, repeated as long as necessary."""
        while select.select([self._done], [], [], 0)[0]:
            os.read(self._done, 1)  # of one that was not waited for
        os.write(self._ask, _CANCEL)

    def wait(self) -> None:
        """Wait a limited time until the request is done."""
        if select.select([self._done], [], [], CANCEL_SECONDS)[0]:
            os.read(self._done, 1)

    def cancel(self) -> None:
        """Cancel, and wait for it."""
        self.ask()
        self.wait()

    def end(self) -> None:
        """Stop cancelling."""
        os.write(self._ask, _END)
        self._thread.join(CANCEL_SECONDS)

    def _serve(self) -> None:
        try:
            while os.read(self._asked, 1) == _CANCEL:
                self._do()
                while self._again():
                    self._do()
                    time.sleep(AGAIN_SECONDS)
                os.write(self._tell, _CANCEL)
        finally:
            for end in (self._asked, self._ask, self._done, self._tell):
                os.close(end)


def _cancel_others(context: SparkContext, tag: str) -> None:
    jsc: Any = context._jsc
    if jsc is None:
        return
    try:
        tracker = jsc.sc().statusTracker()
        ours = set(tracker.getJobIdsForTag(tag))
        for job in set(tracker.getActiveJobIds()) - ours:
            jsc.sc().cancelJob(job)
    except (Py4JError, OSError) as error:
        _log.debug("cancelling jobs failed: %s", type(error).__name__)
