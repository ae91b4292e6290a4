"""Writes to a bucket that happen once: a key is claimed in the folder of the table before anything is published.

A claim is an object that only one program can make. Claims of a key are numbered, and none is ever removed: a write
that was undone leaves its claim with a note that says so, and the next one takes the next number. So of two programs
that find the same claim undone, one gets the next.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Final

from wallaby.above.keys import FOLDER, write_conflict
from wallaby.above.objects.settling import claim_note, mark_claim, recover
from wallaby.errors import WriteError
from wallaby.tables.objects.bucket import Bucket
from wallaby.tables.objects.layout import WRITES, inside
from wallaby.tables.parquet_writing import cannot_write

_log = logging.getLogger(__name__)
_TEMPORARY: Final = "_temporary/"


class ObjectKey:
    """One write to one table in a bucket under a key."""

    def __init__(self, bucket: Bucket, table: str, key: str) -> None:
        self._bucket, self._table, self._key = bucket, table, key
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        self._claims = inside(table, f"{FOLDER}/{name}.")
        self._number = 0
        #: The claim of this write, once it has one.
        self.claim: str | None = None

    def begin(self) -> bool:
        """Settle interrupted writes, and prepare the table for this one; False if its rows are there already.

        Raises:
            WriteError: another program is writing under this key, or the bucket cannot be reached.
        """
        try:
            return self._begin()
        except OSError as error:
            raise cannot_write(self._table, error) from error

    def _begin(self) -> bool:
        alive = recover(self._bucket, self._table)
        claims = sorted(self._bucket.keys(self._claims))
        last = self._bucket.get(claims[-1]) if claims else None
        self._number = len(claims)
        if last is not None:
            said = json.loads(last.body)
            if said["done"]:
                _log.info(
                    "nothing is written to %s: it already has the rows of the key %r", self._table, self._key
                )
                return False
            if said["done"] is None and said["job"] in alive:
                raise self._conflict()
        self._remove_markers()
        return True

    def _remove_markers(self) -> None:
        """Remove what Hadoop has made of a table without files, because some modes refuse a table that is there."""
        folder, hidden = inside(self._table, ""), (FOLDER, WRITES)
        found = [
            name
            for key in self._bucket.keys(folder)
            if not (name := key.removeprefix(folder)).startswith(hidden)
        ]
        if all(name.endswith("/") or not name or name.startswith(_TEMPORARY) for name in found):
            for name in found:
                self._bucket.delete(folder + name)

    def note(self, job: str) -> None:
        """Claim the key: all files are made, and none is published yet.

        Raises:
            WriteError: another program has claimed it meanwhile.
        """
        claim = f"{self._claims}{self._number:06}.json"
        if not self._bucket.put_new(claim, claim_note(self._key, job)):
            raise self._conflict()
        self.claim = claim

    def is_done(self) -> bool:
        """Has this write, or another program for it, noted that it is done?"""
        found = None if self.claim is None else self._bucket.get(self.claim)
        return found is not None and bool(json.loads(found.body)["done"])

    def give_up(self) -> None:
        """Note that the write was undone; it may be repeated."""
        if self.claim is not None:
            mark_claim(self._bucket, self.claim, done=False)

    def _conflict(self) -> WriteError:
        return write_conflict(
            self._table, self._key, "Wait until it has ended; two minutes after its end the key is free."
        )
