"""Renew the sign that a write is in progress, for as long as it is."""

from __future__ import annotations

import logging
import threading

from wallaby.above.objects.settling import BEAT_SECONDS, writer_sign
from wallaby.tables.objects.layout import WriteFolder

_log = logging.getLogger(__name__)


class WriterBeats:
    """A thread that renews the sign that a write is in progress."""

    def __init__(self, folder: WriteFolder) -> None:
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wallaby-write-beats", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            try:
                self._folder.bucket.put(self._folder.writer, writer_sign())
            except OSError as error:  # the next one may arrive; if none does, the write is undone
                _log.warning("cannot renew the sign of a write to %s: %s", self._folder.table, error)

    def stop(self) -> None:
        """Stop, and wait for a request that is under way."""
        self._over.set()
        self._thread.join()
