"""The directory in which Spark hands rows over to the engine: one for each driver process, with one for each query.

It must be the same for the driver and all executors. On one host any local directory will do; several hosts need
`spark.wallaby.leaf.dir`, on storage that they share. Its name identifies its owner (`worker.scratch`), so that the next
engine on that host can remove what a killed driver leaves behind.
"""

from __future__ import annotations

import atexit
import threading
import uuid
from pathlib import Path

from wallaby.config.settings import Settings
from wallaby.errors import HandOverError
from wallaby.relations.reason import Reason
from wallaby.spark.cluster import Cluster
from wallaby.worker.scratch import LEAF_PREFIX, make_scratch, remove_scratch, sweep


class LeafDirectory:
    """The directory of one engine, made when it is first needed."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        local = settings.local_directory or cluster.local_directories()
        self._is_shared = bool(settings.leaf_dir) or cluster.is_one_host
        self._parent = Path(settings.leaf_dir or local.split(",")[0])
        self._root: Path | None = None
        self._lock = threading.Lock()
        if settings.leaf_dir:
            sweep(self._parent)

    @property
    def reason(self) -> Reason | None:
        """Why Spark cannot hand rows over; None if it can."""
        if self._is_shared:
            return None
        return Reason(
            "Spark leaf",
            "there is no directory that all hosts share",
            "set spark.wallaby.leaf.dir to one",
        )

    def make(self) -> Path:
        """Make a directory for one query."""
        try:
            with self._lock:
                if self._root is None:
                    self._root = make_scratch(self._parent, LEAF_PREFIX)
                    atexit.register(self.close)
            directory = self._root / uuid.uuid4().hex[:12]
            directory.mkdir()
        except OSError as error:
            raise HandOverError(f"{self._parent} cannot be written to: {error}") from error
        return directory

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            root, self._root = self._root, None
        if root is not None:
            atexit.unregister(self.close)
            remove_scratch(root)
