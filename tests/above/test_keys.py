"""Keys of writes: noted once, taken back if they were cut off, and never by a second writer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wallaby.above.keys import FOLDER, WriteKey, is_done
from wallaby.errors import WriteError

#: A process of this name cannot be seen from here, so nobody knows whether it has ended.
ELSEWHERE = "elsewhere/boot/pid/0 1 1"


def publish(table: Path, *names: str) -> None:
    for name in names:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_bytes(b"rows")


def change_note(table: Path, **facts: object) -> None:
    (path,) = (table / FOLDER).glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def test_the_second_write_under_a_key_does_nothing(tmp_path: Path) -> None:
    key = WriteKey(tmp_path / "t", "monday")
    assert key.begin()
    key.note()
    assert not is_done(key.path)
    publish(tmp_path / "t", "a.parquet")
    key.finish()
    assert is_done(key.path)
    assert not WriteKey(tmp_path / "t", "monday").begin()
    assert WriteKey(tmp_path / "t", "tuesday").begin()
    assert WriteKey(tmp_path / "other", "monday").begin()


def test_a_write_that_was_cut_off_can_be_made_again(tmp_path: Path) -> None:
    table = tmp_path / "t"
    publish(table, "old.parquet")
    key = WriteKey(table, "monday")
    key.begin()
    key.note()
    again = WriteKey(table, "monday")
    assert again.begin()
    again.note()
    again.finish()
    assert is_done(again.path)


def test_a_folder_that_comes_with_its_key_is_done(tmp_path: Path) -> None:
    key = WriteKey(tmp_path / "t", "monday")
    key.begin()
    publish(tmp_path / "new", "a.parquet")
    key.put_done(tmp_path / "new")
    (tmp_path / "new").rename(tmp_path / "t")
    key.give_up()
    assert not WriteKey(tmp_path / "t", "monday").begin()


def test_folders_without_files_do_not_count_as_a_table(tmp_path: Path) -> None:
    (tmp_path / "t" / "_temporary" / "0").mkdir(parents=True)
    assert WriteKey(tmp_path / "t", "monday").begin()
    assert not (tmp_path / "t").exists()
    publish(tmp_path / "t", "_temporary/0/of-another.parquet")
    assert WriteKey(tmp_path / "t", "monday").begin()
    assert (tmp_path / "t").exists()


def test_a_write_that_fails_leaves_no_key(tmp_path: Path) -> None:
    table = tmp_path / "t"
    publish(table, "old.parquet")
    key = WriteKey(table, "monday")
    key.begin()
    key.note()
    key.give_up()
    assert not key.path.exists()
    assert WriteKey(table, "monday").begin()


def test_a_write_that_is_done_stays_done_whatever_fails_later(tmp_path: Path) -> None:
    key = WriteKey(tmp_path / "t", "monday")
    key.begin()
    key.note()
    key.finish()
    key.give_up()
    assert is_done(key.path)


def test_of_two_writers_one_is_refused_before_it_publishes(tmp_path: Path) -> None:
    one, other = WriteKey(tmp_path / "t", "monday"), WriteKey(tmp_path / "t", "monday")
    assert one.begin()
    assert other.begin()
    one.note()
    with pytest.raises(WriteError, match="Another program"):
        other.note()
    other.give_up()
    publish(tmp_path / "t", "a.parquet")
    one.finish()
    assert not WriteKey(tmp_path / "t", "monday").begin()


def test_a_writer_of_whom_nothing_is_known_is_waited_for(tmp_path: Path) -> None:
    table = tmp_path / "t"
    key = WriteKey(table, "monday")
    key.begin()
    key.note()
    publish(table, "a.parquet")
    change_note(table, driver=ELSEWHERE)
    with pytest.raises(WriteError, match="Another program"):
        WriteKey(table, "monday").begin()
    assert (table / "a.parquet").exists()
    change_note(table, done=True)
    assert not WriteKey(table, "monday").begin()


def test_a_write_that_had_nothing_to_do_is_not_noted(tmp_path: Path) -> None:
    key = WriteKey(tmp_path / "t", "monday")
    key.begin()
    key.finish()
    assert not (tmp_path / "t").exists()
    assert WriteKey(tmp_path / "t", "monday").begin()
