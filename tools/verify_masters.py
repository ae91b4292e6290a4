"""TPC-H answers on every kind of master that one host can have, compared with Spark's: `make verify`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.hosting.support import standalone

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "reports" / "verify.json"
MINUTES_MAX = 20


def verify(data: str, master: str, workers: tuple[int, ...], **conf: str) -> list[dict[str, object]]:
    """Compare the answers under one master."""
    with tempfile.TemporaryDirectory() as directory:
        saved = Path(directory) / "runs.json"
        command = [sys.executable, "-c", "from wallaby.cli import main; main()", "tpch", "verify", data]
        command += ["--master", master, "--save", str(saved)]
        command += [part for count in workers for part in ("--workers", str(count))]
        for key, value in {"spark.driver.memory": "2g", **conf}.items():
            command += ["--conf", f"{key}={value}"]
        subprocess.run(command, check=False, timeout=MINUTES_MAX * 60)  # noqa: S603 - our own command, no shell
        runs: list[dict[str, object]] = json.loads(saved.read_text(encoding="utf-8"))["runs"]
        return runs


def main() -> None:
    """Run on all of them, and write the figures down."""
    data = sys.argv[1]
    runs = verify(data, "local[5]", (1, 2, 4))
    runs += verify(data, "local-cluster[2,2,1024]", (0,))
    with (
        tempfile.TemporaryDirectory() as directory,
        standalone(Path(directory) / "cluster", workers=2, cores=2) as (url, host),
    ):
        conf = {
            "spark.driver.host": host,
            "spark.executor.memory": "1g",
            "spark.pyspark.python": sys.executable,
        }
        runs += [{**run, "master": "standalone"} for run in verify(data, url, (0,), **conf)]
    good = sum(not run["difference"] and not run["reasons"] for run in runs)
    REPORT.write_text(json.dumps({"data": Path(data).name, "runs": runs}, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{good} of {len(runs)} are native and equal to Spark's.\n")
    sys.exit(good != len(runs))


if __name__ == "__main__":
    main()
