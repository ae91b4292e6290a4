"""Change several files or partition folders of a table so that an interrupted change can be rolled back.

A *place* is a file or a folder of a partition that is added, removed or replaced. Before the first one changes, a note
lists all of them with their inode numbers, which a rename keeps. So whoever finds the note can tell which places have
changed, and restores what was there before.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wallaby.above.keys import is_done
from wallaby.above.renames import exchange, rename_to_new


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """One place: its name within the table, and the inodes of its old and new content; 0 for none."""

    name: str
    old: int
    new: int


class Places:
    """The places of one table that one write changes. New content comes from `new`; old content goes to `old`."""

    def __init__(
        self,
        table: Path,
        new: Path,
        old: Path,
        note: Path,
        places: Sequence[ChangedPlace],
        key: Path | None = None,
    ) -> None:
        self._table, self._new, self._old, self._note = table, new, old, note
        self._places = tuple(places)
        self._key = key

    @classmethod
    def of(
        cls, table: Path, new: Path, old: Path, note: Path, names: Sequence[str], key: Path | None = None
    ) -> Places:
        """Places by their names, as they are now."""
        places = [ChangedPlace(name, _number(table / name), _number(new / name)) for name in names]
        return cls(table, new, old, note, places, key)

    def publish(self) -> None:
        """Write the note, then change one place after the other.

        Raises:
            OSError: the file system refuses a change, or there is a file where there was none.
        """
        self._write_note()
        for place in self._places:
            self._change(place)

    def undo(self) -> None:
        """Restore every place that was changed, and delete the note."""
        for place in reversed(self._places):
            self._put_back(place)
        self._note.unlink(missing_ok=True)

    def finish(self) -> None:
        """Delete the note: the change is complete and can no longer be rolled back."""
        self._note.unlink(missing_ok=True)

    @classmethod
    def undo_noted(cls, table: Path, new: Path, old: Path, note: Path) -> None:
        """Roll back the change that a note describes, unless the write's key says that it was done."""
        try:
            said = json.loads(note.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        if said["key"] is None or not is_done(Path(said["key"])):
            cls(table, new, old, note, [ChangedPlace(*place) for place in said["places"]]).undo()

    def _write_note(self) -> None:
        said = {
            "key": None if self._key is None else str(self._key),
            "places": [(place.name, place.old, place.new) for place in self._places],
        }
        made = self._note.with_name(f"{self._note.name}.{secrets.token_hex(4)}")
        with made.open("x", encoding="utf-8") as file:
            json.dump(said, file)
            file.flush()
            os.fsync(file.fileno())
        made.replace(self._note)

    def _change(self, place: ChangedPlace) -> None:
        there, comes, goes = self._table / place.name, self._new / place.name, self._old / place.name
        if place.old:
            goes.parent.mkdir(parents=True, exist_ok=True)
        if place.old and place.new and exchange(comes, there):
            comes.rename(goes)
            return
        if place.old:
            there.rename(goes)
        if place.new:
            there.parent.mkdir(parents=True, exist_ok=True)
            rename_to_new(comes, there)

    def _put_back(self, place: ChangedPlace) -> None:
        there, comes, goes = self._table / place.name, self._new / place.name, self._old / place.name
        before = goes if _number(goes) == place.old else comes
        if place.new and _number(there) == place.new:
            if place.old and _number(before) == place.old and exchange(before, there):
                return
            comes.parent.mkdir(parents=True, exist_ok=True)
            there.rename(comes)
        if place.old and not _number(there) and _number(before) == place.old:
            before.rename(there)
        self._remove_empty(there.parent)

    def _remove_empty(self, folder: Path) -> None:
        """Remove the folders that were made for a partition, if they are empty."""
        while folder != self._table:
            with suppress(OSError):
                folder.rmdir()
            folder = folder.parent


def _number(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except (FileNotFoundError, NotADirectoryError):
        return 0
