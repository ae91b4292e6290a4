"""One TaskManager after the other in the same process of Spark's: what the keeper does when its child ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: A keeper whose children say who they are and then do as they are told.
KEEPER = """
import os, signal, sys, time
from pathlib import Path
from wallaby.worker import slot_keeper

slot_keeper.CLOSING_SECONDS = 0.01
folder, does = Path(sys.argv[1]), sys.argv[2].split(",")

def serve():
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    number = len(list(folder.iterdir()))
    (folder / f"{number}-{os.getpid()}-{os.getppid()}").touch()
    match does[number]:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fail":
            raise ValueError("no such store")
        case "stay":
            while not asked:
                time.sleep(0.01)
            return True
        case word:
            return word == "missed"

slot_keeper.serve_in_turn(serve, lambda: "unwanted" not in does, only_killed="elsewhere" in does)
print("returned")
"""


def keeper(folder: Path, *does: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", KEEPER, str(folder), ",".join(does)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(folder: Path) -> list[list[str]]:
    return [name.split("-") for name in sorted(path.name for path in folder.iterdir())]


def until_there_are(folder: Path, count: int) -> None:
    limit = time.monotonic() + 60
    while len(children(folder)) < count:
        assert time.monotonic() < limit
        time.sleep(0.01)


def until_it_catches(pid: int, number: int) -> None:
    limit = time.monotonic() + 60
    while True:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        assert time.monotonic() < limit
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    limit = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < limit:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("end", ["over", "missed,unwanted"])
def test_a_killed_one_is_followed_by_another_until_nobody_needs_one(tmp_path: Path, end: str) -> None:
    with keeper(tmp_path, "die", "missed" if end == "over" else "die", *end.split(",")) as process:
        said, _ = process.communicate(timeout=60)
        assert said == "returned\n"
        assert {parent for _, _, parent in children(tmp_path)} == {str(process.pid)}
        assert len({pid for _, pid, _ in children(tmp_path)}) == 3


def test_one_that_ends_by_itself_is_followed_elsewhere(tmp_path: Path) -> None:
    with keeper(tmp_path, "die", "missed", "elsewhere") as process:
        assert process.communicate(timeout=60)[0] == "returned\n"
        assert len(children(tmp_path)) == 2


def test_an_error_is_raised_with_its_text(tmp_path: Path) -> None:
    with keeper(tmp_path, "fail") as process:
        _, error = process.communicate(timeout=60)
    assert error.endswith(
        "ChildProcessError: The TaskManager ended with an error:\nValueError: no such store\n"
    )


def test_one_that_is_killed_again_and_again_at_its_start_is_given_up(tmp_path: Path) -> None:
    with keeper(tmp_path, *["die"] * 9) as process:
        _, error = process.communicate(timeout=60)
    assert "was ended 3 times soon after its start" in error
    assert len(children(tmp_path)) == 3


def test_a_signal_for_the_keeper_ends_both(tmp_path: Path) -> None:
    with keeper(tmp_path, "stay") as process:
        until_there_are(tmp_path, 1)
        until_it_catches(process.pid, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[0] == "returned\n"


def test_a_killed_keeper_takes_its_child_with_it(tmp_path: Path) -> None:
    with keeper(tmp_path, "stay") as process:
        until_there_are(tmp_path, 1)
        (child,) = children(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        assert is_gone(int(child[1]))
