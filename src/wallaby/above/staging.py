"""The folder in which a write is staged, beside its table or in it, and its recovery after a killed driver.

Readers of tables ignore it: its name begins with a dot. In it is the process that owns it. The next writer, or
the next engine on the host, rolls back what a dead process had half published, and removes its folder.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wallaby.above.places import Places
from wallaby.above.renames import exchange
from wallaby.node.process_identity import has_ended, this_process

_log = logging.getLogger(__name__)
_INSIDE: Final = ".spark-staging-*"
_BESIDE: Final = ".{name}.wallaby-{job}"
_DRIVER: Final = "_driver"


@dataclass(frozen=True, slots=True)
class Staging:
    """The staging folder of one write."""

    table: Path
    root: Path

    @classmethod
    def inside(cls, table: Path, root: Path) -> Staging:
        """Stage in the folder that Spark has for the write, which is in the table."""
        return cls(table, root)

    @classmethod
    def beside(cls, table: Path, job: str) -> Staging | None:
        """Stage beside the table, to take the table's place; None where folders cannot be exchanged."""
        staging = cls(table, table.parent / _BESIDE.format(name=table.name, job=job))
        try:
            if table.is_symlink() or os.path.ismount(table):
                return None
            staging.claim()
            staging.old.mkdir()
            if exchange(staging.made, staging.old):
                staging.old.rmdir()
                return staging
        except OSError as error:
            _log.info("a write is staged in its table, not beside it: %s", error)
        staging.remove()
        return None

    @property
    def is_beside(self) -> bool:
        """Can it take the table's place?"""
        return self.root.parent == self.table.parent

    @property
    def made(self) -> Path:
        """The folder for the files that TaskManagers write, whether or not they will be committed."""
        return self.root / "_wallaby"

    @property
    def new(self) -> Path:
        """The folder for the files to publish, named as in the table."""
        return self.root / "_new"

    @property
    def old(self) -> Path:
        """The folder in which the table's old files stay until the write is done."""
        return self.root / "_old"

    @property
    def note(self) -> Path:
        """The note of what publishing changes in the table."""
        return self.root / "_publish.json"

    def claim(self) -> None:
        """Create the folder that TaskManagers write to, and note which process owns it."""
        _register(self)
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / _DRIVER).write_text(this_process(), encoding="utf-8")
        self.made.mkdir()

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.root, ignore_errors=True)
        with suppress(OSError):
            _registration(self.root).unlink()


def recover(table: Path) -> bool:
    """Roll back half-published writes of killed drivers; return whether any were found."""
    found = False
    beside = _BESIDE.format(name=glob.escape(table.name), job="*")
    for root in (*table.glob(_INSIDE), *table.parent.glob(beside)):
        staging = Staging(table, root)
        try:
            with _of_the_dead(staging) as is_dead:
                if is_dead:
                    Places.undo_noted(table, staging.new, staging.old, staging.note)
                    staging.remove()
                    found = True
                    _log.info("removed what a write that was cut off left: %s", root)
        except OSError as error:
            _log.warning(
                "cannot remove the files that an interrupted write left in %s: %s", root, error.strerror
            )
    return found


@contextmanager
def _of_the_dead(staging: Staging) -> Iterator[bool]:
    """Tell whether the owner of a staging folder has ended. In the block, nobody else removes the folder."""
    try:
        folder = os.open(staging.root, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):  # just removed by another
        yield False
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield staging.root.exists() and has_ended(_driver_of(staging.root))
    finally:
        os.close(folder)


def _driver_of(root: Path) -> str:
    """The process that owns a staging folder; empty if Wallaby did not create it."""
    with suppress(FileNotFoundError):
        if said := (root / _DRIVER).read_text(encoding="utf-8"):
            return said
    with suppress(OSError, ValueError, KeyError, TypeError):  # it was killed before it could say so there
        return _known(_registration(root))["driver"]
    return ""


# --- known to the next engine of this user on this host ------------------------------------------------


def recover_known() -> None:
    """Recover the tables to which drivers of this user were writing when they were killed on this host."""
    for path in _registrations().glob("*.json") if _is_ours(_registrations()) else ():
        try:
            said = _known(path)
            if has_ended(said["driver"]):
                recover(Path(said["table"]))
                path.unlink(missing_ok=True)
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.info("cannot tell which write %s is about: %s", path, error)


def _known(path: Path) -> dict[str, str]:
    said = json.loads(path.read_text(encoding="utf-8"))
    return {name: str(said[name]) for name in ("driver", "table")}


def _registrations() -> Path:
    return Path(tempfile.gettempdir()) / f"wallaby-writes-{os.getuid()}"


def _is_ours(folder: Path) -> bool:
    """Whether only this user can write to a folder."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022


def _registration(root: Path) -> Path:
    return _registrations() / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.json"


def _register(staging: Staging) -> None:
    folder = _registrations()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(folder):
            said = {"driver": this_process(), "table": str(staging.table)}
            _registration(staging.root).write_text(json.dumps(said), encoding="utf-8")
    except OSError as error:  # then only the next write to the table finds what this one leaves
        _log.info("a write is not registered: %s", error)
