"""Check tables of Delta Lake and Iceberg: `make lakes`.

There are no such jars for the newest Spark that Wallaby runs on, so this runs in the environment that
`tools.run_versions` makes for another one. Needs Maven, which downloads 60 MB of jars into `.bench/lakes`. What is
checked is in `tools/lakes`.

The outcome of each step goes into `reports/lakes.json`, and counts from there into `docs/spark-versions.md`. A run of
some steps (`ARGS="DeltaChecks.keys"`) replaces only theirs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.lakes import jars
from tools.run_versions import ENVIRONMENTS, PAGE, RELEASES, ROOT, Counts, counts, environment

REPORT: Final = ROOT / "reports" / "lakes.json"
_BEGIN: Final = "<!-- lakes: made by `make lakes` -->\n"
_END: Final = "<!-- end of lakes -->"


def table(found: Counts) -> str:
    """The table of a run."""
    lines = [
        f"| steps | PySpark {RELEASES[jars.VERSION]}, Delta Lake {jars.DELTA}, Iceberg {jars.ICEBERG} |",
        "|---|---|",
    ]
    for part, count in found.items():
        failed = f", {count['failed']} fail" if count["failed"] else ""
        lines.append(f"| {part} | {count['passed']} pass{failed} |")
    return "\n".join(lines)


def record(outcomes: Sequence[dict[str, str]]) -> None:
    """Note how steps ended in the report, and how many of all did in the page."""
    known = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}
    known |= {outcome["step"]: outcome for outcome in outcomes}
    REPORT.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    found = counts([known[step] for step in sorted(known)])
    PAGE.write_text(f"{before}{_BEGIN}\n{table(found)}\n\n{_END}{after}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run all steps, or those of these names; 1 if one failed."""
    python = environment(jars.VERSION)
    paths = jars.downloaded(ENVIRONMENTS / "lakes")
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory) / "result.json"
        command = [str(python), "-m", "tools.lakes.check", paths, str(result), *arguments]
        subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - our own command, no shell
        outcomes = json.loads(result.read_text(encoding="utf-8"))
    record(outcomes)
    return int(any(outcome["failed"] for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
