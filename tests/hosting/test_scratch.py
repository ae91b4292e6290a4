"""Scratch directories and slots: what a killed process leaves is swept, what a live one has is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from wallaby.worker.executor_slot import executor_of, taking_slot
from wallaby.worker.scratch import PREFIX, leftovers, make_scratch, remove_scratch, sweep

IDENTIFIER = "0b5bcc5f-699d-41ff-94e7-abb6ec916402"
MAKE = (
    "import sys; from pathlib import Path; from wallaby.worker.scratch import make_scratch; "
    "d = make_scratch(Path(sys.argv[1])); (d / 'data').write_bytes(b'x'); print(d, flush=True); sys.stdin.read()"
)


def test_only_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    mine = make_scratch(tmp_path)
    inner = tmp_path / f"spark-{IDENTIFIER}" / f"executor-{IDENTIFIER}" / f"blockmgr-{IDENTIFIER}"
    inner.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", MAKE, str(inner)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().decode().strip())
        assert theirs.parent == inner
        assert sweep(tmp_path) == ()
        other.kill()
        other.wait(10)
    assert list(leftovers(inner)) == [theirs], "also when asked from within Spark's directories"
    assert sweep(inner) == (theirs,)
    assert not theirs.exists()
    assert mine.is_dir()
    remove_scratch(mine)
    assert not mine.exists()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    strangers = [
        tmp_path / f"{PREFIX}another.host-1-1-abc",
        tmp_path / f"{PREFIX}no-number",
        tmp_path / "wallaby-something-else",
        tmp_path / f"{PREFIX}",
    ]
    for stranger in strangers:
        stranger.mkdir()
    assert sweep(tmp_path) == ()
    assert all(stranger.is_dir() for stranger in strangers)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    gone = make_scratch(tmp_path)
    name = gone.name.replace(f"-{os.getpid()}-", "-999999999-")
    remove_scratch(gone)
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / name).symlink_to(precious)
    assert sweep(tmp_path) == ()
    assert precious.is_dir()


def test_a_seat_is_taken_by_one_and_free_afterwards() -> None:
    with taking_slot("e-1", 1) as first, taking_slot("e-1", 1) as second, taking_slot("e-2", 1) as other:
        assert (first, second, other) == (True, False, True)
    with taking_slot("e-1", 2) as first, taking_slot("e-1", 2) as second, taking_slot("e-1", 2) as third:
        assert (first, second, third) == (True, True, False)
    with taking_slot("e-1", 0) as first, taking_slot("e-1", 0) as second:
        assert first, "under local[n] any number may be there"
        assert second


def test_an_executor_is_named_by_its_own_process() -> None:
    assert executor_of(os.getpid()).endswith(f"-{os.getppid()}")
