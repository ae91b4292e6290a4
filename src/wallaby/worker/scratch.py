"""Scratch directories: one for each TaskManager, named after its process, so that leftovers can be told.

Everything that a TaskManager writes is inside its scratch directory, and goes with it. So it is with what Spark
hands over to a driver's engine (`spark.leaves.directory`). A process that is killed leaves its directory behind, most
often inside one that Spark removes; what Spark does not remove is swept by the next TaskManager or engine on that host.
The name holds host, process id and the process's start time, so that a new process with an old id is not taken for the
owner. What belongs to another host, as far as its name says, is left alone: directories may be shared.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wallaby.node.process_identity import host_name, started

_log = logging.getLogger(__name__)
PREFIX = "wallaby-taskmanager-"
LEAF_PREFIX = "wallaby-leaves-"
_NAME = re.compile(rf"(?:{PREFIX}|{LEAF_PREFIX})" r"(?P<host>[\w.]+)-(?P<pid>\d+)-(?P<start>\d+)-\w+")
#: What Spark calls the directories it makes below `spark.local.dir`; ours is in the innermost.
_SPARKS = re.compile(r"(?:blockmgr|executor|spark)-[0-9a-f-]{36}")
_PATTERNS = (
    f"{PREFIX}*",
    f"blockmgr-*/{PREFIX}*",
    f"spark-*/blockmgr-*/{PREFIX}*",
    f"spark-*/executor-*/blockmgr-*/{PREFIX}*",
    f"{LEAF_PREFIX}*",
)


def make_scratch(parent: Path, prefix: str = PREFIX) -> Path:
    """A new directory of this process in `parent`, readable by its owner only."""
    parent.mkdir(parents=True, exist_ok=True)
    pid = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{host_name()}-{pid}-{started(pid)}-", dir=parent))


def remove_scratch(directory: Path) -> None:
    """Remove a scratch directory and what is in it."""
    shutil.rmtree(directory, ignore_errors=True)


def leftovers(directory: Path) -> Iterator[Path]:
    """Scratch directories of dead processes of this host, in a local directory or in Spark's below it."""
    base = _base(directory)
    for pattern in _PATTERNS:
        for found in base.glob(pattern):
            match = _NAME.fullmatch(found.name)
            if match is None or match["host"] != host_name() or not _is_ours(found):
                continue
            if started(int(match["pid"])) != int(match["start"]):
                yield found


def sweep(directory: Path) -> tuple[Path, ...]:
    """Remove the leftovers; what was found."""
    found = tuple(leftovers(directory))
    for path in found:
        _log.info("removing %s, left behind by a dead process", path)
        shutil.rmtree(path, ignore_errors=True)
    return found


def _base(directory: Path) -> Path:
    """The directory that was configured, of which Spark's are below."""
    while _SPARKS.fullmatch(directory.name) and directory.parent != directory:
        directory = directory.parent
    return directory


def _is_ours(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not path.is_symlink()
