"""An engine's registration in a Redis that it shares with other engines, and that outlives it.

While its driver lives, an engine maintains a key there that expires by itself. At its end it removes all its keys; if
its driver was killed, the next engine does so, once that key has expired. Keys also expire when the server's clock
jumps, so an engine whose TaskManagers still renew their leases is left alone, whatever has expired.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from wallaby.errors import GcsError
from wallaby.gcs.keys import EVERY_KEY, WorkerKeys, alive_key, engine_of, engine_prefix

if TYPE_CHECKING:
    from wallaby.gcs.connection import Connection

_log = logging.getLogger(__name__)
#: An engine whose driver has been silent for this long is gone, and its keys may be removed.
ALIVE_SECONDS = 60
#: How long an engine that seems to be gone is observed: by default, workers renew their leases several times meanwhile.
LOOK_SECONDS = 1.0
#: How many keys are removed with one command.
REMOVE_COUNT = 500


class Registration:
    """An engine's registration; see the module. It begins with the constructor."""

    def __init__(
        self,
        connection: Connection,
        engine: str,
        formerly: tuple[str, ...] = (),
        alive_seconds: int = ALIVE_SECONDS,
    ) -> None:
        """`formerly` are names that the engine itself has given up, whose keys need not wait until they expire."""
        self._connection = connection
        self._engine = engine
        self._alive_seconds = alive_seconds
        self._over = threading.Event()
        self._renew()
        for name in formerly:
            _remove(connection, connection.find_keys(f"{engine_prefix(name)}*"))
        sweep_keys(connection)
        self._thread = threading.Thread(target=self._renew_for_ever, name="wallaby-registration", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Remove all keys; if Redis does not answer, the next engine removes them."""
        self._over.set()
        self._thread.join()
        try:
            _remove(self._connection, self._connection.find_keys(f"{engine_prefix(self._engine)}*"))
        except GcsError as error:
            _log.info("keys of %s are left in Redis: %s", self._engine, type(error).__name__)

    def _renew_for_ever(self) -> None:
        while not self._over.wait(self._alive_seconds / 3):
            try:
                self._renew()
            except GcsError as error:
                _log.debug("the registration was not renewed: %s", type(error).__name__)

    def _renew(self) -> None:
        self._connection.command("SET", alive_key(self._engine), "1", "EX", self._alive_seconds)


def sweep_keys(connection: Connection) -> int:
    """Remove the keys of engines whose drivers are gone; returns the number of keys."""
    by_engine: dict[str, list[bytes]] = {}
    for key in connection.find_keys(EVERY_KEY):
        by_engine.setdefault(engine_of(key), []).append(key)
    silent = [engine for engine in by_engine if not connection.command("EXISTS", alive_key(engine))]
    if not silent:
        return 0
    before = {engine: _leases(connection, engine) for engine in silent}
    if any(before.values()):
        time.sleep(LOOK_SECONDS)
    gone = [engine for engine in silent if _leases(connection, engine) == before[engine]]
    return sum(_remove(connection, by_engine[engine]) for engine in gone)


def _leases(connection: Connection, engine: str) -> object:
    return connection.command("HGETALL", WorkerKeys.of(engine).leases)


def _remove(connection: Connection, keys: list[bytes]) -> int:
    return sum(
        connection.command("UNLINK", *keys[first : first + REMOVE_COUNT])
        for first in range(0, len(keys), REMOVE_COUNT)
    )
