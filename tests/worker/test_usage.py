"""What a process has in memory: all of it, and its part of what it shares."""

from __future__ import annotations

import os
from pathlib import Path

from wallaby.worker.memory.usage import available_bytes, proportional_bytes, resident_bytes, room_bytes


def process(root: Path, statm: str, rollup: str | None = None) -> None:
    (root / "7").mkdir()
    (root / "7" / "statm").write_text(statm)
    if rollup is not None:
        (root / "7" / "smaps_rollup").write_text(rollup)


def test_pages_that_are_shared_count_in_part(tmp_path: Path) -> None:
    process(tmp_path, "900 300 100 1 0 200 0\n", "0-1 ---p [rollup]\nRss:  1200 kB\nPss:   800 kB\n")
    assert resident_bytes("7", tmp_path) == 300 * os.sysconf("SC_PAGE_SIZE")
    assert proportional_bytes("7", tmp_path) == 800 << 10


def test_where_the_part_is_not_told_all_of_it_counts(tmp_path: Path) -> None:
    process(tmp_path, "900 300 100 1 0 200 0\n")
    assert proportional_bytes("7", tmp_path) == 300 * os.sysconf("SC_PAGE_SIZE")
    assert resident_bytes("8", tmp_path) == 0


def test_a_host_can_give_what_is_available_and_its_swap(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 40 kB\nSwapFree: 2 kB\n")
    assert available_bytes(tmp_path) == 42 << 10
    assert available_bytes(tmp_path / "none") is None


def test_this_process_has_memory_and_some_is_left() -> None:
    assert 0 < proportional_bytes() <= resident_bytes() + (1 << 20)
    left = room_bytes()
    assert left is None or left > 0
