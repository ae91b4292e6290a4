"""The parts of `make release` that can be told without building anything."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tools.release import (
    DISTRIBUTIONS,
    MINORS,
    ROOT,
    ReleaseError,
    claimed,
    noisy,
    notes,
    pythons,
    superfluous,
    version_of,
)
from wallaby import __version__

CHANGES = """# Changelog

## [Unreleased]

### Added

- Something new.

## [0.1.0] - 2026-12-01

- Everything.

[0.1.0]: https://example.org/0.1.0
"""


def test_notes_are_those_of_the_version() -> None:
    assert notes(CHANGES, "0.1.0") == "# Wallaby 0.1.0\n\n- Everything.\n"


def test_a_version_without_notes_takes_those_that_are_not_released() -> None:
    assert notes(CHANGES, "0.2.0") == "# Wallaby 0.2.0\n\n### Added\n\n- Something new.\n"


def test_a_release_needs_notes() -> None:
    with pytest.raises(ReleaseError, match=r"says nothing about 1\.0"):
        notes("# Changelog\n\n## [Unreleased]\n", "1.0")


def test_the_changelog_has_notes_for_the_present_version() -> None:
    assert "- Add" in notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)


def test_tests_and_data_do_not_belong_into_a_wheel() -> None:
    names = [
        "wallaby/engine.py",
        "wallaby/py.typed",
        "wallaby/gcs/scripts/commit.lua",
        "wallaby-0.1.0.dist-info/METADATA",
        "tests/test_engine.py",
        "wallaby/data.parquet",
    ]
    assert superfluous(names, "wallaby") == ["tests/test_engine.py", "wallaby/data.parquet"]


@pytest.mark.parametrize("package", ["wallaby", "wallaby_lab"])
def test_what_is_no_module_is_named_as_data_of_the_package(package: str) -> None:
    project = DISTRIBUTIONS[package.replace("_", "-")]
    found = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    sources = project / "src" / package
    named = {
        path for glob in found["tool"]["setuptools"]["package-data"][package] for path in sources.glob(glob)
    }
    there = {path for path in sources.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert named == there
    assert (package == "wallaby") == any(path.suffix == ".java" for path in there)


def test_this_interpreter_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / f"python3.{sys.version_info.minor}").symlink_to(sys.executable)
    broken = tmp_path / f"python3.{max(MINORS)}"
    if not broken.exists():
        broken.write_text("#!/bin/sh\nexit 127\n")
        broken.chmod(0o755)
    found = pythons({"PATH": f"{tmp_path}{os.pathsep}{os.defpath}", "PYENV_ROOT": str(tmp_path)})
    assert found[sys.version_info.minor] == str(tmp_path / f"python3.{sys.version_info.minor}")
    assert max(MINORS) not in found or max(MINORS) == sys.version_info.minor


def test_all_versions_are_one_and_the_classifiers_agree() -> None:
    assert {version_of(project) for project in DISTRIBUTIONS.values()} == {__version__}
    for project in DISTRIBUTIONS.values():
        found = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert claimed(project) == claimed(ROOT)
        assert set(claimed(project)) <= set(MINORS)
        assert all(
            name == __version__ for name in _pins(found["dependencies"], found["optional-dependencies"])
        )


def _pins(needed: list[str], optional: dict[str, list[str]]) -> list[str]:
    """The versions by which the two distributions need each other."""
    every = [*needed, *(need for extra in optional.values() for need in extra)]
    return [need.partition("==")[2] for need in every if need.startswith(("wallaby==", "wallaby-lab=="))]


def test_a_smoke_query_that_logs_errors_is_noticed() -> None:
    assert noisy("26/11/19 18:46:32 WARN Utils: Your hostname\nfine") == ""
    line = "26/11/19 18:46:56 ERROR Executor: Exception in task 0.0 in stage 2.0 (TID 3)"
    assert noisy(f"fine\n{line}\n\tat java") == line


def test_every_extra_is_explained() -> None:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
    extras = set(found["optional-dependencies"])
    assert extras == {"lab", "notebook", "delta", "iceberg", "deltalake", "pyiceberg", "s3"}
    rows = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    assert extras <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}
