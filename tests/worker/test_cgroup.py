"""Control groups of both versions, and what they leave; what cannot be read limits nothing."""

from __future__ import annotations

from pathlib import Path

from wallaby.worker.memory.cgroup import ControlGroup, groups, left_bytes

GIB = 1 << 30


def version_2(root: Path, path: str, limit: str, used: int, statistics: str = "") -> None:
    (root / path).mkdir(parents=True, exist_ok=True)
    (root / path / "memory.max").write_text(f"{limit}\n")
    (root / path / "memory.current").write_text(f"{used}\n")
    (root / path / "memory.stat").write_text(f"anon 1\n{statistics}")


def version_1(root: Path, path: str, limit: int, used: int, statistics: str = "") -> None:
    (root / "memory" / path).mkdir(parents=True, exist_ok=True)
    (root / "memory" / path / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (root / "memory" / path / "memory.usage_in_bytes").write_text(f"{used}\n")
    (root / "memory" / path / "memory.stat").write_text(f"cache 1\n{statistics}")


def own(root: Path, text: str) -> Path:
    (root / "own").write_text(text)
    return root / "own"


def test_version_2_leaves_what_files_and_the_kernel_can_give_up(tmp_path: Path) -> None:
    given_up = f"inactive_file {GIB}\nactive_file {GIB}\nslab_reclaimable {GIB}\n"
    version_2(tmp_path, "pods/one", str(8 * GIB), 5 * GIB, given_up)
    place = own(tmp_path, "0::/pods/one\n")
    assert groups(tmp_path, place) == (ControlGroup(8 * GIB, 5 * GIB, GIB, 3 * GIB),)
    assert left_bytes(tmp_path, place) == 6 * GIB


def test_version_1_counts_the_group_with_all_that_is_in_it(tmp_path: Path) -> None:
    given_up = f"inactive_file 7\ntotal_inactive_file {GIB}\ntotal_active_file {GIB}\n"
    version_1(tmp_path, "yarn/one", 4 * GIB, 3 * GIB, given_up)
    place = own(tmp_path, "5:cpu,cpuacct:/other\n4:memory:/yarn/one\n0::/\n")
    assert groups(tmp_path, place) == (ControlGroup(4 * GIB, 3 * GIB, GIB, 2 * GIB),)
    assert left_bytes(tmp_path, place) == 3 * GIB


def test_the_tightest_group_around_it_counts_and_one_without_a_limit_does_not(tmp_path: Path) -> None:
    version_1(tmp_path, "pods/one", 1 << 62, 3 * GIB)
    version_1(tmp_path, "pods", 6 * GIB, 5 * GIB)
    assert left_bytes(tmp_path, own(tmp_path, "4:memory:/pods/one\n")) == GIB
    version_2(tmp_path, "none", "max", 1)
    assert left_bytes(tmp_path, own(tmp_path, "0::/none\n")) is None


def test_in_a_container_the_host_s_path_leads_nowhere_and_the_root_is_its_own_group(tmp_path: Path) -> None:
    version_1(tmp_path, "", 2 * GIB, GIB)
    assert left_bytes(tmp_path, own(tmp_path, "4:memory:/docker/0123\n")) == GIB
    version_2(tmp_path, "", str(3 * GIB), GIB)
    assert left_bytes(tmp_path, own(tmp_path, "0::/docker/0123\n")) == 2 * GIB


def test_what_cannot_be_read_limits_nothing(tmp_path: Path) -> None:
    assert left_bytes(tmp_path, tmp_path / "no such file") is None
    version_2(tmp_path, "odd", "many", 1)
    assert left_bytes(tmp_path, own(tmp_path, "0::/odd\nnonsense\n")) is None
