"""Bring a write to a bucket to its end: done or undone, by its own program or by one that finds it later.

A bucket has no step that changes several objects. So a write has an outcome, an object that is written once. Until it
says *done*, everything can be undone: uploads that were not completed are given up, and objects that were are removed.
From then on, everything is carried through: what the write replaces is removed. Both can be repeated at will, by
several programs at once.

A program that was only stopped may wake after its write was undone. Its uploads are gone, so it completes nothing; and
if it had completed all of them, the outcome is there already, or its plan is gone.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

from wallaby.node.process_identity import has_ended, this_process
from wallaby.tables.objects.bucket import Bucket
from wallaby.tables.objects.layout import WRITES, UploadNote, WriteFolder, inside

_log = logging.getLogger(__name__)
#: How often a program renews the sign of its write, and after how long a silence others end the write. A program
#: that was alive but silent finds its write undone, and says so; no row is lost or doubled.
BEAT_SECONDS: Final = 20.0
SILENCE_SECONDS: Final = 120.0
_AT_ONCE: Final = 16
_OURS: Final = re.compile(r"/part-\d{5}-(?P<job>[0-9a-f-]{36})(?:-\d+)?-[0-9a-f]{16}-c\d+\.[\w.]*$")
_DONE: Final = "done"
_UNDONE: Final = "undone"
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What publishing changes."""

    #: The new files: their names, and the uploads that will be completed.
    new: tuple[tuple[str, str], ...]
    #: The keys of the objects that they replace.
    old: tuple[str, ...]
    #: The claim of the write's key, if it has one.
    claim: str | None

    @classmethod
    def read(cls, body: bytes) -> PublishPlan:
        """Decode a plan."""
        said = json.loads(body)
        new = tuple((name, upload) for name, upload in said["new"])
        return cls(new, tuple(said["old"]), said["claim"])

    def encoded(self) -> bytes:
        """The plan as it is stored."""
        return json.dumps(asdict(self)).encode()


def each(act: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Act on several items at once; an error of one is raised when all have been tried."""
    with ThreadPoolExecutor(_AT_ONCE, "wallaby-publish") as pool:
        return [begun.result() for begun in [pool.submit(act, item) for item in items]]


def writer_sign() -> bytes:
    """The content of the sign that a write of this process is in progress, different each time."""
    return json.dumps({"driver": this_process(), "sign": secrets.token_hex(8)}).encode()


def decide(folder: WriteFolder, *, done: bool) -> bool:
    """Settle whether a write is done; returns the outcome, which another program may have settled before."""
    said = {"outcome": _DONE if done else _UNDONE, "by": secrets.token_hex(8)}
    if folder.bucket.put_new(folder.outcome, json.dumps(said).encode()):
        return done
    found = folder.bucket.get(folder.outcome)
    return found is not None and json.loads(found.body)["outcome"] == _DONE


def carry_through(folder: WriteFolder, plan: PublishPlan) -> None:
    """Remove the files that a completed write replaces, and its traces."""
    each(folder.bucket.delete, plan.old)
    if plan.claim is not None:
        mark_claim(folder.bucket, plan.claim, done=True)
    _remove_traces(folder)


def undo(folder: WriteFolder) -> None:
    """Remove the files that an undone write has published, and its traces."""
    plan = _plan(folder)
    if plan is not None:
        each(lambda file: _take_back(folder, *file), plan.new)
        if plan.claim is not None:
            mark_claim(folder.bucket, plan.claim, done=False)
    _remove_traces(folder)


def settle(folder: WriteFolder) -> None:
    """Bring a write to its end whose program has ended or fallen silent."""
    if not decide(folder, done=False):
        undo(folder)
        return
    plan = _plan(folder)
    if plan is not None:
        carry_through(folder, plan)
    else:
        _remove_traces(folder)


def recover(bucket: Bucket, table: str) -> frozenset[str]:
    """Settle the writes to a table whose programs have ended; returns the jobs of the others."""
    prefix = inside(table, f"{WRITES}/")
    jobs = {key.removeprefix(prefix).partition("/")[0] for key in bucket.keys(prefix)}
    alive = set()
    for job in sorted(jobs):
        folder = WriteFolder(bucket, table, job)
        if is_alive(folder):
            alive.add(job)
        else:
            _log.info("a write to %s that was cut off is settled: %s", table, job)
            settle(folder)
    for job, key, upload in _our_uploads(bucket, table):
        if job not in alive and not is_alive(WriteFolder(bucket, table, job)):
            bucket.abort(key, upload)
    return frozenset(alive)


def _our_uploads(bucket: Bucket, table: str) -> Iterator[tuple[str, str, str]]:
    """Job, key and id of the TaskManagers' uploads to a table."""
    for key, upload in bucket.uploads(inside(table, "")):
        ours = _OURS.search(f"/{key}")
        if ours:
            yield ours["job"], key, upload


def is_alive(folder: WriteFolder) -> bool:
    """Does the program of a write seem to be alive?"""
    found = folder.bucket.get(folder.writer)
    if found is None or found.age_seconds > SILENCE_SECONDS:
        return False
    return not has_ended(json.loads(found.body)["driver"])


def claim_note(key: str, job: str, *, done: bool | None = None) -> bytes:
    """The content of a claim of a key; `done` is not known before the write has ended."""
    return json.dumps({"key": key, "job": job, "done": done}).encode()


def mark_claim(bucket: Bucket, claim: str, *, done: bool) -> None:
    """Note how the write of a claim ended."""
    found = bucket.get(claim)
    if found is not None:
        bucket.put(claim, json.dumps(json.loads(found.body) | {"done": done}).encode())


def _plan(folder: WriteFolder) -> PublishPlan | None:
    found = folder.bucket.get(folder.plan)
    return None if found is None else PublishPlan.read(found.body)


def _take_back(folder: WriteFolder, name: str, upload: str) -> None:
    """Give up an upload, so that it can never be completed, and remove its object if it was completed."""
    key = folder.file(name)
    folder.bucket.abort(key, upload)
    if folder.bucket.size(key) is not None:
        folder.bucket.delete(key)


def _remove_traces(folder: WriteFolder) -> None:
    """Remove the sign first and the outcome last; see this module and `tables/objects/uploading.py`."""
    bucket = folder.bucket
    bucket.delete(folder.writer)
    mine = [found for job, *found in _our_uploads(bucket, folder.table) if job == folder.job]
    each(lambda found: bucket.abort(*found), mine)
    notes = list(bucket.keys(folder.notes))
    each(lambda note: _remove_note(folder, note), notes)
    bucket.delete(folder.plan)
    bucket.delete(folder.outcome)


def _remove_note(folder: WriteFolder, note: str) -> None:
    """Remove the note of a file, and the upload that it names: not every server lists uploads by the folder."""
    name = note.removeprefix(folder.notes).removesuffix(".json")
    found = folder.bucket.get(note)
    if found is not None:
        with suppress(ValueError, KeyError):  # what is not a note names no upload
            folder.bucket.abort(folder.file(name), UploadNote.read(found.body).upload)
    folder.bucket.delete(note)
