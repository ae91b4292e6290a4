"""Scratch directories: one for each TaskManager, named after its process, so that leftovers can be recognized.

Everything that a TaskManager writes is inside its scratch directory, and is removed with it. The same holds for the
files that Spark hands over to a driver's engine (`spark.leaves.directory`). A killed process leaves its directory
behind, most often inside one that Spark removes; otherwise the next TaskManager or engine on that host sweeps it. The
name contains the host, the process id and the process's start time, so that a new process with a reused id is not taken
for the owner. Directories with the name of another host are left alone, because the parent directory may be shared.
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
#: The names of the directories that Spark makes below `spark.local.dir`; ours is in the innermost.
_SPARKS = re.compile(r"(?:blockmgr|executor|spark)-[0-9a-f-]{36}")
_PATTERNS = (
    f"{PREFIX}*",
    f"blockmgr-*/{PREFIX}*",
    f"spark-*/blockmgr-*/{PREFIX}*",
    f"spark-*/executor-*/blockmgr-*/{PREFIX}*",
    f"{LEAF_PREFIX}*",
)


def make_scratch(parent: Path, prefix: str = PREFIX) -> Path:
    """Make a directory of this process in `parent`, readable by its owner only."""
    parent.mkdir(parents=True, exist_ok=True)
    pid = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{host_name()}-{pid}-{started(pid)}-", dir=parent))


def remove_scratch(directory: Path) -> None:
    """Remove a scratch directory and its contents."""
    shutil.rmtree(directory, ignore_errors=True)


def leftovers(directory: Path) -> Iterator[Path]:
    """The scratch directories of dead processes of this host, in a local directory or in Spark's below it."""
    base = _base(directory)
    for pattern in _PATTERNS:
        for found in base.glob(pattern):
            match = _NAME.fullmatch(found.name)
            if match is None or match["host"] != host_name() or not _is_ours(found):
                continue
            if started(int(match["pid"])) != int(match["start"]):
                yield found


def sweep(directory: Path) -> tuple[Path, ...]:
    """Remove the leftovers; returns what was found."""
    found = tuple(leftovers(directory))
    for path in found:
        _log.info("removing %s, left behind by a dead process", path)
        shutil.rmtree(path, ignore_errors=True)
    return found


def _base(directory: Path) -> Path:
    """The configured directory, above those that Spark makes."""
    while _SPARKS.fullmatch(directory.name) and directory.parent != directory:
        directory = directory.parent
    return directory


def _is_ours(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not path.is_symlink()
