"""The memory that is left: the host's, within the limits of the control groups around this process."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from wallaby.spark.memory.host import LEFT_BYTES_MIN, left_bytes

GIB = 1 << 30


class Memory:
    """Stands for what psutil says."""

    available = 20 * GIB


def group(root: Path, path: str, limit: str, current: int, cache: int = 0) -> None:
    (root / path).mkdir(parents=True, exist_ok=True)
    (root / path / "memory.max").write_text(f"{limit}\n")
    (root / path / "memory.current").write_text(f"{current}\n")
    (root / path / "memory.stat").write_text(f"anon 1\ninactive_file {cache}\n")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    path = tmp_path / "own"
    path.write_text("1:name=systemd:/other\n0::/pods/one\n")
    return path


def test_without_a_limit_it_is_what_the_host_has(tmp_path: Path, own: Path) -> None:
    group(tmp_path, "pods/one", "max", 5)
    assert left_bytes(2 * GIB, tmp_path, own) == 18 * GIB
    assert left_bytes(0, tmp_path, tmp_path / "no such file") == 20 * GIB


def test_a_limit_counts_what_is_taken_but_not_the_cache(tmp_path: Path, own: Path) -> None:
    group(tmp_path, "pods/one", str(8 * GIB), 3 * GIB, 1 * GIB)
    assert left_bytes(2 * GIB, tmp_path, own) == 4 * GIB


def test_the_tightest_of_the_groups_around_it_counts(tmp_path: Path, own: Path) -> None:
    group(tmp_path, "pods/one", str(8 * GIB), 1 * GIB)
    group(tmp_path, "pods", str(6 * GIB), 3 * GIB)
    assert left_bytes(0, tmp_path, own) == 3 * GIB


def test_there_is_always_something(tmp_path: Path, own: Path) -> None:
    assert left_bytes(50 * GIB, tmp_path, own) == LEFT_BYTES_MIN
