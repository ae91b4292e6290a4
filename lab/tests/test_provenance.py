"""What figures say of the code that they come from."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wallaby_lab
from wallaby_lab import provenance


def test_a_clone_knows_its_commit_and_any_sources_their_digest() -> None:
    assert re.fullmatch(r"([0-9a-f]{10,}\+?)?", provenance.commit())
    assert re.fullmatch(r"[0-9a-f]{12}", provenance.digest())


def ask(package: Path) -> list[str]:
    """The commit and digest of another copy of the package."""
    script = "from wallaby_lab import provenance; print(provenance.commit()); print(provenance.digest())"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=package.parent,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.stdout.splitlines()


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"]
    ran = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return ran.stdout.strip()


@pytest.mark.parametrize("edited", ["wallaby", "wallaby_lab"])
def test_changed_sources_are_told_apart(tmp_path: Path, edited: str) -> None:
    for name in ("wallaby", "wallaby_lab"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('"""Nothing."""\n')
    package = tmp_path / "wallaby_lab"
    shutil.copy(Path(wallaby_lab.__file__).with_name("provenance.py"), package)
    git(tmp_path, "init")
    outside, digest = ask(package)
    assert outside == "", "its files are not those of the clone that it is below"
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    clean, same = ask(package)
    assert head.startswith(clean)
    assert clean
    assert same == digest
    (tmp_path / edited / "__init__.py").write_text('"""Something."""\n')
    changed, another = ask(package)
    assert (changed, another != digest) == (f"{clean}+", True)
