"""The event log of one query, as a file. Writing it never fails a query: a full disk ends the log, with a warning.

The file has a size limit. Beyond it only the head's own events are written, which are few.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path
from typing import Final, TextIO

from wallaby.errors import ConfigurationError
from wallaby.lineage.names import QueryId
from wallaby.observe.event import SUFFIX, VERSION, Event, EventKind, encode, make

_log = logging.getLogger(__name__)
LOG_BYTES_MAX: Final = 256 << 20
_KEY: Final = "spark.wallaby.eventLog.dir"


class EventLog:
    """One file, open until `close`. Any thread may use it."""

    def __init__(self, path: Path, query: QueryId, bytes_max: int = LOG_BYTES_MAX) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._written_bytes = 0
        self._cut = False
        self._file: TextIO | None = path.open("x", encoding="utf-8")
        self.write(make(EventKind.LOG, time.time(), version=VERSION, query=query))

    def write(self, event: Event) -> None:
        """Write an event of the head."""
        with self._lock:
            self._put(encode(event) + "\n")

    def write_lines(self, lines: bytes) -> None:
        """Write whole lines, as a worker has encoded them."""
        with self._lock:
            if not self._cut and self._written_bytes + len(lines) > self._bytes_max:
                self._cut = True
                self._put(encode(make(EventKind.CUT, time.time(), bytes_max=self._bytes_max)) + "\n")
            if not self._cut:
                self._put(lines.decode("utf-8", "replace"))

    def read(self) -> list[Event]:
        """The events so far; none if the file is gone."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        except OSError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _put(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            _log.warning("stopped writing the event log %s: %s", self.path, error.strerror)
            self._file.close()
            self._file = None
        self._written_bytes += len(text)


def log_directory(text: str) -> Path | None:
    """The directory of the setting, created if necessary; None if the setting is empty.

    Raises:
        ConfigurationError: it is not a local directory, or cannot be written.
    """
    if not text:
        return None
    fix = "Name a directory on the driver's machine that can be written, or leave it empty."
    if "://" in text and not text.startswith("file:///"):
        raise ConfigurationError(f"{_KEY} = {text} is not a local directory.", fix=fix, key=_KEY)
    directory = Path(text.removeprefix("file://"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".wallaby-{time.time_ns()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigurationError(f"{_KEY} = {text}: {error.strerror}.", fix=fix, key=_KEY) from error
    return directory


def open_log(directory: Path | None, query: QueryId) -> EventLog | None:
    """Open a new log in the directory; None without a directory, or if it cannot be opened."""
    if directory is None:
        return None
    path = directory / f"{time.strftime('%Y%m%dT%H%M%S')}-{query}{SUFFIX}"
    try:
        return EventLog(path, query)
    except OSError as error:
        _log.warning("query %s has no event log: %s", query, error)
        return None
