"""The files of one write on their way into a table in a bucket.

The TaskManagers have sent the parts of all files. Publishing completes the uploads: one request each, and nothing is
copied. In between, readers see some of the new files beside all of the old ones. The old ones are removed when the
outcome of the write is settled (`settling.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from wallaby.above.keys import FOLDER
from wallaby.above.objects.beats import WriterBeats
from wallaby.above.objects.keys import ObjectKey
from wallaby.above.objects.settling import (
    PublishPlan,
    carry_through,
    decide,
    each,
    recover,
    undo,
    writer_sign,
)
from wallaby.errors import InternalError, WriteError
from wallaby.tables.objects.bucket import Bucket
from wallaby.tables.objects.layout import WRITES, UploadNote, WriteFolder, inside
from wallaby.tables.parquet_writing import cannot_write

_log = logging.getLogger(__name__)
#: What stays in a table whose rows are all replaced: keys, other writes, and what Hadoop's committers and Spark keep.
_STAYING = (FOLDER, WRITES, "_temporary", "_SUCCESS", "__magic", ".spark-staging-")


class UnsuitableBucketError(Exception):
    """The server of a bucket lacks what publishing exactly once needs."""


class ObjectPublication:
    """One write to a table in a bucket."""

    #: Readers may see some files before others.
    is_whole = False

    def __init__(
        self,
        bucket: Bucket,
        table: str,
        job: str,
        *,
        replaced: Iterable[str] = (),
        dynamic: bool = False,
        key: ObjectKey | None = None,
    ) -> None:
        """Settle what killed programs have left, and begin a write.

        `replaced` are the folders, within the table, whose files the new ones replace ("" is the whole table); with
        `dynamic`, those are the partitions that new files are in.

        Raises:
            WriteError: the bucket cannot be reached or written to.
            UnsuitableBucketError: its server replaces objects although it is told not to.
        """
        self._write = WriteFolder(bucket, table, job)
        self._replaced, self._dynamic, self._key = tuple(replaced), dynamic, key
        self._files: tuple[tuple[str, UploadNote], ...] = ()
        self._plan: PublishPlan | None = None
        self._is_over = False
        try:
            recover(bucket, table)
            if not _can_be_new(bucket, self._write.writer):
                bucket.delete(self._write.writer)
                raise UnsuitableBucketError(f"the server of {bucket.name} ignores If-None-Match")
        except OSError as error:
            raise cannot_write(str(self.table), error) from error
        self._beats = WriterBeats(self._write)

    @property
    def table(self) -> str:
        """The table, for messages."""
        return f"{self._write.bucket.name}/{self._write.table}"

    @property
    def folder(self) -> str:
        """The folder that TaskManagers write to."""
        return self._write.path

    def stage(self, files: Sequence[tuple[str, int]]) -> None:
        """Take the committed files, by their names and sizes, out of everything that was made.

        Raises:
            WriteError: the bucket refuses it.
        """
        try:
            notes = each(lambda file: self._note(*file), files)
        except OSError as error:
            raise cannot_write(self.table, error) from error
        self._files = tuple((name, note) for (name, _), note in zip(files, notes, strict=True))

    def _note(self, name: str, size_bytes: int) -> UploadNote:
        found = self._write.bucket.get(self._write.note(name))
        if found is None:
            raise OSError(f"the upload of {name} is gone")
        note = UploadNote.read(found.body)
        if note.size_bytes != size_bytes:
            raise InternalError(f"The upload of {name} is not the one that was committed.")
        return note

    def publish(self) -> None:
        """Put the files into the table.

        Raises:
            WriteError: the bucket refuses it, another program has undone the write because this one was silent for too
                long, or another one writes under the same key. Nothing has changed.
        """
        try:
            if self._key is not None:
                self._key.note(self._write.job)
            new = tuple((name, note.upload) for name, note in self._files)
            claim = None if self._key is None else self._key.claim
            self._plan = PublishPlan(new, tuple(self._old()), claim)
            self._write.bucket.put(self._write.plan, self._plan.encoded())
            each(lambda file: self._complete(*file), self._files)
        except OSError as error:
            self.abandon()
            raise cannot_write(self.table, error) from error

    def _old(self) -> Iterable[str]:
        """The keys of the objects that the new files replace."""
        folders = (
            {str(PurePosixPath(name).parent) for name, _ in self._files} if self._dynamic else self._replaced
        )
        for folder in sorted(folders):
            prefix = inside(self._write.table, f"{folder}/" if folder else "")
            for key in self._write.bucket.keys(prefix):
                if not key.removeprefix(prefix).startswith(_STAYING):
                    yield key

    def _complete(self, name: str, note: UploadNote) -> None:
        key = self._write.file(name)
        why = OSError(f"the upload of {name} was given up by another program")
        try:
            if self._write.bucket.complete(key, note.upload, note.tags):
                return
        except OSError as error:
            why = error
        if self._write.bucket.size(key) != note.size_bytes:  # else only the answers were lost
            raise why

    def finish(self) -> None:
        """Make the write final, and remove the old files.

        Raises:
            WriteError: the write was undone by another program; or it is final, but old files are still there.
        """
        if self._is_over:
            return
        plan = self._plan
        assert plan is not None, "only what was published is finished"
        try:
            if not self._is_done():
                self.abandon()
                raise WriteError(
                    f"Another program has undone the write to {self.table}, because this one was silent for too long.",
                    fix="Write again.",
                )
        except OSError as error:
            raise cannot_write(self.table, error) from error
        self._is_over = True
        self._beats.stop()
        try:
            carry_through(self._write, plan)
        except OSError as error:
            if plan.old:
                raise WriteError(
                    f"The new files are in {self.table}, but the old ones could not all be removed: {error}.",
                    fix="Write again, or begin any other write to the table, which removes them first.",
                ) from error
            _log.warning("traces of a write are left in %s until the next one: %s", self.table, error)

    def _is_done(self) -> bool:
        """Settle that the write is done, unless it was undone."""
        bucket = self._write.bucket
        if not decide(self._write, done=True):
            return False
        if bucket.size(self._write.plan) is not None:
            return True
        # Another program took this one for dead: it has undone the write, or carried it through.
        if self._key is not None:
            return self._key.is_done()
        return any(bucket.size(self._write.file(name)) is not None for name, _ in self._files)

    def abandon(self) -> None:
        """Roll the write back: the table is as it was before."""
        if self._is_over:
            return
        self._is_over = True
        self._beats.stop()
        try:
            if decide(self._write, done=False):
                return
            undo(self._write)
            if self._key is not None:
                self._key.give_up()
        except OSError as error:
            _log.warning("a failed write to %s is undone by the next one: %s", self.table, error)


def _can_be_new(bucket: Bucket, key: str) -> bool:
    """Create the sign of a write, and check whether the server refuses to create it a second time."""
    if not bucket.put_new(key, writer_sign()):
        raise OSError(f"{key} is there already")
    # Another program may have taken us for dead and removed the sign; but it does not do so twice in a moment.
    return not (bucket.put_new(key, writer_sign()) and bucket.put_new(key, writer_sign()))
