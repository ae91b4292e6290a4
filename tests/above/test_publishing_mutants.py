"""Publishing, broken on purpose as a developer might break it: the grid of `test_publishing.py` must notice each way.

A mutant is an edit of the source, made from outside: for one test, the functions that it changes get the code of the
edited source. An edit that no longer fits the code is an error, too.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from tests.above import test_keys, test_publishing
from tests.above.test_publishing import CASES, Killer, changes_by_libc, killer

from wallaby.above import staging
from wallaby.errors import WriteError
from wallaby_lab.simulation.mutants.mutant import Mutant, source_of

__all__ = ["changes_by_libc", "killer"]

KEYS, PLACES, PUBLISHING, RENAMES, STAGING = (
    f"wallaby.above.{name}" for name in ("keys", "places", "publishing", "renames", "staging")
)
#: What a broken write ends in: a table that is not what it should be, or an error where none may be.
CAUGHT = (AssertionError, OSError, ValueError, WriteError, pytest.fail.Exception)


def mutant(name: str, what: str, module: str, before: str, after: str) -> Mutant:
    return Mutant(name, what, (), module, before, after)


MUTANTS = (
    mutant(
        "places-before-the-note",
        "Places change before the note says which ones will.",
        PLACES,
        "        self._write_note()\n        for place in self._places:\n            self._change(place)\n",
        "        for place in self._places:\n            self._change(place)\n        self._write_note()\n",
    ),
    mutant(
        "note-in-pieces",
        "The note is written under its own name, so half of it may be found.",
        PLACES,
        'made = self._note.with_name(f"{self._note.name}.{secrets.token_hex(4)}")',
        "made = self._note",
    ),
    mutant(
        "old-content-gone",
        "What a place had is deleted when its new content comes, not kept.",
        PLACES,
        "            there.rename(goes)\n",
        "            there.unlink() if there.is_file() else __import__('shutil').rmtree(there)\n",
    ),
    mutant(
        "old-content-not-put-back",
        "Undoing takes new content away and does not put the old one back.",
        PLACES,
        "            before.rename(there)\n",
        "            pass\n",
    ),
    mutant(
        "new-content-left",
        "Undoing leaves new content where it is.",
        PLACES,
        "if place.new and _number(there) == place.new:",
        "if place.new and _number(there) != place.new:",
    ),
    mutant(
        "done-and-undone",
        "A write whose key says that it is done is undone because its note is still there.",
        PLACES,
        'if said["key"] is None or not is_done(Path(said["key"])):',
        "if True:",
    ),
    mutant(
        "keyed-not-undone",
        "A write with a key is never undone.",
        PLACES,
        'if said["key"] is None or not is_done(Path(said["key"])):',
        'if said["key"] is None:',
    ),
    mutant(
        "empty-folders-left",
        "Undoing leaves the folders of partitions that it empties.",
        PLACES,
        "        self._remove_empty(there.parent)\n",
        "        pass\n",
    ),
    mutant(
        "key-not-noted",
        "Places change although no note of the key says that they might.",
        PUBLISHING,
        "            if self._key is not None and self._table.exists():\n                self._key.note()\n",
        "",
    ),
    mutant(
        "new-table-without-key",
        "A table that is replaced as a whole comes without the note that its write is done.",
        PUBLISHING,
        "            self._key.put_done(new)\n",
        "            pass\n",
    ),
    mutant(
        "other-keys-forgotten",
        "A table that is replaced as a whole loses the keys of earlier writes.",
        PUBLISHING,
        "            shutil.copytree(self._table / FOLDER, new / FOLDER)\n",
        "            pass\n",
    ),
    mutant(
        "final-before-the-key",
        "A write becomes final before its key says so.",
        PUBLISHING,
        "            if self._key is not None:\n"
        "                self._key.finish()\n"
        "            self._places.finish()\n",
        "            self._places.finish()\n"
        "            if self._key is not None:\n"
        "                self._key.finish()\n",
    ),
    mutant(
        "key-never-done",
        "A key never says that its write is done.",
        PUBLISHING,
        "                self._key.finish()\n",
        "                pass\n",
    ),
    mutant(
        "everything-published",
        "Whatever is in the folder of the workers is published, committed or not.",
        PUBLISHING,
        "            self._staging.new.mkdir()\n",
        "            self._staging.new.mkdir()\n"
        "            made = self._staging.made\n"
        "            files = [(path.name, path.stat().st_size) for path in made.iterdir() if path.is_file()]\n",
    ),
    mutant(
        "new-files-of-partitions-only",
        "Where the whole table changes in its place, only what was there before is replaced.",
        PUBLISHING,
        "return sorted(there | {path.name for path in self._staging.new.iterdir()})",
        "return sorted(there)",
    ),
    mutant(
        "not-taken-back",
        "A write that fails after its one step leaves the new table.",
        PUBLISHING,
        "            self._take_back()\n",
        "            pass\n",
    ),
    mutant(
        "failed-places-left",
        "A write that fails while places change leaves those that have.",
        PUBLISHING,
        "            self._places.undo()\n",
        "            pass\n",
    ),
    mutant(
        "recovered-from-the-living",
        "The writes of living drivers are taken for those of dead ones.",
        STAGING,
        "                if is_dead:\n",
        "                if is_dead or True:\n",
    ),
    mutant(
        "removed-before-undone",
        "What a dead driver left is removed before its write is undone.",
        STAGING,
        "                    Places.undo_noted(table, staging.new, staging.old, staging.note)\n"
        "                    staging.remove()\n",
        "                    staging.remove()\n"
        "                    Places.undo_noted(table, staging.new, staging.old, staging.note)\n",
    ),
    mutant(
        "owned-by-nobody",
        "A staging folder does not say which process owns it.",
        STAGING,
        '        (self.root / _DRIVER).write_text(this_process(), encoding="utf-8")\n',
        "",
    ),
    mutant(
        "registered-too-late",
        "A write is registered for the next engine only when it has made a folder.",
        STAGING,
        "        _register(self)\n        self.root.mkdir(parents=True, exist_ok=True)\n",
        "        self.root.mkdir(parents=True, exist_ok=True)\n        _register(self)\n",
    ),
    mutant(
        "registrations-stay",
        "The registration of a write outlives it.",
        STAGING,
        "            _registration(self.root).unlink()\n",
        "            pass\n",
    ),
    mutant(
        "unfinished-key-stays",
        "The note of a write that was cut off is not removed before the write is repeated.",
        KEYS,
        "            self.path.unlink(missing_ok=True)\n        if not any(",
        "            pass\n        if not any(",
    ),
    mutant(
        "two-notes",
        "A note of a key replaces that of another writer.",
        KEYS,
        "            if new:\n",
        "            if new and False:\n",
    ),
    mutant(
        "folders-count-as-a-table",
        "What a write left that was cut off counts as a table.",
        KEYS,
        'if not any(path.is_file() for path in self.table.rglob("*")):',
        "if False:",
    ),
    mutant(
        "written-over",
        "A file or a table that others have made meanwhile is written over.",
        RENAMES,
        "    if _rename(source, target, _NOREPLACE):\n        return\n",
        "    if source.is_file() or not target.exists() or not __import__('shutil').rmtree(target):\n"
        "        return source.rename(target) and None\n",
    ),
)


#: Some that the first checks notice; `make mutants` runs all.
QUICK = frozenset({"places-before-the-note", "note-in-pieces", "old-content-gone"})


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, marks=() if mutant.name in QUICK else pytest.mark.mutants, id=mutant.name)
        for mutant in MUTANTS
    ],
)
def test_the_grid_notices_a_broken_write(
    killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mutant: Mutant
) -> None:
    assert list(break_it(mutant, monkeypatch)), "some function has other code"
    with pytest.raises(CAUGHT):
        check_everything(killer, monkeypatch, tmp_path)


@pytest.mark.mutants
def test_the_grid_finds_nothing_wrong_with_the_code_as_it_is(
    killer: Killer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check_everything(killer, monkeypatch, tmp_path)


def break_it(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the functions that a mutant changes their new code; yields their names."""
    module = importlib.import_module(mutant.module)
    edited = compile(mutant.mutate(mutant.module, source_of(mutant.module)), str(module.__file__), "exec")
    codes = {code.co_qualname: code for code in within(edited)}
    for function in functions(module):
        code = codes[function.__code__.co_qualname]
        if code != function.__code__.replace(
            co_firstlineno=code.co_firstlineno, co_linetable=code.co_linetable
        ):
            monkeypatch.setattr(function, "__code__", code)
            yield function.__qualname__


def within(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions in a module's code, with those in classes."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from within(constant)


def functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions that a module defines, with those of its classes."""
    owners = [module, *(each for _, each in inspect.getmembers(module, inspect.isclass))]
    for owner in owners:
        for member in vars(owner).values():
            function = inspect.unwrap(getattr(member, "__func__", member))
            if isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__:
                yield function


def check_everything(killer: Killer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Each check has a folder of its own, and knows the writes in it only."""
    for number, check in enumerate(every_check(killer, monkeypatch)):
        place = folder / f"{number}"
        (place / "known").mkdir(parents=True)
        monkeypatch.setattr(staging, "_registrations", partial(Path, place, "known"))
        check(place)


def every_check(killer: Killer, patch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """The grid, and the checks of keys and of writers beside each other; those that take least come first."""
    yield test_publishing.test_a_table_that_others_made_meanwhile_is_added_to
    yield partial(test_publishing.test_a_driver_that_lives_is_left_alone, patch)
    yield partial(test_publishing.test_a_write_is_found_by_its_folder_where_it_was_not_registered, patch)
    yield test_keys.test_of_two_writers_one_is_refused_before_it_publishes
    yield test_keys.test_folders_without_files_do_not_count_as_a_table
    yield test_keys.test_a_write_that_fails_leaves_no_key
    for case in CASES:
        given_up = test_publishing.test_a_write_that_is_given_up_after_publishing_leaves_the_table_as_it_was
        yield partial(given_up, patch, case=case, keyed=True)
        fails = test_publishing.test_a_write_that_fails_at_any_change_leaves_the_table_as_it_was
        yield partial(fails, killer, patch, case=case)
        for keyed in (False, True):
            killed = test_publishing.test_a_write_that_is_killed_at_any_change_is_whole_or_never_was
            yield partial(killed, killer, patch, case=case, keyed=keyed)
