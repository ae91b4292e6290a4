"""The backup: in memory, then on disk, always the same."""

from __future__ import annotations

import errno
import os
import platform
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.parts import BODIES, QUERY, assert_same_body, large, numbers

import wallaby.exchange.backup as backup_module
from wallaby.errors import EncodingError, InternalError
from wallaby.exchange.allocator import keep_freed_memory
from wallaby.exchange.backup import DIRECTORY_PREFIX, Backup
from wallaby.exchange.body import Body, decode, encode, encoded_size, size_of
from wallaby.exchange.lazy_body import GoneError, fetched, is_lazy
from wallaby.exchange.memory import ByteBudget
from wallaby.lineage.names import Edge, QueryId, TaskName

GIB = 1 << 30
E0, E1, E2 = (Edge(0, 0, consumer) for consumer in range(3))
OTHER = QueryId("../q-2")

Make = Callable[..., Backup]


def task(seq: int) -> TaskName:
    return TaskName(0, 0, seq)


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def open_files(root: Path) -> list[str]:
    here = Path("/proc/self/fd")
    targets = [str(link.readlink()) for link in here.iterdir() if link.is_symlink()]
    return [target for target in targets if target.startswith(str(root))]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes backups under `tmp_path`; nothing of them is left after the test."""
    made: list[Backup] = []

    def create(memory_bytes: int = GIB, disk_bytes: int = GIB, **options: Any) -> Backup:
        directories = options.pop("directories", (tmp_path,))
        made.append(Backup(ByteBudget(memory_bytes), directories, disk_bytes, **options))
        return made[-1]

    yield create
    for backup in made:
        backup.close()
        assert backup.bytes_in_memory == backup.bytes_on_disk == backup._budget.used_bytes == 0
    assert not list(tmp_path.rglob(f"{DIRECTORY_PREFIX}*"))
    assert not open_files(tmp_path)


def test_released_outputs_give_their_memory_back_and_the_others_stay(make: Make) -> None:
    backup = make()
    for seq in range(3):
        assert backup.keep_in_memory(QUERY, task(seq), {E0: (large(3000),)}, final=False)
    whole = backup.bytes_in_memory
    backup.release(QUERY, [task(0), task(1), task(7)])
    assert backup.bytes_in_memory == whole // 3
    assert [backup.has(QUERY, task(seq)) for seq in range(3)] == [False, False, True]


def test_what_a_query_has_in_files_is_known(make: Make) -> None:
    backup = make(memory_bytes=1)
    assert backup.keep(QUERY, task(0), {E0: (large(3000),)}, final=False)
    assert backup.disk_bytes_of(QUERY) == backup.bytes_on_disk > 0
    assert backup.disk_bytes_of(OTHER) == 0


# --- the same on every route -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(
    ("memory_bytes", "compression"), [(GIB, None), (0, None), (0, "lz4")], ids=["memory", "disk", "lz4"]
)
def test_every_kind_of_body_comes_back_as_it_was(
    kind: str, memory_bytes: int, compression: str | None, make: Make
) -> None:
    backup = make(memory_bytes, compression=compression)
    body = BODIES[kind]
    assert backup.keep(QUERY, task(0), {E0: body, E1: None}, final=True)
    assert_same_body(backup.slice_of(QUERY, task(0), E0)[0], body)
    assert backup.slice_of(QUERY, task(0), E0)[1:] == (True, size_of(body))
    assert backup.slice_of(QUERY, task(0), E1) == (None, True, 0)


def test_the_oldest_outputs_go_to_disk_first(make: Make) -> None:
    backup = make(memory_bytes=3 << 20)
    for seq in range(6):
        assert backup.keep(QUERY, task(seq), {E0: (large(1 << 20, seq),)}, final=False)
        assert backup.bytes_in_memory <= 3 << 20
    assert backup.bytes_in_memory == 3 << 20
    assert 3 << 20 <= backup.bytes_on_disk <= (3 << 20) + 3000
    in_memory = [backup._outputs[QUERY][task(seq)].by_edge[E0].batches is not None for seq in range(6)]  # type: ignore[union-attr]
    assert in_memory == [False, False, False, True, True, True]
    for seq in range(6):
        assert_same_body(backup.slice_of(QUERY, task(seq), E0)[0], (large(1 << 20, seq),))


def test_an_output_larger_than_memory_goes_to_disk_and_leaves_the_others_where_they_are(make: Make) -> None:
    backup = make(memory_bytes=1 << 20)
    assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    assert backup.keep(QUERY, task(1), {E0: (large(2 << 20),)}, final=False)
    assert backup.bytes_in_memory == 80
    assert backup.bytes_on_disk >= 2 << 20


def test_when_memory_is_short_all_goes_to_disk_and_says_the_same(make: Make) -> None:
    backup = make(1 << 20)
    bodies = {seq: (numbers(500, seq),) for seq in range(3)}
    for seq in (0, 1):
        assert backup.keep_in_memory(QUERY, task(seq), {E0: bodies[seq]}, final=False)
    held = backup.bytes_in_memory
    assert backup.memory_bytes_of(QUERY) == held > 0
    backup.press(pressed=True)
    assert backup.spill() == held
    assert (backup.bytes_in_memory, backup.memory_bytes_of(QUERY)) == (0, 0)
    assert not backup.keep_in_memory(QUERY, task(2), {E0: bodies[2]}, final=False)
    assert backup.keep(QUERY, task(2), {E0: bodies[2]}, final=False)
    assert backup.bytes_in_memory == 0
    for seq, body in bodies.items():
        assert_same_body(backup.slice_of(QUERY, task(seq), E0)[0], body)
    backup.press(pressed=False)
    assert backup.keep_in_memory(QUERY, task(3), {E0: bodies[2]}, final=False)
    assert backup.bytes_in_memory > 0


def test_keeping_in_memory_never_writes(make: Make, tmp_path: Path) -> None:
    backup = make(memory_bytes=100)
    assert backup.keep_in_memory(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    assert not backup.keep_in_memory(QUERY, task(1), {E0: (numbers(10),)}, final=False)
    assert not backup.has(QUERY, task(1))
    assert not files(tmp_path)
    assert backup.keep(QUERY, task(1), {E0: (numbers(10),)}, final=False)
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("memory_bytes", [GIB, 0])
def test_a_broadcast_is_kept_once_and_read_once(memory_bytes: int, make: Make) -> None:
    backup = make(memory_bytes)
    body = (large(1 << 20),)
    assert backup.keep(QUERY, task(0), {E0: body, E1: tuple(body), E2: (numbers(1),)}, final=False)
    assert (1 << 20) + 8 <= backup.bytes_in_memory + backup.bytes_on_disk < (1 << 20) + 2000
    slices = backup.slices_of(QUERY, [(E0, task(0)), (E1, task(0)), (E2, task(0))])
    assert slices[0].body is slices[1].body
    assert [s.size_bytes for s in slices] == [1 << 20, 1 << 20, 8]
    assert [is_lazy(s) for s in slices] == 3 * [memory_bytes == 0], "what is in a file is not read yet"
    whole = fetched(slices)
    assert whole[0].body is whole[1].body
    assert_same_body(whole[0].body, body)
    assert_same_body(whole[2].body, (numbers(1),))


def test_a_body_whose_query_was_dropped_before_it_was_read_is_gone(make: Make) -> None:
    backup = make(memory_bytes=0)
    assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    slices = backup.slices_of(QUERY, [(E0, task(0))])
    backup.drop(QUERY)
    with pytest.raises(GoneError):
        fetched(slices)


def test_keeping_an_output_again_changes_nothing(make: Make) -> None:
    backup = make()
    for _ in range(3):
        assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    assert backup.bytes_in_memory == 80


def test_a_slice_that_was_never_kept_is_a_lookup_error(make: Make) -> None:
    backup = make()
    assert backup.keep(QUERY, task(0), {E0: None}, final=False)
    for query, name, edge in ((QUERY, task(1), E0), (QUERY, task(0), E1), (OTHER, task(0), E0)):
        with pytest.raises(LookupError):
            backup.slice_of(query, name, edge)


# --- no room -----------------------------------------------------------------------------------------


def test_no_room_is_false_and_what_was_kept_stays(make: Make) -> None:
    backup = make(memory_bytes=1 << 20, disk_bytes=(2 << 20) + 2000)
    kept = 0
    while backup.keep(QUERY, task(kept), {E0: (large(1 << 20, kept),)}, final=False):
        kept += 1
    assert kept == 3
    assert not backup.has(QUERY, task(kept))
    for seq in range(kept):
        assert_same_body(backup.slice_of(QUERY, task(seq), E0)[0], (large(1 << 20, seq),))
    backup.drop(QUERY)
    assert backup.keep(OTHER, task(0), {E0: (large(1 << 20),)}, final=False)


def test_no_directory_means_memory_only(make: Make) -> None:
    backup = make(memory_bytes=100, directories=())
    assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    assert not backup.keep(QUERY, task(1), {E0: (numbers(10),)}, final=False)


def test_a_full_disk_is_no_room_and_another_error_is_an_error(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = make(memory_bytes=0)
    assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    struck = []

    def fail(number: int) -> Callable[..., int]:
        def pwrite(*_: object) -> int:
            struck.append(number)
            raise OSError(number, "")

        return pwrite

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail(errno.ENOSPC))
        assert not backup.keep(QUERY, task(1), {E0: (numbers(10),)}, final=False)
        patch.setattr(os, "pwrite", fail(errno.EIO))
        with pytest.raises(OSError, match="5"):
            backup.keep(QUERY, task(1), {E0: (numbers(10),)}, final=False)
    assert set(struck) == {errno.ENOSPC, errno.EIO}
    assert backup.keep(QUERY, task(1), {E0: (numbers(10),)}, final=False)
    assert_same_body(backup.slice_of(QUERY, task(1), E0)[0], (numbers(10),))


def test_a_full_directory_is_followed_by_the_next_even_after_half_a_write(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = (tmp_path / "a", tmp_path / "b")
    for root in roots:
        root.mkdir()
    backup = make(memory_bytes=0, directories=roots)
    write = os.pwrite
    full: list[int] = []

    def pwrite(file: int, data: memoryview, offset: int) -> int:
        if str(roots[0]) not in str(Path(f"/proc/self/fd/{file}").readlink()):
            return write(file, data, offset)
        if full:
            raise OSError(errno.ENOSPC, "full")
        full.append(write(file, data[: len(data) // 2], offset))
        return full[0]

    monkeypatch.setattr(os, "pwrite", pwrite)
    assert backup.keep(QUERY, task(0), {E0: (numbers(500),)}, final=False)
    assert full
    assert_same_body(backup.slice_of(QUERY, task(0), E0)[0], (numbers(500),))


# --- files -------------------------------------------------------------------------------------------


def test_files_are_few_private_and_under_the_given_directories(make: Make, tmp_path: Path) -> None:
    roots = (tmp_path / "a", tmp_path / "b")
    for root in roots:
        root.mkdir()
    before = os.umask(0)
    try:
        backup = make(memory_bytes=0, directories=roots, owner="w/../1", segment_bytes=1 << 20)
        for seq in range(100):
            assert backup.keep(OTHER, task(seq), {E0: (numbers(3000, seq),)}, final=False)
    finally:
        os.umask(before)
    assert all(1 <= len(files(root)) <= 2 for root in roots)
    for path in tmp_path.rglob("*"):
        if path not in roots:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), path
    for seq in range(100):
        assert_same_body(backup.slice_of(OTHER, task(seq), E0)[0], (numbers(3000, seq),))


def test_dropping_a_query_removes_its_files_and_no_others(make: Make, tmp_path: Path) -> None:
    backup = make(memory_bytes=0)
    for query in (QUERY, OTHER):
        assert backup.keep(query, task(0), {E0: (numbers(10),)}, final=False)
    body, _, _ = backup.slice_of(QUERY, task(0), E0)
    backup.drop(QUERY)
    assert len(files(tmp_path)) == 1
    assert_same_body(body, (numbers(10),))  # who reads at that moment still can
    assert_same_body(backup.slice_of(OTHER, task(0), E0)[0], (numbers(10),))
    with pytest.raises(LookupError):
        backup.slice_of(QUERY, task(0), E0)


@pytest.mark.parametrize("memory_bytes", [GIB, 0])
def test_an_output_that_comes_after_the_drop_is_not_kept_and_does_no_harm(
    memory_bytes: int, make: Make, tmp_path: Path
) -> None:
    backup = make(memory_bytes)
    backup.drop(QUERY)
    assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    assert not backup.has(QUERY, task(0))
    assert not files(tmp_path)


def test_many_threads_keep_read_and_drop_at_once(make: Make) -> None:
    backup = make(memory_bytes=50_000, segment_bytes=100_000)
    start = threading.Barrier(4)

    def work(number: int) -> None:
        query = QueryId(f"q-{number}")
        start.wait(10)
        for turn in range(2):
            for seq in range(40):
                body: Body = (numbers(400, seq), numbers(seq))
                assert backup.keep(query, task(seq), {E0: body, E1: None}, final=False)
                assert_same_body(
                    backup.slice_of(query, task(seq // 2), E0)[0], (numbers(400, seq // 2), numbers(seq // 2))
                )
            backup.drop(query)
            query = QueryId(f"q-{number}-{turn}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert backup.bytes_in_memory == backup.bytes_on_disk == 0


def test_a_drop_while_the_query_is_written_leaves_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = make(memory_bytes=100)
    assert backup.keep(QUERY, task(0), {E0: (numbers(10),)}, final=False)
    writing, go_on = threading.Event(), threading.Event()
    write = os.pwrite

    def pwrite(file: int, data: memoryview, offset: int) -> int:
        writing.set()
        assert go_on.wait(10)
        return write(file, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with ThreadPoolExecutor(2) as pool:
        kept = pool.submit(backup.keep, OTHER, task(0), {E0: (numbers(10),)}, final=False)
        assert writing.wait(10)
        dropped = pool.submit(backup.drop, QUERY)
        assert_same_body(backup.slice_of(OTHER, task(0), E0)[0] if backup.has(OTHER, task(0)) else None, None)
        go_on.set()
        assert kept.result(10)
        dropped.result(10)
    assert backup.bytes_on_disk == 0
    assert backup.bytes_in_memory == 80


# --- bodies and budgets ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind, body in BODIES.items() if body])
def test_the_length_of_an_encoded_body_is_known_before(kind: str) -> None:
    body = BODIES[kind]
    assert body is not None
    assert encode(body).size == encoded_size(body)


def test_a_body_with_another_number_of_batches_or_more_bytes_is_refused() -> None:
    data = encode((numbers(1), numbers(2)))
    assert len(decode(data, 2)) == 2
    for count in (1, 3):
        with pytest.raises(EncodingError):
            decode(data, count)


def test_a_budget_counts_and_refuses_to_get_back_more_than_it_gave() -> None:
    budget = ByteBudget(100)
    assert budget.take(60)
    assert not budget.take(41)
    assert budget.take_if_any_left(1000)
    assert not budget.take_if_any_left(0)
    budget.give(1060)
    with pytest.raises(InternalError):
        budget.give(1)


def test_the_allocator_of_glibc_can_be_told_to_keep_memory() -> None:
    for memory_bytes in (1 << 40, 4 << 30, 100 << 20, 0):
        assert keep_freed_memory(memory_bytes) == (platform.libc_ver()[0] == "glibc")


# --- attempts that were never committed --------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [GIB, 0], ids=["in memory", "on disk"])
@pytest.mark.parametrize("late", [False, True], ids=["kept in order", "kept late"])
def test_what_a_later_run_made_is_sent_whichever_was_kept_last(
    make: Make, memory_bytes: int, late: bool
) -> None:
    """A channel was rewound where it is. Its first attempt was never committed, its second is, under the same name."""
    backup = make(memory_bytes)
    attempts = [((numbers(2),), 3), ((numbers(5),), 7)]
    for body, since in reversed(attempts) if late else attempts:
        assert backup.keep(QUERY, task(18), {E0: body}, final=since == 7, since_epoch=since)
    found, final, size_bytes = backup.slice_of(QUERY, task(18), E0)
    assert_same_body(found, (numbers(5),))
    assert (final, size_bytes) == (True, size_of((numbers(5),)))
    assert backup.bytes_in_memory == (size_of((numbers(5),)) if memory_bytes else 0)


def test_an_output_that_is_replaced_while_it_is_spilled_leaves_the_new_one_in_memory(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = make(memory_bytes=size_of((numbers(5),)) + 8)
    assert backup.keep_in_memory(QUERY, task(0), {E0: (numbers(2),)}, final=False, since_epoch=3)
    write = backup._write

    def replaced_meanwhile(query: QueryId, entry: Any) -> Any:
        places = write(query, entry)
        if entry.since_epoch == 3:
            assert backup.keep_in_memory(QUERY, task(0), {E0: (numbers(3),)}, final=False, since_epoch=7)
        return places

    monkeypatch.setattr(backup, "_write", replaced_meanwhile)
    assert backup.keep(QUERY, task(1), {E0: (numbers(5),)}, final=False, since_epoch=7)
    for seq, body in ((0, (numbers(3),)), (1, (numbers(5),))):
        assert_same_body(backup.slice_of(QUERY, task(seq), E0)[0], body)


def test_what_is_kept_stays_until_that_which_replaces_it_has_a_place(make: Make) -> None:
    backup = make(memory_bytes=size_of((numbers(5),)))
    assert backup.keep_in_memory(QUERY, task(0), {E0: (numbers(5),)}, final=False)
    assert not backup.keep_in_memory(QUERY, task(0), {E0: (numbers(5),)}, final=False), (
        "there is room for one"
    )
    assert_same_body(backup.slice_of(QUERY, task(0), E0)[0], (numbers(5),))
    assert backup.keep(QUERY, task(0), {E0: (numbers(5),)}, final=False)
    assert_same_body(backup.slice_of(QUERY, task(0), E0)[0], (numbers(5),))
    assert backup.bytes_in_memory == size_of((numbers(5),))


def test_a_spilled_body_has_its_place_before_it_is_freed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers take no lock: one that comes between the two must find the body in one of them."""
    freed = []

    class Watched(backup_module._Stored):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "batches" and value is None:
                freed.append(self.place)
            super().__setattr__(name, value)

    monkeypatch.setattr(backup_module, "_Stored", Watched)
    backup = make(memory_bytes=size_of((numbers(5),)))
    for seq in range(2):
        assert backup.keep(QUERY, task(seq), {E0: (numbers(5),)}, final=False)
    assert backup.keep(QUERY, task(2), {E0: (numbers(50),)}, final=False), "larger than memory"
    assert len(freed) == 2
    assert None not in freed
