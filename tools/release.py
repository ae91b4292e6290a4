"""Make a release ready (`make release`): build, check, try in clean environments, and write the notes.

It publishes nothing. Everything that it makes is in dist/: the wheels and source archives of `wallaby` and
`wallaby-lab`, and the notes of the version, taken from the changelog.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
DISTRIBUTIONS = {"wallaby": ROOT, "wallaby-lab": ROOT / "lab"}
#: The minor versions of Python 3 that a release is tried with, if they are on the machine. Those with a classifier have
#: been; a release without them is not ready.
MINORS = (11, 12, 13, 14)
#: What a wheel may contain besides Python files and its own description.
SUFFIXES = (".py", ".java", ".lua", ".sql", "/py.typed")
WHEEL_BYTES_MAX = 2 << 20
SECONDS_MAX = 1800
_TITLE = re.compile(r"^## \[(?P<version>[^]]+)\]", re.MULTILINE)
SMOKE = """
from pyspark.sql import SparkSession, functions as F
import wallaby

spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.wallaby.attachTimeout", "300s").getOrCreate()
)
spark.range(100_000).selectExpr("id % 7 as k", "id as v").write.parquet("table")
query = spark.read.parquet("table").groupBy("k").agg(F.sum("v").alias("s")).orderBy("k")
with wallaby.attach(spark, workers=1) as engine:
    result = engine.run(query)
    assert result.rows() == query.collect()
    assert result.native and not engine.fallback_reasons(query)
spark.stop()
"""


class ReleaseError(Exception):
    """Something is not ready to be released."""


def version_of(project: Path) -> str:
    """The version that a project declares."""
    found = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    return str(found["project"]["version"])


def claimed(project: Path) -> list[int]:
    """The minor versions of Python 3 that a project's classifiers name."""
    found = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    return [int(text.rpartition(".")[2]) for text in found if ":: Python :: 3." in text]


def notes(changelog: str, version: str) -> str:
    """The entries of a version in the changelog, or those of `Unreleased` if it has none of its own.

    Raises:
        ReleaseError: there are none.
    """
    titles = list(_TITLE.finditer(changelog))
    sections = {
        title["version"]: changelog[title.end() : following.start() if following else len(changelog)]
        for title, following in zip(titles, [*titles[1:], None], strict=True)
    }
    text = sections.get(version) or sections.get("Unreleased", "")
    entries = (
        "\n".join(line for line in text.splitlines() if not line.startswith("[")).partition("\n")[2].strip()
    )
    if not entries:
        raise ReleaseError(f"CHANGELOG.md says nothing about {version}")
    return f"# Wallaby {version}\n\n{entries}\n"


def superfluous(names: Iterable[str], package: str) -> list[str]:
    """The files of a wheel that do not belong into it."""
    return [
        name
        for name in names
        if not (name.startswith(f"{package}/") and name.endswith(SUFFIXES)) and ".dist-info/" not in name
    ]


def pythons(search: Mapping[str, str]) -> dict[int, str]:
    """The interpreters of supported versions on this machine: on PATH, or installed by pyenv."""
    root = Path(search.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found: dict[int, str] = {}
    for minor in MINORS:
        name = f"python3.{minor}"
        candidates = [*sorted(map(str, root.glob(f"versions/3.{minor}.*/bin/{name}"))), name]
        for candidate in candidates:
            path = shutil.which(candidate, path=search.get("PATH", ""))
            if path and _version(path) == (3, minor):
                found[minor] = path
                break
    return found


def _version(python: str) -> tuple[int, int] | None:
    """The version of an interpreter; None if it does not run."""
    asked = subprocess.run(  # noqa: S603 - found on PATH
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    if asked.returncode:
        return None
    major, minor = asked.stdout.split()
    return int(major), int(minor)


def run(*command: str | Path, cwd: Path = ROOT, quiet: bool = False) -> str:
    """Run a command and show its output; if it is to be quiet, only if it fails, and otherwise return it."""
    print("+", *(word for word in command if word is not SMOKE), flush=True)
    ended = subprocess.run(  # noqa: S603 - the commands of this file
        [str(word) for word in command],
        cwd=cwd,
        check=False,
        timeout=SECONDS_MAX,
        capture_output=quiet,
        text=True,
    )
    if ended.returncode:
        print(ended.stdout or "", ended.stderr or "")
        raise ReleaseError(f"{command[0]} exited with {ended.returncode}")
    return f"{ended.stdout or ''}{ended.stderr or ''}"


def build() -> None:
    """Build both distributions into dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    for project in DISTRIBUTIONS.values():
        shutil.rmtree(project / "build" / "lib", ignore_errors=True)  # a file that is gone must not come back
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, project, quiet=True)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))


def check_contents() -> None:
    """Check that the wheels have what they need, and nothing else."""
    for name, project in DISTRIBUTIONS.items():
        package = name.replace("-", "_")
        (wheel,) = DIST.glob(f"{package}-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        if found := superfluous(names, package):
            raise ReleaseError(f"{wheel.name} has files that do not belong there: {', '.join(found[:5])}")
        sources = project / "src"
        wanted = {
            str(path.relative_to(sources)) for path in (sources / package).rglob("*") if _is_wanted(path)
        }
        if missing := sorted(wanted - set(names)):
            raise ReleaseError(f"{wheel.name} lacks {', '.join(missing[:5])}")
        if wheel.stat().st_size > WHEEL_BYTES_MAX:
            raise ReleaseError(
                f"{wheel.name} has {wheel.stat().st_size:,} bytes, at most {WHEEL_BYTES_MAX:,}"
            )
        (archive,) = DIST.glob(f"{package}-*.tar.gz")
        with tarfile.open(archive) as opened:
            members = len(opened.getnames())
        print(
            f"{wheel.name}: {len(names)} files, {wheel.stat().st_size:,} bytes; {archive.name}: {members} files"
        )


def _is_wanted(path: Path) -> bool:
    return path.is_file() and f"/{path.name}".endswith(SUFFIXES) and "__pycache__" not in path.parts


def try_out(minor: int, python: str) -> None:
    """Install the wheels into a clean environment, with the pinned versions, and run a query there."""
    with tempfile.TemporaryDirectory(prefix=f"wallaby-release-3{minor}-") as directory:
        there = Path(directory)
        run(python, "-m", "venv", there / "venv")
        own = there / "venv" / "bin" / "python"
        constraints = ROOT / "requirements.txt"
        wheels = sorted(DIST.glob("*.whl"))
        run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", constraints, *wheels)
        run(own, "-m", "pip", "check")
        run(there / "venv" / "bin" / "wallaby", "--version", cwd=there)
        said = run(own, "-c", SMOKE, cwd=there, quiet=True)
        if noise := noisy(said):
            raise ReleaseError(f"the smoke query worked, but logged: {noise}")
        print("smoke query: the same rows as Spark")


def noisy(said: str) -> str:
    """The first line of a log that a user would take for a failure."""
    return next((line for line in said.splitlines() if " ERROR " in line or "Traceback" in line), "")


def main() -> int:
    """Make a release ready; the exit code is 1 if something is not."""
    try:
        versions = {name: version_of(project) for name, project in DISTRIBUTIONS.items()}
        if len(set(versions.values())) > 1:
            raise ReleaseError(f"the versions differ: {versions}")
        version = versions["wallaby"]
        text = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        build()
        check_contents()
        found = pythons(os.environ)
        if absent := [minor for minor in claimed(ROOT) if minor not in found]:
            raise ReleaseError(f"a classifier names Python 3.{absent[0]}, which is not on this machine")
        for minor, python in found.items():
            try_out(minor, python)
        (DIST / f"NOTES-{version}.md").write_text(text, encoding="utf-8")
    except ReleaseError as error:
        print(f"not ready: {error}")
        return 1
    missing = ", ".join(f"3.{minor}" for minor in MINORS if minor not in found)
    print(f"{version} is ready, in dist/: tried with Python {', '.join(f'3.{minor}' for minor in found)}.")
    if missing:
        print(f"Not on this machine, so not tried: Python {missing}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
