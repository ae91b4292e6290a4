"""Check Wallaby on each Spark version that it supports: `make versions`.

Each version has an environment of its own in `.bench/spark-<version>`, which holds PySpark alone. All other packages
come from the environment that runs this script. The first run downloads about 450 MB for each version. What is checked
is in `tools/check_version.py`.

The counts go into `reports/versions.json`, and from there into `docs/spark-versions.md`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wallaby_lab import tpch

ROOT: Final = Path(__file__).resolve().parent.parent
ENVIRONMENTS: Final = ROOT / ".bench"
REPORT: Final = ROOT / "reports" / "versions.json"
PAGE: Final = ROOT / "docs" / "spark-versions.md"
#: The release of each supported version that is checked.
RELEASES: Final = {"4.1": "4.1.4", "4.2": "4.2.1", "4.3": "4.3.0"}
#: Of the TPC-H data.
SCALE: Final = 0.02
Counts = dict[str, dict[str, int]]


def environment(version: str) -> Path:
    """The Python of the environment with a version; it is made if it is not there."""
    home = ENVIRONMENTS / f"spark-{version}"
    python = home / "bin" / "python"
    release = RELEASES[version]
    if not _has(python, release):
        print(f"installing PySpark {release} into {home.relative_to(ROOT)} (downloads about 450 MB)")
        _call([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)])
        paths = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)})
        others = sysconfig.get_paths()["purelib"]
        link = f"import site; site.addsitedir({others!r})\n"
        Path(paths["purelib"], "wallaby-others.pth").write_text(link, encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        pip += ["--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        _call([*pip, f"pyspark=={release}"])
    return python


def _has(python: Path, release: str) -> bool:
    if not python.exists():
        return False
    asked = [str(python), "-c", "import pyspark; print(pyspark.__version__, end='')"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == release  # noqa: S603 - our own


def run(version: str) -> Counts:
    """Check a version, and count the steps that passed and failed, by what they show."""
    python = environment(version)
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory) / "result.json"
        tpch.generate(Path(directory) / "tpch", SCALE)
        command = [str(python), "-m", "tools.check_version", str(Path(directory) / "tpch"), str(result)]
        subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - our own command, no shell
        return counts(json.loads(result.read_text(encoding="utf-8")))


def counts(outcomes: Sequence[dict[str, str]]) -> Counts:
    """Count the steps that passed and failed, by what they show."""
    found: Counts = {}
    for outcome in outcomes:
        part = found.setdefault(outcome["part"], {"passed": 0, "failed": 0})
        part["failed" if outcome["failed"] else "passed"] += 1
    return found


def table(report: dict[str, Counts]) -> str:
    """The table of all runs."""
    parts = list(dict.fromkeys(part for found in report.values() for part in found))
    lines = [
        f"| steps | {' | '.join(f'PySpark {RELEASES[version]}' for version in report)} |",
        f"|---|{'---|' * len(report)}",
    ]
    lines += [
        f"| {part} | {' | '.join(_told(found.get(part)) for found in report.values())} |" for part in parts
    ]
    return "\n".join(lines)


def _told(count: dict[str, int] | None) -> str:
    if count is None:
        return "not run"
    return f"{count['passed']} pass" + (f", {count['failed']} fail" if count["failed"] else "")


def write_page(report: dict[str, Counts]) -> None:
    """Put the table into its page."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- runs: made by `make versions` -->\n", "<!-- end of runs -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n{table(report)}\n\n{end}{after}", encoding="utf-8")


def record(version: str, found: Counts) -> None:
    """Note the counts of a run in the report, and in the page."""
    report = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}
    report[version] = found
    report = {known: report[known] for known in RELEASES if known in report}
    REPORT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    write_page(report)


def _call(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)  # noqa: S603 - our own commands, no shell


def main(arguments: Sequence[str]) -> int:
    """Check the versions that are asked for, all by default; 1 if a step failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--version", action="append", choices=sorted(RELEASES), help="only this one; may be repeated"
    )
    asked = parser.parse_args(arguments)
    failed = 0
    for version in asked.version or RELEASES:
        found = run(version)
        record(version, found)
        failed += sum(part["failed"] for part in found.values())
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
