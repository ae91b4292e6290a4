"""Folders in a durable store: an engine's goes with it, and what a killed driver left goes when it surely is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.hosting.support import until
from tests.stores import s3

from wallaby.errors import DurableStoreError
from wallaby.exchange.durable import DurableStore, new_folder
from wallaby.node.process_identity import has_ended, started, this_process
from wallaby.spark.durable_registration import (
    ABANDONED_SECONDS,
    ALIVE,
    DurableStoreRegistration,
    is_abandoned,
)

DRIVER = """
import sys
import pyarrow as pa
from wallaby.exchange.durable import DurableStore, new_folder
from wallaby.spark.durable_registration import DurableStoreRegistration

registration = DurableStoreRegistration(DurableStore(sys.argv[1], new_folder()))
registration.store.write("q-1/outputs/a", [pa.py_buffer(b"x")])
print(registration.store.folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["directory", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "directory":
        yield str(tmp_path / "store")
        return
    with s3() as found:
        yield found


def folders(address: str) -> set[str]:
    """The folders of engines in the store."""
    return {found.folder for found in DurableStore(address, "any").engines()}


def folder(address: str, **said: object) -> DurableStore:
    """A folder as an engine leaves it, which says something of itself."""
    found = DurableStore(address, new_folder())
    found.write("q-1/states/a", [pa.py_buffer(b"x")])
    if said:
        found.write(ALIVE, [pa.py_buffer(json.dumps(said).encode())])
    return found


def test_what_a_killed_driver_left_goes_when_the_next_comes_and_what_a_living_one_has_stays(
    address: str,
) -> None:
    living = DurableStoreRegistration(DurableStore(address, new_folder()))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        assert driver.stdout is not None
        theirs = driver.stdout.readline().decode().strip()
        assert not is_abandoned(DurableStore(address, theirs), time.time())
        driver.kill()
        driver.wait(10)
    assert folders(address) == {living.store.folder, theirs}
    another = DurableStoreRegistration(DurableStore(address, new_folder()))
    assert until(lambda: folders(address) == {living.store.folder, another.store.folder})
    living.end()
    another.end()
    assert folders(address) == set()


def test_a_driver_that_ends_without_a_word_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"wallaby-")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("process", ["", "another-host/boot/pid:[1]/0 1 1", "nonsense"])
def test_a_driver_that_cannot_be_seen_is_gone_when_it_was_silent_for_as_long_as_it_said(
    address: str, process: str
) -> None:
    theirs = folder(address, process=process, abandoned_seconds=100)
    written_at = theirs.written_at(ALIVE)
    assert written_at is not None
    assert not is_abandoned(theirs, written_at + 99)
    assert is_abandoned(theirs, written_at + 101)


@pytest.mark.parametrize("said", [{}, {"process": "x"}, {"abandoned_seconds": "soon", "process": ""}])
def test_a_folder_that_says_nothing_is_left_alone_for_a_day(address: str, said: dict[str, object]) -> None:
    theirs = folder(address, **said)
    written_at = theirs.last_written_at()
    assert written_at is not None
    assert not is_abandoned(theirs, written_at + ABANDONED_SECONDS - 1)
    assert is_abandoned(theirs, written_at + ABANDONED_SECONDS + 1)


def test_a_living_driver_is_heard_of(tmp_path: Path) -> None:
    registration = DurableStoreRegistration(DurableStore(str(tmp_path), new_folder()), abandoned_seconds=0.4)
    first = registration.store.written_at(ALIVE)
    assert first is not None
    assert until(lambda: (registration.store.written_at(ALIVE) or 0) > first + 0.4)
    registration.end()
    assert list(tmp_path.iterdir()) == []


def test_only_folders_of_engines_are_swept_and_no_link_is_followed(tmp_path: Path) -> None:
    strangers = [
        tmp_path / name for name in ("wallaby-leaves-x", "wallaby-0", "mine", "wallaby-0123456789AB")
    ]
    for stranger in strangers:
        stranger.mkdir()
        os.utime(stranger, (0, 0))
    gone = folder(str(tmp_path), process=f"{this_process()}1", abandoned_seconds=10**6)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("")
    (tmp_path / gone.folder / "q-1" / "link").symlink_to(precious)
    registration = DurableStoreRegistration(DurableStore(str(tmp_path), new_folder()))
    assert until(lambda: folders(str(tmp_path)) == {registration.store.folder})
    assert all(stranger.is_dir() for stranger in strangers)
    assert (precious / "data").exists()
    registration.end()


def test_a_store_that_cannot_be_swept_is_no_reason_not_to_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: DurableStore) -> None:
        raise DurableStoreError("It cannot be listed.")

    monkeypatch.setattr(DurableStore, "engines", fail)
    registration = DurableStoreRegistration(DurableStore(str(tmp_path), new_folder()), abandoned_seconds=0.4)
    first = registration.store.written_at(ALIVE)
    assert first is not None
    assert until(lambda: (registration.store.written_at(ALIVE) or 0) > first)
    registration.end()


def test_a_process_is_known_to_have_ended_only_if_it_would_be_seen() -> None:
    here = this_process()
    surroundings = here.partition(" ")[0]
    assert here.endswith(f" {os.getpid()} {started(os.getpid())}")
    assert not has_ended(here)
    assert has_ended(f"{here}1"), "an id that another process had before"
    assert has_ended(f"{surroundings} 999999999 5")
    for unknown in ("", " ", surroundings, f"{surroundings} x y", f"{surroundings}0 999999999 5"):
        assert not has_ended(unknown)
