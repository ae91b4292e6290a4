"""Publish the files of a write: all of them or none, whatever ends the driver.

If the table is new or replaced as a whole, the files are staged beside it, and one rename puts the new folder in its
place: a reader sees the old table or the new one. Otherwise the files are staged in the table, and its places change
one by one (`places.py`); what a killed driver has changed by then is put back by the next write or the next engine.
Until all is done, everything that was there before is still there.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from wallaby.above.keys import FOLDER, WriteKey
from wallaby.above.places import Places
from wallaby.above.renames import exchange, rename_to_new
from wallaby.above.staging import Staging, recover
from wallaby.errors import InternalError
from wallaby.tables.parquet_writing import cannot_write

#: The names that Hadoop's committers make in the folder of a table: while they work, and at the end.
_WORKING: Final = "_temporary"
_SUCCESS: Final = "_SUCCESS"
#: Why a folder cannot take the place of another one, although what is in it can: others have made one, or it is bound
#: to its place.
_IN_THE_WAY: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.EXDEV, errno.EBUSY})
#: A whole table, as something to be replaced.
_ALL: Final = "."


class Publication:
    """The files of one write on their way into a table."""

    def __init__(
        self,
        table: Path,
        job: str,
        sparks: Path,
        *,
        deleted: Iterable[Path] = (),
        dynamic: bool = False,
        existed: bool = True,
        marked: bool = True,
        key: WriteKey | None = None,
    ) -> None:
        """Make the folder that TaskManagers write to.

        `sparks` is the staging folder that Spark has for the write. Spark wants to have `deleted` what the new files
        replace; with `dynamic`, those are the partitions that new files are in. If it is to be `marked`, a table that
        is replaced as a whole gets the sign of success.

        Raises:
            WriteError: the file system refuses it.
        """
        self._table, self._key = table, key
        self._dynamic, self._existed, self._marked = dynamic, existed, marked
        self._replaced = tuple(str(path.relative_to(table)) for path in deleted)
        self._files: tuple[str, ...] = ()
        self._places: Places | None = None
        self._has_replaced = False
        self._is_over = False
        try:
            recover(table)
            self._staging = self._staged(job, sparks)
        except OSError as error:
            raise cannot_write(str(table), error) from error
        #: Does one step publish everything?
        self.is_whole = self._staging.is_beside

    def _staged(self, job: str, sparks: Path) -> Staging:
        if not self._dynamic and (not self._existed or _ALL in self._replaced):
            beside = Staging.beside(self._table, job)
            if beside is not None:
                if not self._existed:
                    self._remove_what_spark_made()
                return beside
        inside = Staging.inside(self._table, sparks)
        inside.claim()
        return inside

    def _remove_what_spark_made(self) -> None:
        """Remove the empty folder that Spark made for a new table, which appears only with its rows."""
        shutil.rmtree(self._table / _WORKING, ignore_errors=True)
        with suppress(OSError):  # it is gone, or somebody else writes to it as well
            self._table.rmdir()

    @property
    def folder(self) -> Path:
        """The folder that TaskManagers write to."""
        return self._staging.made

    def stage(self, files: Sequence[tuple[str, int]]) -> None:
        """Take the committed files, by their names and sizes, out of everything that was made.

        Raises:
            WriteError: the file system refuses it.
        """
        try:
            self._staging.new.mkdir()
            for name, size_bytes in files:
                place = self._staging.new / name
                place.parent.mkdir(parents=True, exist_ok=True)
                (self._staging.made / name).rename(place)
                if place.stat().st_size != size_bytes:
                    raise InternalError(f"The file {place} is not the one that was committed.")
        except OSError as error:
            raise cannot_write(str(self._table), error) from error
        self._files = tuple(name for name, _ in files)

    def publish(self) -> None:
        """Put the files into the table.

        Raises:
            WriteError: the file system refuses it, or another program writes under the same key. Nothing has changed.
        """
        try:
            if self._key is not None and self._table.exists():
                self._key.note()
            if not self.is_whole or not self._replace():
                self._change_places()
        except OSError as error:
            self.abandon()
            raise cannot_write(str(self._table), error) from error

    def _replace(self) -> bool:
        """Put the new folder in the place of the table's; False if others have made a table where there was none."""
        new = self._staging.new
        if self._marked:
            (new / _SUCCESS).touch()
        if (self._table / FOLDER).is_dir():
            shutil.copytree(self._table / FOLDER, new / FOLDER)
        if self._key is not None:
            self._key.put_done(new)
        try:
            if self._existed and self._table.exists():
                new.chmod(self._table.stat().st_mode & 0o7777)
                self._has_replaced = exchange(new, self._table)
            else:
                rename_to_new(new, self._table)
                self._has_replaced = True
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
        if self._has_replaced:
            if self._key is not None:
                self._key.forget()
            return True
        shutil.rmtree(new / FOLDER, ignore_errors=True)
        if self._key is not None and not self._key.path.exists():
            self._key.note()
        return False

    def _change_places(self) -> None:
        staging, key = self._staging, None if self._key is None else self._key.path
        self._places = Places.of(self._table, staging.new, staging.old, staging.note, self._names(), key)
        self._places.publish()

    def _names(self) -> list[str]:
        """The names of the places that change."""
        if _ALL in self._replaced:
            there = {path.name for path in self._table.iterdir() if not _stays(path.name)}
            return sorted(there | {path.name for path in self._staging.new.iterdir()})
        if self._dynamic:
            return sorted({str(Path(name).parent) for name in self._files})
        marks = [_SUCCESS] if (self._staging.new / _SUCCESS).exists() else []
        kept = [
            name
            for name in self._files
            if not any(Path(each) in Path(name).parents for each in self._replaced)
        ]
        return [*self._replaced, *kept, *marks]

    def finish(self) -> None:
        """Make the write final, and delete the old files."""
        if self._is_over:
            return
        self._is_over = True
        if self._places is not None:
            if self._key is not None:
                self._key.finish()
            self._places.finish()
        self._staging.remove()

    def abandon(self) -> None:
        """Roll the write back: the table is as it was before."""
        if self._is_over:
            return
        self._is_over = True
        if self._places is not None:
            self._places.undo()
        elif self._has_replaced:
            self._take_back()
        if self._key is not None:
            self._key.give_up()
        self._staging.remove()

    def _take_back(self) -> None:
        if self._staging.new.exists():
            exchange(self._staging.new, self._table)
        else:
            self._table.rename(self._staging.new)


def _stays(name: str) -> bool:
    """Does an entry stay in a table whose rows are all replaced? Keys and staging folders do."""
    return name in (FOLDER, _WORKING) or name.startswith(".spark-staging-")
