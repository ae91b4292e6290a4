"""An engine's registration in a durable store that it shares with other engines, and that outlives it.

While its driver lives, an engine periodically writes a small object to its folder, which names the owner of the folder
and the maximum age of the object. At the end the folder is removed. If the driver was killed, the next engine removes
the folder: at once if the driver was a process of the same host that no longer exists; otherwise once the object is too
old or, if there is none, once nothing has been written for a day. Ages are measured by the store's own clock.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading

import pyarrow as pa

from wallaby.config.settings import Settings
from wallaby.errors import ConfigurationError, DurableStoreError
from wallaby.exchange.durable import DurableStore, new_folder
from wallaby.lineage.tolerance import Tolerance
from wallaby.node.process_identity import has_ended, this_process

_log = logging.getLogger(__name__)
ALIVE = "alive"
#: The maximum age for a folder that does not state one.
ABANDONED_SECONDS = 86_400.0
#: How often the object is written within its maximum age.
RENEWALS = 8
#: How long the end waits for the sweeping thread.
END_SECONDS = 5.0


class DurableStoreRegistration:
    """A registration; see the module. It begins with the constructor, and ends at the latest with the interpreter."""

    def __init__(self, store: DurableStore, abandoned_seconds: float = ABANDONED_SECONDS) -> None:
        self.store = store
        self._abandoned_seconds = abandoned_seconds
        self._over = threading.Event()
        store.require_writable()
        self._renew()
        self._thread = threading.Thread(
            target=self._renew_for_ever, name="wallaby-store-registration", daemon=True
        )
        self._thread.start()
        atexit.register(self.end)

    def end(self) -> None:
        """Remove the folder; if the durable store does not answer, another engine removes it."""
        if not self._over.is_set():
            self._over.set()
            atexit.unregister(self.end)
            self._thread.join(END_SECONDS)
            self.store.remove()

    def _renew_for_ever(self) -> None:
        try:
            self._sweep()
        except DurableStoreError as error:
            _log.info("the durable store was not swept: %s", error)
        while not self._over.wait(self._abandoned_seconds / RENEWALS):
            try:
                self._renew()
            except DurableStoreError as error:
                _log.info("the registration in the durable store was not renewed: %s", error)

    def _renew(self) -> None:
        said = {"abandoned_seconds": self._abandoned_seconds, "process": this_process()}
        self.store.write(ALIVE, [pa.py_buffer(json.dumps(said).encode())])

    def _sweep(self) -> None:
        """Remove the folders of engines whose drivers are gone."""
        now = self.store.written_at(ALIVE)
        for other in self.store.engines():
            if now is None or self._over.is_set():
                return
            if other.folder != self.store.folder and is_abandoned(other, now):
                _log.info("removing %s from the durable store, left behind by a dead driver", other.folder)
                other.remove()


def register_in_durable_store(settings: Settings, tolerance: Tolerance) -> DurableStoreRegistration | None:
    """Register a folder in the durable store, if the policy needs one.

    Raises:
        ConfigurationError: no store is configured, or it cannot be written to and read from.
    """
    if not tolerance.uses_durable_store:
        return None
    if not settings.fault_tolerance_store:
        raise ConfigurationError(
            f"The fault-tolerance policy {settings.fault_tolerance_policy} needs a durable store.",
            fix="Set spark.wallaby.faultTolerance.store to a directory that all hosts reach.",
            key="spark.wallaby.faultTolerance.store",
        )
    store = DurableStore(settings.fault_tolerance_store, new_folder())
    return DurableStoreRegistration(store, settings.fault_tolerance_abandoned_after)


def is_abandoned(folder: DurableStore, now_seconds: float) -> bool:
    """Is the engine of this folder gone, at this time of the durable store's clock?"""
    written_at = folder.written_at(ALIVE)
    try:
        said = json.loads(folder.read(ALIVE).to_pybytes()) if written_at is not None else {}
        process, abandoned_seconds = str(said["process"]), float(said["abandoned_seconds"])
    except (DurableStoreError, ValueError, KeyError, TypeError):
        # It was partly removed, or workers wrote to it after its removal.
        process, abandoned_seconds, written_at = "", ABANDONED_SECONDS, folder.last_written_at()
    if has_ended(process):
        return True
    return written_at is not None and now_seconds - written_at > abandoned_seconds
