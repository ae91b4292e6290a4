"""Writes that happen once: a key, noted in the folder of the table, says that its rows are there.

Before anything of a write is published, its key is noted in a file that only one writer can create. When all of it is
published, the note says that it is done; where the table is replaced as a whole, the new one comes with a note that
says so already. A program that is run again finds the note. If it says done, nothing is written. If not, the write was
cut off, and what it had published is rolled back first (`staging.recover`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from wallaby.errors import WriteError
from wallaby.node.process_identity import has_ended, this_process
from wallaby.tables.parquet_writing import cannot_write

_log = logging.getLogger(__name__)
#: Readers of tables ignore what begins with an underscore.
FOLDER: Final = "_wallaby_keys"


@dataclass(frozen=True, slots=True)
class _Note:
    """The note of a key in its table's folder."""

    key: str
    #: The process that writes, or wrote.
    driver: str
    done: bool

    @classmethod
    def read(cls, path: Path) -> _Note | None:
        """Read the note in a file; None if the file does not exist."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(found["key"], found["driver"], found["done"])

    def write(self, path: Path, *, new: bool) -> None:
        """Write the note to the disk; with `new`, raise FileExistsError if the file exists."""
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            with made.open("x", encoding="utf-8") as file:
                json.dump(asdict(self), file)
                file.flush()
                os.fsync(file.fileno())
            if new:
                os.link(made, path)
            else:
                made.replace(path)
        finally:
            made.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def is_done(path: Path) -> bool:
    """Does the note in this file say that its write is done?"""
    found = _Note.read(path)
    return found is not None and found.done


class WriteKey:
    """One write to one table under a key."""

    def __init__(self, table: Path, key: str) -> None:
        self.table = table
        self._key = key
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        self.path = table / FOLDER / f"{name}.json"
        self._noted: _Note | None = None

    def begin(self) -> bool:
        """Prepare the table, after recovery, for this write; False if the rows of the write are there already.

        Raises:
            WriteError: another program is writing under this key.
        """
        found = _Note.read(self.path)
        if found is not None and found.done:
            _log.info(
                "nothing is written to %s: it already has the rows of the key %r", self.table, self._key
            )
            return False
        if found is not None:
            if found.driver != this_process() and not has_ended(found.driver):
                raise self._conflict()
            self.path.unlink(missing_ok=True)
        if not any(path.is_file() for path in self.table.rglob("*")):
            # An interrupted write has made the folder, and some modes refuse a table that exists.
            shutil.rmtree(self.table, ignore_errors=True)
        return True

    def note(self) -> None:
        """Note that all files are made and none is published yet.

        Raises:
            WriteError: another program has written under this key meanwhile, or no file can be written.
        """
        noted = _Note(self._key, this_process(), done=False)
        try:
            noted.write(self.path, new=True)
        except FileExistsError as error:
            raise self._conflict() from error
        except OSError as error:
            raise cannot_write(str(self.path.parent), error) from error
        self._noted = noted

    def put_done(self, folder: Path) -> None:
        """Note that this write is done, in the folder that will replace the table."""
        _Note(self._key, this_process(), done=True).write(folder / FOLDER / self.path.name, new=False)

    def finish(self) -> None:
        """Note that everything is published."""
        if self._noted is not None:
            replace(self._noted, done=True).write(self.path, new=False)
            self._noted = None

    def give_up(self) -> None:
        """Delete the note of a failed write, of which nothing is published; it may be repeated."""
        if self._noted is not None:
            self._noted = None
            self.path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Forget the note: the table was replaced by one with the note of `put_done`."""
        self._noted = None

    def _conflict(self) -> WriteError:
        fix = f"Wait until it has ended. If it ended on another host, delete {self.path}."
        return write_conflict(str(self.table), self._key, fix)


def write_conflict(table: str, key: str, fix: str) -> WriteError:
    """The error of a write while another program writes under the same key."""
    return WriteError(f"Another program is writing to {table} under the key {key!r}.", fix=fix)
