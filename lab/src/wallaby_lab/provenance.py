"""The sources of a figure: the commit, and a digest that distinguishes changed files."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import wallaby

_PACKAGE: Final = Path(__file__).resolve().parent
#: The engine and the lab: a figure depends on both.
_SOURCES: Final = (Path(wallaby.__file__).resolve().parent, _PACKAGE)
_GIT_SECONDS: Final = 30
_SUFFIXES: Final = (".java", ".lua", ".py", ".sql")


@cache
def commit() -> str:
    """The commit of these packages, with a `+` if their files have changed since; empty outside a clone."""
    if not _git("ls-files", "--", Path(__file__).name):  # installed somewhere below another project's clone
        return ""
    changed = "+" if _git("status", "--porcelain", "--", *map(str, _SOURCES)) else ""
    return _git("rev-parse", "--short=10", "HEAD") + changed


@cache
def digest() -> str:
    """A digest of all source files of both packages."""
    found = hashlib.blake2b(digest_size=6)
    for package in _SOURCES:
        for path in sorted(path for path in package.rglob("*") if path.suffix in _SUFFIXES):
            found.update(f"{path.relative_to(package.parent)}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _git(*arguments: str) -> str:
    try:
        ran = subprocess.run(  # noqa: S603 - no shell, and no argument of anybody's
            ["git", *arguments],  # noqa: S607 - git is on PATH, or nothing is known
            cwd=_PACKAGE,
            check=True,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.strip()
