"""Publishing, cut off at every single change of the file system: the table is the old one or the new one.

The grid is whole: a write is run once for each change that it makes, and dies right before it. A process that was
killed changes nothing more, so no clean-up runs. What is left is what the next writer finds.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wallaby.above import keys, places, publishing, renames, staging
from wallaby.above.keys import FOLDER, WriteKey
from wallaby.above.places import Places
from wallaby.above.publishing import Publication
from wallaby.above.staging import recover
from wallaby.errors import WriteError
from wallaby.node.process_identity import this_process

#: A process of this host that has certainly ended.
DEAD = this_process().rsplit(" ", 1)[0] + " 1"
CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chmod", "shutil.rmtree"}


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Counts the changes of the file system, and ends the process before one of them."""

    def __init__(self) -> None:
        self.before: int | None = None
        self.count = 0
        self.is_on = False
        self.look: Callable[[], None] = lambda: None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event in CHANGES or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        ):
            self.step()

    def step(self) -> None:
        self.is_on = False
        self.look()
        self.is_on = True
        if self.before is not None and self.count >= self.before:
            raise Killed
        self.count += 1

    @contextmanager
    def over(self, before: int | None, look: Callable[[], None]) -> Iterator[None]:
        self.before, self.count, self.look, self.is_on = before, 0, look, True
        try:
            yield
        finally:
            self.is_on = False


@pytest.fixture(scope="module")
def killer() -> Killer:
    return Killer()


@pytest.fixture(autouse=True)
def changes_by_libc(killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Python reports no calls of the C library's, so we do."""
    rename = renames._rename

    def reported(*arguments: Any) -> bool:
        if killer.is_on:
            killer.step()
        return rename(*arguments)

    monkeypatch.setattr(renames, "_rename", reported)

    def torn(file: int) -> None:
        """Of a file that is being written when the process ends, half may be there."""
        try:
            if killer.is_on:
                killer.step()
        except Killed:
            if stat.S_ISREG(os.fstat(file).st_mode):
                os.ftruncate(file, os.fstat(file).st_size // 2)
            raise

    monkeypatch.setattr(os, "fsync", torn)
    (tmp_path / "known").mkdir()
    monkeypatch.setattr(staging, "_registrations", lambda: tmp_path / "known")


@dataclass(frozen=True)
class Case:
    """A write: the files of the table before, the new ones, and what Spark says of it."""

    name: str
    before: tuple[str, ...]
    files: tuple[str, ...]
    after: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    dynamic: bool = False
    exchanges: bool = True
    #: Can readers see nothing in between?
    atomic: bool = False


CASES = (
    Case("new", (), ("a", "b"), ("a", "b"), atomic=True),
    Case("new partitions", (), ("p=1/a", "p=2/b"), ("p=1/a", "p=2/b"), atomic=True),
    Case("overwrite", ("x", "p=1/y"), ("a", "p=2/b"), ("a", "p=2/b"), (".",), atomic=True),
    Case("overwrite by nothing", ("x", "p=1/y"), (), (), (".",), atomic=True),
    Case(
        "overwrite without exchange", ("x", "p=1/y"), ("a", "p=1/b"), ("a", "p=1/b"), (".",), exchanges=False
    ),
    Case("append", ("x", "p=1/y"), ("p=1/a", "p=3/q=4/b"), ("x", "p=1/y", "p=1/a", "p=3/q=4/b")),
    Case("one partition", ("p=1/q=1/x", "p=2/y"), ("p=1/q=2/a",), ("p=2/y", "p=1/q=2/a"), ("p=1",)),
    Case("emptied partition", ("p=1/x", "p=2/y"), (), ("p=2/y",), ("p=1",)),
    Case("fresh partition", ("p=2/y",), ("p=1/a",), ("p=2/y", "p=1/a"), ("p=1",)),
    Case("dynamic", ("p=1/x", "p=2/y"), ("p=1/a", "p=3/b"), ("p=2/y", "p=1/a", "p=3/b"), dynamic=True),
    Case("dynamic without exchange", ("p=1/x",), ("p=1/a",), ("p=1/a",), dynamic=True, exchanges=False),
)


def visible(table: Path) -> set[str]:
    """The files that readers see."""
    found = (path.relative_to(table) for path in table.rglob("*") if path.is_file())
    return {str(path) for path in found if not any(part[0] in "._" for part in path.parts)}


def put(folder: Path, name: str) -> int:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    return (folder / name).write_bytes(name.encode())


def make_table(table: Path, case: Case) -> None:
    for name in case.before:
        put(table, name)
    if case.before:
        (table / FOLDER).mkdir()
        (table / FOLDER / "other.json").write_text('{"key": "o", "driver": "", "done": true}')
    (table / "_temporary" / "0").mkdir(parents=True)  # as Spark does before its tasks begin


def write(table: Path, case: Case, *, keyed: bool, job: str = "j1") -> bool:
    """What one program does, from the key to the end. False if the key says that there is nothing to do."""
    key = WriteKey(table, "monday") if keyed else None
    if key is not None:
        recover(table)
        if not key.begin():
            return False
    sparks = table / f".spark-staging-{job}"
    publication = Publication(
        table,
        job,
        sparks,
        deleted=[table / name for name in case.deleted],
        dynamic=case.dynamic,
        existed=bool(case.before),
        key=key,
    )
    files = [(f"{name}.{job}", put(publication.folder, f"{name}.{job}")) for name in case.files]
    put(publication.folder, "never-committed")
    publication.stage(files)
    publication.publish()
    publication.finish()
    return True


def after(case: Case, job: str = "j1") -> set[str]:
    return {f"{name}.{job}" if name in case.files else name for name in case.after}


def is_clean(table: Path) -> bool:
    """Is nothing left of any write beside the table, in it, or among the known ones?"""
    left = [*table.glob(".spark-staging-*"), *table.parent.glob(f".{table.name}.*")]
    left += [folder for folder in table.rglob("*=*") if folder.is_dir() and not any(folder.iterdir())]
    return not left and not list((table.parent / "known").iterdir())


def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (places, publishing, staging):
        monkeypatch.setattr(module, "exchange", lambda *_: False)


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_write_that_is_killed_at_any_change_is_whole_or_never_was(
    killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: Case, *, keyed: bool
) -> None:
    if not case.exchanges:
        without_exchange(monkeypatch)
    table = tmp_path / "t"
    outcomes = set()
    for before in range(1000):
        shutil.rmtree(table, ignore_errors=True)
        make_table(table, case)
        old, new = set(case.before), after(case)

        def look(old: set[str] = old, new: set[str] = new) -> None:
            if case.atomic:
                assert visible(table) in (old, new)

        try:
            with monkeypatch.context() as patch, killer.over(before, look):
                for module in (keys, staging):
                    patch.setattr(module, "this_process", lambda: DEAD)
                write(table, case, keyed=keyed)
            break
        except Killed:
            pass
        if keyed:  # the same program again
            changed = write(table, case, keyed=True, job="j2")
            assert visible(table) == after(case, "j2" if changed else "j1"), before
            assert not write(table, case, keyed=True, job="j3")
        else:
            recover(table)
            changed = visible(table) == old
            assert changed or visible(table) == new, before
        outcomes.add(changed)
        staging.recover_known()
        assert is_clean(table), before
        assert not case.before or (table / FOLDER / "other.json").exists()
    assert before > 10
    assert visible(table) == after(case)
    assert is_clean(table)
    assert outcomes == {True, False} or not case.after, (
        "some ends come before the change that counts, and some after"
    )


def test_without_recovery_half_a_write_would_stay(
    killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.name == "append")
    found = set()
    monkeypatch.setattr(Places, "undo_noted", lambda *_: None)
    for before in range(60):
        table = tmp_path / f"t{before}"
        make_table(table, case)
        with monkeypatch.context() as patch, suppress(Killed), killer.over(before, lambda: None):
            patch.setattr(staging, "this_process", lambda: DEAD)
            write(table, case, keyed=False)
        recover(table)
        found.add(frozenset(visible(table)))
    assert found > {frozenset(case.before), frozenset(after(case))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_write_that_fails_at_any_change_leaves_the_table_as_it_was(
    killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: Case
) -> None:
    """As on a full disk: one change is refused, and what comes after it works."""
    if not case.exchanges:
        without_exchange(monkeypatch)
    table, refused = tmp_path / "t", 0
    for number in range(1000):
        shutil.rmtree(table, ignore_errors=True)
        make_table(table, case)

        def refuse(number: int = number) -> None:
            if killer.count == number:
                killer.count += 1
                raise OSError(28, "No space left on device")

        publication = Publication(
            table,
            "j1",
            table / ".spark-staging-j1",
            deleted=[table / name for name in case.deleted],
            dynamic=case.dynamic,
            existed=bool(case.before),
        )
        try:
            publication.stage([(name, put(publication.folder, name)) for name in case.files])
            with killer.over(None, refuse):
                publication.publish()
        except WriteError:
            refused += 1
        else:
            publication.finish()
            break
        publication.abandon()
        shutil.rmtree(table / "_temporary", ignore_errors=True)  # as Spark does when it gives up
        assert visible(table) == set(case.before), number
        assert is_clean(table), number
    assert refused
    assert visible(table) == set(case.after)


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_write_that_is_given_up_after_publishing_leaves_the_table_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: Case, *, keyed: bool
) -> None:
    """Spark may still fail: what it does itself comes after publishing."""
    if not case.exchanges:
        without_exchange(monkeypatch)
    table = tmp_path / "t"
    make_table(table, case)
    with monkeypatch.context() as patch:
        patch.setattr(Publication, "finish", Publication.abandon)
        assert write(table, case, keyed=keyed)
    assert visible(table) == set(case.before)
    assert is_clean(table)
    assert write(table, case, keyed=keyed, job="j2")
    assert visible(table) == after(case, "j2")


def test_a_write_is_found_by_its_folder_where_it_was_not_registered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Drivers need not share a folder for temporary files."""
    case = next(case for case in CASES if case.name == "append")
    table = tmp_path / "t"
    make_table(table, case)
    with monkeypatch.context() as patch:
        patch.setattr(staging, "this_process", lambda: DEAD)
        patch.setattr(Publication, "finish", _die)
        with pytest.raises(Killed):
            write(table, case, keyed=False)
    for path in (tmp_path / "known").iterdir():
        path.unlink()
    assert recover(table)
    assert visible(table) == set(case.before)
    assert is_clean(table)


def test_the_next_engine_finds_what_a_killed_driver_left(
    killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.name == "dynamic")
    table = tmp_path / "t"
    make_table(table, case)
    with monkeypatch.context() as patch:
        patch.setattr(staging, "this_process", lambda: DEAD)
        patch.setattr(Publication, "finish", _die)
        with pytest.raises(Killed):
            write(table, case, keyed=False)
    assert visible(table) == after(case)
    staging.recover_known()
    assert visible(table) == set(case.before)
    assert is_clean(table)


def _die(*_: Any) -> None:
    raise Killed


def test_a_driver_that_lives_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "t"
    put(table, "x")
    publication = Publication(table, "j1", table / ".spark-staging-j1")
    (table / ".spark-staging-of-spark").mkdir()
    assert not recover(table)
    staging.recover_known()
    assert publication.folder.exists()
    assert (table / ".spark-staging-of-spark").exists()
    publication.abandon()
    assert visible(table) == {"x"}


def test_a_table_that_others_made_meanwhile_is_added_to(tmp_path: Path) -> None:
    table = tmp_path / "t"
    publication = Publication(table, "j1", table / ".spark-staging-j1", existed=False)
    assert publication.is_whole
    publication.stage([("a", put(publication.folder, "a"))])
    put(table, "of-another")
    publication.publish()
    publication.finish()
    assert visible(table) == {"a", "of-another"}
    assert (table / "_SUCCESS").exists()
    assert is_clean_but_registrations(table)


def is_clean_but_registrations(table: Path) -> bool:
    return not list(table.parent.glob(f".{table.name}.*"))


def test_a_table_that_is_bound_to_its_place_is_changed_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    put(table, "x")

    def refuse(one: Path, other: Path) -> bool:
        raise OSError(errno.EXDEV, "Invalid cross-device link", str(one), None, str(other))

    publication = Publication(table, "j1", table / ".spark-staging-j1", deleted=[table])
    publication.stage([("a", put(publication.folder, "a"))])
    monkeypatch.setattr(publishing, "exchange", refuse)
    publication.publish()
    publication.finish()
    assert visible(table) == {"a"}
    assert (table / "_SUCCESS").exists()


def test_a_link_to_a_table_stays_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real", "x")
    (tmp_path / "t").symlink_to(tmp_path / "real")
    table = tmp_path / "t"
    publication = Publication(table, "j1", table / ".spark-staging-j1", deleted=[table])
    assert not publication.is_whole
    publication.stage([("a", put(publication.folder, "a"))])
    publication.publish()
    publication.finish()
    assert table.is_symlink()
    assert visible(tmp_path / "real") == {"a"}
