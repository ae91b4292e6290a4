"""Locate the files of a table in a bucket, and what a write keeps beside them while it lasts.

Readers of tables ignore names that begin with an underscore. A write has a folder of such a name in the table:

- `writer.json`: the write is in progress. A task looks for it after each file that it has made, and takes the file back
  if it is gone.
- `files/…`: a note for every file, with the upload that has all of its parts.
- `plan.json`: what publishing changes; written before anything is published.
- `outcome.json`: whether the write is done or undone. It is written once, and the first one counts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from wallaby.tables.objects.bucket import Bucket

#: The folder of all writes of a table.
WRITES: Final = "_wallaby_writes"


@dataclass(frozen=True, slots=True)
class UploadNote:
    """A file whose parts are all there: its upload, the tags of the parts, and its bytes."""

    upload: str
    tags: tuple[str, ...]
    size_bytes: int

    @classmethod
    def read(cls, body: bytes) -> UploadNote:
        """Decode a note."""
        said = json.loads(body)
        return cls(said["upload"], tuple(said["tags"]), said["size_bytes"])

    def encoded(self) -> bytes:
        """The note as it is stored."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True)
class WriteFolder:
    """The objects of one write."""

    bucket: Bucket
    #: The key of the table's folder, without a slash at its end; empty for the whole bucket.
    table: str
    job: str

    @classmethod
    def of(cls, bucket: Bucket, path: str) -> WriteFolder:
        """From `path`, as a write target has it; the bucket's name is its first part."""
        table, _, job = path.rpartition(f"/{WRITES}/")
        return cls(bucket, table.partition("/")[2], job)

    @property
    def path(self) -> str:
        """The bucket and the folder, for a write target."""
        return "/".join(filter(None, (self.bucket.name, self.table, WRITES, self.job)))

    @property
    def writer(self) -> str:
        """The sign that the write is in progress."""
        return self._of_write("writer.json")

    @property
    def plan(self) -> str:
        """What publishing changes."""
        return self._of_write("plan.json")

    @property
    def outcome(self) -> str:
        """How the write ended."""
        return self._of_write("outcome.json")

    @property
    def notes(self) -> str:
        """The folder of the notes of files."""
        return self._of_write("files/")

    def note(self, name: str) -> str:
        """The note of a file."""
        return f"{self.notes}{name}.json"

    def file(self, name: str) -> str:
        """A file of the table."""
        return inside(self.table, name)

    def _of_write(self, name: str) -> str:
        return inside(self.table, f"{WRITES}/{self.job}/{name}")


def inside(folder: str, name: str) -> str:
    """The key of something in a folder."""
    return f"{folder}/{name}" if folder else name
