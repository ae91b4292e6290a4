"""All tests are run, each by one of two processes, and none of the two can fail unseen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools.run_tests import LAB_TESTS, TESTS, run, run_shared
from tools.shared_tests import SECONDS, in_order, take

ROOT = Path(__file__).parents[2]


def test_the_longest_folders_and_in_them_the_longest_files_go_first() -> None:
    files = [
        "tests/a/test_a.py",
        "tests/b/in/test_b.py",
        "tests/b/test_c.py",
        "lab/tests/b/test_d.py",
        "new/test_e.py",
    ]
    seconds = {"tests/a/test_a.py": 9.0, "tests/b/in/test_b.py": 6.0, "tests/b/test_c.py": 4.0}
    assert in_order(files, seconds) == [
        "tests/b/in/test_b.py",
        "tests/b/test_c.py",
        "tests/a/test_a.py",
        "lab/tests/b/test_d.py",
        "new/test_e.py",
    ]


def test_every_file_is_taken_once(tmp_path: Path) -> None:
    files = [f"{number}" for number in range(7)]
    one, other = take(tmp_path, files), take(tmp_path, files)
    taken = [next(one), next(other), next(other), *one, *other]
    assert sorted(taken) == files


def test_the_kept_seconds_are_of_files_that_exist() -> None:
    kept = json.loads(SECONDS.read_text(encoding="utf-8"))
    assert [file for file in kept if not (ROOT / file).is_file()] == []
    assert all(file.startswith((f"{TESTS}/", f"{LAB_TESTS}/")) for file in kept)


@pytest.mark.parametrize("tests", [TESTS, LAB_TESTS])
def test_no_file_takes_so_long_that_the_processes_cannot_end_together(tests: str) -> None:
    kept = json.loads(SECONDS.read_text(encoding="utf-8"))
    seconds = [took for file, took in kept.items() if file.startswith(f"{tests}/")]
    assert max(seconds) < sum(seconds) / 2


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("", 0, "5 tests in 3 files"),
        ("def test_f(): assert False", 1, "1 failed"),
        ("import os\ndef test_f(): os._exit(0)", 1, "Not every test was run exactly once."),
        ("import nothing_of_this_name", 2, "ModuleNotFoundError"),
    ],
)
def test_processes_run_every_test_once_and_show_what_fails(
    tmp_path: Path, more: str, code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    note = f"open({str(ran)!r}, 'a').write(request.node.name + ' ')"
    for number in range(3):
        tests = (f"def test_{number}_{part}(request): {note}\n" for part in range(2 if number else 1))
        (tmp_path / f"test_{number}.py").write_text("".join(tests))
    (tmp_path / "test_more.py").write_text(more)
    assert bool(run_shared([str(tmp_path)], tmp_path / "seconds.json")) == bool(code)
    assert said in capfd.readouterr().out
    names = ["test_0_0", "test_1_0", "test_1_1", "test_2_0", "test_2_1"]
    if not code:
        assert sorted(ran.read_text().split()) == names
        assert json.loads((tmp_path / "seconds.json").read_text()) == {}, "they took less than a second"


@pytest.mark.parametrize("codes", [(0, 0), (3, 0), (0, 4)])
def test_whoever_fails_fails_all_and_everything_is_printed(
    codes: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    said = [f"print('part {number}'); raise SystemExit({code})" for number, code in enumerate(codes)]
    assert run([[sys.executable, "-c", text] for text in said]) == max(codes)
    printed = capfd.readouterr().out
    assert [f"part {number}" in printed for number in (0, 1)] == [True, True]


def test_one_that_was_killed_has_failed() -> None:
    assert run([[sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]]) == 1
